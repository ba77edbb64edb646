"""``advise`` as a function and as a command, over the example and many groups at once."""

import json
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kassign_spark import advise, assign, balance, cli, read_snapshot, write_snapshot
from kassign_spark.errors import InputError
from kassign_spark.tables.snapshots import Snapshot
from tests.oracles.mixed_groups import to_tables
from tests.whatif.test_advice import BY_GROUP, GROUPS, OWN


def test_the_examples_worst_group(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One member has 38 of 42 partitions: why, and what would help."""
    arguments = ["advise", "examples/fleet", "--group", "orders-notifications"]
    assert cli.main(arguments) == 0
    output = [line for line in capsys.readouterr().out.splitlines() if line]
    assert output[0] == "1 group: something would make 1 more even"
    assert output[1].startswith(
        "orders-notifications: 38 partitions at most, 1 at least; only member "
    )
    assert output[1].endswith(
        "can read orders.created, orders.shipped (36 partitions), so 36 is the least maximum, "
        "where 11 would be even, and roundrobin gives 38"
    )
    (best,) = [line for line in output if "read orders.created, orders.shipped as well" in line]
    assert best.endswith(": 11 at most, 10 at least; moves 27, pauses 42, in 1 round")
    assert len(output) == 6, output
    assert cli.main([*arguments, "--json", "--output", str(tmp_path / "out")]) == 0
    facts = json.loads(capsys.readouterr().out)
    (group,) = facts["groups"]
    (row,) = [r for r in group["changes"] if r["gain"] == max(c["gain"] for c in group["changes"])]
    assert (row["change"], row["topics"]) == ("subscription", ["orders.created", "orders.shipped"])
    assert len(row["member_ids"]) == 3
    written = spark.read.parquet(str(tmp_path / "out" / "advice"))
    assert written.count() == len(group["changes"])

    # Told to do so, the real thing does what the advice says.
    fleet = read_snapshot("examples/fleet", spark)
    is_of_group = F.col("group_id") == group["group_id"]
    more = F.when(
        F.col("member_id").isin(row["member_ids"]),
        F.array_union("topics", F.array(*map(F.lit, row["topics"]))),
    )
    members = fleet.members.where(is_of_group).withColumn("topics", F.coalesce(more, "topics"))
    owned = fleet.owned.where(is_of_group) if fleet.owned is not None else None
    (measured,) = balance(assign(members, fleet.topics, owned), members, owned).collect()
    assert (measured.max_assigned, measured.min_assigned) == (11, 10)
    assert measured.moved_count == row["moved"]


def test_many_groups_at_once(spark: SparkSession) -> None:
    """The same as by the kernel, whatever the partitioning."""
    names = list(GROUPS)[:120]
    members, topics, owned = to_tables(spark, [GROUPS[name] for name in names])
    own = F.create_map(*(F.lit(x) for name in names for x in (name, OWN[name])))
    members = members.withColumns({"assignor": own[F.col("group_id")], "generation": F.lit(5)})
    result = advise(members, topics, owned)
    rows = [row.asDict(recursive=True) for row in result.orderBy("group_id", "rank").collect()]
    assert rows == [row for name in sorted(names) for row in BY_GROUP.get(name, [])]
    again = advise(members.repartition(5), topics, owned.orderBy(F.rand(2)))
    order = ["group_id", "rank"]
    assert_df_equality(result.orderBy(*order), again.orderBy(*order))


def test_nothing_to_advise_and_bad_input(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    members = spark.createDataFrame(
        [("g", "a", ["t"], "sticky")],
        "group_id string, member_id string, topics array<string>, assignor string",
    )
    topics = spark.createDataFrame([("t", 1)], "topic string, num_partitions int")
    assert advise(members, topics).collect() == []
    write_snapshot(Snapshot(members, topics, None), tmp_path / "even")
    assert cli.main(["advise", str(tmp_path / "even")]) == 0
    assert capsys.readouterr().out.endswith("1 group: something would make 0 more even\n")
    with pytest.raises(InputError, match="column num_partitions: -1"):
        advise(members, topics.withColumn("num_partitions", F.lit(-1)))
