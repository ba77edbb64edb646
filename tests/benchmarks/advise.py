"""``advise`` over a fleet, beside ``compare``, and the graph and its bottlenecks.

    python -m tests.benchmarks.advise [GROUPS]

Every group has ten topics of ten partitions and nine members; the tenth has left. In a fifth of
the groups subscriptions differ. From Parquet to Parquet, checks included, on the session's two
cores; the second time of each counts. The bar: ``advise`` takes at most three times as long as
``compare``.
"""

import argparse
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame

from kassign_spark import advise, bottlenecks, compare, eligibility
from tests.graph.fleets import fleet
from tests.spark_session import start_session


def main() -> None:
    """Print seconds of each, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="?", type=int, default=10_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Path(folder))
        try:
            names = ("members", "topics", "owned")
            for name, table in zip(names, fleet(spark, args.groups), strict=True):
                table.write.parquet(f"{folder}/{name}")
            members, topics, owned = (spark.read.parquet(f"{folder}/{name}") for name in names)
            print(f"{args.groups} groups")
            taken: dict[str, float] = {}
            for _ in range(2):
                for name, made in (
                    ("eligibility", lambda: eligibility(members, topics).edges),
                    ("bottlenecks", lambda: bottlenecks(members, topics)),
                    ("compare", lambda: compare(members, topics, owned)),
                    ("advise", lambda: advise(members, topics, owned)),
                ):
                    started = time.perf_counter()
                    frame: DataFrame = made()
                    frame.write.mode("overwrite").parquet(f"{folder}/{name}")
                    taken[name] = time.perf_counter() - started
                    print(f"{name}: {taken[name]:.1f} s", flush=True)
            rows = spark.read.parquet(f"{folder}/advise").count()
            print(f"advise: {rows} rows, {taken['advise'] / taken['compare']:.2f} x compare")
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
