"""What members have in common, in plain Python as over DataFrames."""

import random

from pyspark.sql import SparkSession

from kassign_spark import choose_assignors
from kassign_spark.plans.protocol_choice import PROTOCOLS
from kassign_spark.simulation.decisions import MIXED, choose
from kassign_spark.simulation.members import Member


def test_choices_are_those_of_choose_assignors(spark: SparkSession) -> None:
    rnd = random.Random(5)
    names = sorted(PROTOCOLS)
    lists = {
        f"g{number}": [
            tuple(rnd.choices(names, k=rnd.randint(1, 4))) for _ in range(rnd.randint(1, 5))
        ]
        for number in range(400)
    }
    rows = [
        (group, f"m{place}", list(names_of_member))
        for group, of in lists.items()
        for place, names_of_member in enumerate(of)
    ]
    table = spark.createDataFrame(
        rows, "group_id string, member_id string, assignors array<string>"
    )
    result = {row.group_id: row for row in choose_assignors(table).groups.collect()}
    met = set()
    for group, of in lists.items():
        members = [
            Member("m", None, None, (), None, None, None, None, names_of_member, ())
            for names_of_member in of
        ]
        chosen = choose(members)
        assert chosen == (result[group].assignor, result[group].protocol or MIXED), of
        met.add((chosen.assignor is None, chosen.protocol))
    assert len(met) >= 4
    assert choose([]) == (None, None)
