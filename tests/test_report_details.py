"""What a report says of single groups, held against a fleet worked out by hand."""

from pyspark.sql import SparkSession

from kassign_spark.report.details import MAX_MEMBERS, MAX_RANGES, collect_details, to_page_json
from kassign_spark.report.followed import member_loads

_OWNED = "group_id string, member_id string, topic string, partition int"
_PROBLEMS = (
    "cluster_id string, group_id string, kind string, member_id string, topic string, "
    "partition int, detail string"
)


def test_members_and_moves_of_chosen_groups(spark: SparkSession) -> None:
    many = [f"m{i:03}" for i in range(MAX_MEMBERS + 20)]
    members = spark.createDataFrame(
        [("g", "a", ["t"]), ("g", "b", ["t"]), *(("big", name, ["t"]) for name in many)],
        "group_id string, member_id string, topics array<string>",
    )
    before = [("g", "a", "t", p) for p in range(4)] + [("g", "gone", "t", 4)]
    before += [("g", "gone", "u", p) for p in range(0, 40, 2)]
    owned = spark.createDataFrame(before, _OWNED)
    after = [("g", "a", "t", p) for p in (0, 1)] + [("g", "b", "t", p) for p in (2, 3, 4, 5)]
    after += [("big", name, "t", i) for i, name in enumerate(many)]
    after += [("big", "m050", "u", p) for p in range(9)]
    final = spark.createDataFrame(after, _OWNED)
    problems = spark.createDataFrame(
        [("", "g", "owner_not_in_group", "gone", "t", 4, "it left")], _PROBLEMS
    )
    loads = member_loads(final, members, owned)
    names = [("", "g"), ("", "big")]
    result = collect_details(names, loads, final, owned, problems)

    group = to_page_json(names[0], result, 2)
    assert group["members"] == [["b", 0, 4, 0], ["a", 4, 2, 0], ["gone", 21, 0, 1]]
    ranges = ",".join(str(p) for p in range(0, 2 * (MAX_RANGES - 1), 2))
    assert group["moves"] == [
        ["dropped", "gone", None, 20, f"u[{ranges},... 20 in all]"],
        ["moved", "a", "b", 2, "t[2-3]"],
        ["moved", "gone", "b", 1, "t[4]"],
        ["new", None, "b", 1, "t[5]"],
    ]
    assert group["problems"] == [["owner_not_in_group", "gone · t-4", "it left"]]
    assert (group["more_members"], group["more_moves"]) == (0, 0)

    big = to_page_json(names[1], result, len(many))
    assert big["members"][0] == ["m050", 0, 10, 0]
    assert (len(big["members"]), big["more_members"]) == (MAX_MEMBERS, 20)
    assert (len(big["moves"]), big["more_moves"]) == (60, len(many) - 60)
    assert collect_details([], loads, final, owned, problems).members == {}
