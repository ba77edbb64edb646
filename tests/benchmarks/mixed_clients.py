"""A fleet whose groups are led by all client libraries, beside the same fleet of Java's.

    python -m tests.benchmarks.mixed_clients [--groups N] [--pairs N]

Both fleets have the same members, topics, claims and assignors; in turn each is predicted, and its
assignment counted, in a plain session of one process. The bar is 1.5 times.
"""

import argparse
import statistics
import time

from pyspark.sql import DataFrame, SparkSession

from kassign_spark import predict
from kassign_spark.client_libraries import ASSIGNORS_OF_CLIENT, JAVA

_PAIRS = [
    (client, name)
    for client, names in ASSIGNORS_OF_CLIENT.items()
    for name in names
    if name in ASSIGNORS_OF_CLIENT[JAVA]
]
_MEMBERS, _TOPICS, _SIZE = 6, 4, 8


def fleet(spark: SparkSession, groups: int, *, is_mixed: bool) -> tuple[DataFrame, ...]:
    """Groups of each library and assignor in turn, some with a member that has just come."""
    kinds = ", ".join(f"('{client}', '{assignor}')" for client, assignor in _PAIRS)
    numbers = spark.range(groups).selectExpr(
        "id", "concat('g', id) as group_id", f"array({kinds})[id % {len(_PAIRS)}] as kind"
    )
    topics = ", ".join(f"concat('t', {n}, '-', id % 97)" for n in range(_TOPICS))
    members = numbers.selectExpr(
        "group_id",
        f"explode(transform(sequence(1, {_MEMBERS}), m -> concat('m', m, '-', id))) as member_id",
        f"array({topics}) as topics",
        "kind.col2 as assignor",
        f"{'kind.col1' if is_mixed else 'cast(null as string)'} as client",
        "1 as generation",
    )
    # The last member owns nothing yet; it is as if it had just come.
    owned = numbers.selectExpr("id", "group_id", f"explode(array({topics})) as topic").selectExpr(
        "id", "group_id", "topic", f"explode(sequence(0, {_SIZE - 1})) as partition"
    )
    owned = owned.selectExpr(
        "group_id",
        f"concat('m', 1 + (partition + id) % {_MEMBERS - 1}, '-', id) as member_id",
        "topic",
        "partition",
    )
    names = numbers.selectExpr(f"explode(array({topics})) as topic").distinct()
    return members, names.selectExpr("topic", f"{_SIZE} as num_partitions"), owned


def main() -> None:
    """Print the seconds of each pair, and the ratio of their medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, default=3)
    args = parser.parse_args()
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    spark = SparkSession.builder.config(map=local).config("spark.ui.enabled", "false").getOrCreate()
    fleets = {
        name: [frame.localCheckpoint() for frame in fleet(spark, args.groups, is_mixed=is_mixed)]
        for name, is_mixed in (("java", False), ("mixed", True))
    }
    seconds: dict[str, list[float]] = {name: [] for name in fleets}
    for pair in range(args.pairs + 1):
        for name, frames in fleets.items():
            began = time.monotonic()
            assigned, verdicts = predict(*frames)
            counts = assigned.count(), verdicts.count()
            if pair:  # the first warms Java up
                seconds[name].append(time.monotonic() - began)
                print(f"{name:<6} {seconds[name][-1]:6.1f} s, {counts[0]:,} partitions")
    java, mixed = (statistics.median(seconds[name]) for name in ("java", "mixed"))
    print(f"mixed {mixed / java:.2f} times java")


if __name__ == "__main__":
    main()
