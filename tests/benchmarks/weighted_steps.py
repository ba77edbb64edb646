"""One group past the border, planned by weight in Spark steps: processor time, and what moves.

    python -m tests.benchmarks.weighted_steps [PARTITIONS] [MEMBERS] [--whole]

Every tenth member has a half more than its share, so that there is something to move. ``--whole``
hands the group to one task instead, for comparison. Tables are made by Spark as they are read.
"""

import argparse
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark import Settings, plan_by_weight
from tests.benchmarks.weighted_fleet import peak_megabytes, processors

_PARTITIONS_A_TOPIC = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("partitions", nargs="?", type=int, default=10_000_000)
    parser.add_argument("members", nargs="?", type=int, default=3_000)
    parser.add_argument("--whole", action="store_true", help="in one task")
    args = parser.parse_args()
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "6g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    topic_count = -(-args.partitions // _PARTITIONS_A_TOPIC)
    topic = F.format_string("topic-%05d", F.floor(F.col("id") / _PARTITIONS_A_TOPIC))
    rows = spark.range(args.partitions).select(
        "id",
        topic.alias("topic"),
        (F.col("id") % _PARTITIONS_A_TOPIC).cast("int").alias("partition"),
    )
    topics = rows.groupBy("topic").agg(F.count("*").cast("int").alias("num_partitions"))
    weights = rows.select("topic", "partition", (100 * F.exp(F.randn(1))).alias("weight"))
    # Of a hundred and five shares every tenth member has three where others have two.
    share = F.pmod(F.xxhash64("id", F.lit(2)), F.lit(21 * args.members // 10))
    block, place = F.floor(share / 21), share % 21
    owner = block * 10 + F.when(place < 3, 0).otherwise(F.floor((place - 1) / 2))
    named = F.format_string("member-%05d", owner.cast("long")).alias("member_id")
    owned = rows.select(F.lit("g").alias("group_id"), named, "topic", "partition")
    members = spark.range(args.members).select(
        F.lit("g").alias("group_id"),
        F.format_string("member-%05d", "id").alias("member_id"),
        F.array(*(F.lit(f"topic-{t:05d}") for t in range(topic_count))).alias("topics"),
    )
    settings = Settings(bytes_per_task=2**50) if args.whole else Settings()
    before, start = processors(), time.perf_counter()
    plan = plan_by_weight(members, topics, weights, owned, settings=settings)
    jvm, workers = (now - then for now, then in zip(processors(), before, strict=True))
    clock = time.perf_counter() - start
    (row,) = plan.verdicts.collect()
    assert plan.assignment.count() == args.partitions
    print(
        f"{args.partitions:,} partitions, {args.members:,} members: {workers:.1f} s of processor "
        f"in the workers, {jvm:.1f} in the JVM, {clock:.0f} s on the clock; largest worker "
        f"{peak_megabytes():,.0f} MB; {row.verdict}, {row.moves:,} moves (bound "
        f"{row.moves_bound:,}), load {row.max_load / row.load_bound:.4f} x bound\n{row.detail}"
    )


if __name__ == "__main__":
    main()
