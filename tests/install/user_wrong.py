"""What a user may get wrong: mypy finds each, in the lines that say so."""

from pyspark.sql import SparkSession

from kassign_spark import Limit, assign, read_snapshot


def wrong(spark: SparkSession) -> None:
    fleet = read_snapshot("examples/fleet", spark)
    read_snapshot("examples/fleet", "spark")  # arg-type
    assign(fleet.members, fleet.topics, asignor="range")  # call-arg
    print(fleet.member)  # attr-defined
    Limit(tolerance="5 %")  # arg-type
