"""``predict`` over a fleet beside Kafka's own assignors.

    python -m tests.benchmarks.predict [GROUPS] [--assignor NAME] [--racks] [--uniform]

Every group has ten topics of ten partitions and ten members that own them; an eleventh has
joined. In a fifth of the groups subscriptions differ. Ours goes from Parquet to Parquet, checks
included, on the session's two cores; Kafka's is the time inside its assignors alone, on one thread,
the best of three once they are warm. With ``--uniform`` the same groups are predicted once more as
groups of the new protocol, whose last target is what the members own.
"""

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from kassign_spark.client.model import predict_group
from kassign_spark.plans.predict import PREDICTED, predict
from tests.kafka import oracle
from tests.kafka.oracle import Group, Member
from tests.prediction.prediction_states import to_state
from tests.spark_session import start_session

SEED = 5
TOPICS = {f"topic-{i}": 10 for i in range(10)}
MIXED_SHARE = 0.2
AT_A_TIME = 1000


def main() -> None:
    """Print seconds and groups a second of both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="?", type=int, default=10_000)
    parser.add_argument("--assignor", choices=PREDICTED, default="cooperative-sticky")
    parser.add_argument("--racks", action="store_true", help="three racks, two replicas")
    parser.add_argument("--uniform", action="store_true", help="also as groups of the new protocol")
    args = parser.parse_args()
    rng = random.Random(SEED)
    groups = [_group(rng, args.assignor, has_racks=args.racks) for _ in range(args.groups)]
    print(f"{args.groups} groups, {args.assignor}{', racks' if args.racks else ''}")
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Path(folder))
        try:
            spark_seconds = _time_spark(spark, groups, Path(folder))
            if args.uniform:
                seconds = _uniform(spark, Path(folder))
                print(f"uniform: {seconds / spark_seconds:.2f} x the time of {args.assignor}")
            kafka_seconds = _time_kafka(spark, groups)
        finally:
            spark.stop()
    per_second = [f"{len(groups) / seconds:,.0f}" for seconds in (spark_seconds, kafka_seconds)]
    print(
        "groups a second: {} predicted from Parquet to Parquet, {} by Kafka's".format(*per_second)
    )
    states = [to_state(group) for group in groups]
    with _timed("the model alone, one core"):
        for state in states:
            predict_group(state)


def _group(rng: random.Random, assignor: str, *, has_racks: bool) -> Group:
    names = list(TOPICS)
    is_mixed = rng.random() < MIXED_SHARE
    ids = [f"consumer-{rng.randrange(16**8):08x}-{rng.randrange(16**24):024x}" for _ in range(11)]
    subscriptions = [sorted(rng.sample(names, 6)) if is_mixed else names for _ in ids]
    claims: list[list[tuple[str, int]]] = [[] for _ in ids]
    for topic, size in TOPICS.items():
        subscribers = [m for m in range(10) if topic in subscriptions[m]]
        for partition in range(size if subscribers else 0):
            claims[min(subscribers, key=lambda m: len(claims[m]))].append((topic, partition))
    members = [
        Member(
            member_id,
            topics,
            owned,
            7 if owned else None,
            rack_id=rng.choice("abc") if has_racks else None,
        )
        for member_id, topics, owned in zip(ids, subscriptions, claims, strict=True)
    ]
    if not has_racks:
        return Group(TOPICS, members, assignor)
    racks = {topic: [rng.sample("abc", 2) for _ in range(n)] for topic, n in TOPICS.items()}
    return Group(racks, members, assignor)


def _time_spark(spark: SparkSession, groups: Sequence[Group], folder: Path) -> float:
    for start in range(0, len(groups), AT_A_TIME):
        tables = oracle.to_tables(spark, groups[start : start + AT_A_TIME])
        for name, table in tables._asdict().items():
            # A cluster a batch: names repeat from one to_tables to the next.
            table = table.selectExpr(
                f"concat('{start}-', cluster_id) as cluster_id", "* except (cluster_id)"
            )
            table.write.mode("append").parquet(str(folder / name))
    for times in ("first", "second"):
        started = time.perf_counter()
        with _timed(f"predict, Parquet to Parquet, {times} time"):
            members, topics, owned = (
                spark.read.parquet(str(folder / name)) for name in oracle.Tables._fields
            )
            assignment, verdicts = predict(members, topics, owned)
            assignment.write.mode("overwrite").parquet(str(folder / "assignment"))
            result = Counter(
                {row.verdict: row["count"] for row in verdicts.groupBy("verdict").count().collect()}
            )
        seconds = time.perf_counter() - started
        print(f"  {dict(result)}, {spark.read.parquet(str(folder / 'assignment')).count()} rows")
    with _timed("floor: owned read and written back"):
        owned.write.parquet(str(folder / "floor"))
    return seconds


def _uniform(spark: SparkSession, folder: Path) -> float:
    """Predict the groups that ``_ours`` has written, as those of the new protocol."""
    members, topics, owned = (
        spark.read.parquet(str(folder / name)) for name in oracle.Tables._fields
    )
    by_id = Window.partitionBy("cluster_id", "group_id").orderBy("member_id")
    in_list = Window.partitionBy("cluster_id", "group_id", "member_id").orderBy(
        "topic", "partition"
    )
    digest = F.unhex(F.substring(F.sha2("topic", 256), 1, 32))
    topic_id = F.regexp_replace(F.translate(F.base64(digest), "+/", "-_"), "=", "")
    tables = {
        "new_members": members.withColumns(
            {
                "group_type": F.lit("consumer"),
                "assignor": F.lit("uniform"),
                "member_seq": F.row_number().over(by_id) - 1,
            }
        ),
        "new_topics": topics.withColumn("topic_id", topic_id),
        "new_target": owned.withColumn("position", F.row_number().over(in_list) - 1),
    }
    for name, table in tables.items():
        table.write.parquet(str(folder / name))
    for times in ("first", "second"):
        started = time.perf_counter()
        with _timed(f"predict uniform, {times} time"):
            members, topics, target = (spark.read.parquet(str(folder / name)) for name in tables)
            assignment, verdicts = predict(members, topics, target=target)
            assignment.write.mode("overwrite").parquet(str(folder / "assignment"))
            rows = verdicts.groupBy("verdict").count().collect()
        seconds = time.perf_counter() - started
        print(f"  { ({row.verdict: row['count'] for row in rows}) }")
    return seconds


def _time_kafka(spark: SparkSession, groups: Sequence[Group]) -> float:
    batches = [groups[i : i + AT_A_TIME] for i in range(0, len(groups), AT_A_TIME)]
    taken = [oracle.seconds_taken(spark, batch, times=3) for batch in batches]
    seconds = sum(map(min, taken))
    print(f"Kafka's assignors in memory, one thread: {seconds:.1f} s", flush=True)
    return seconds


@contextmanager
def _timed(step: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    print(f"{step}: {time.perf_counter() - started:.1f} s", flush=True)


if __name__ == "__main__":
    main()
