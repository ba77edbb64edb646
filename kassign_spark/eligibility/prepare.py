"""From conforming tables to what the strategies work on: read once, folded, checked, held."""

from collections.abc import Collection
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.eligibility.groups import Eligible, fold_groups, fold_topics
from kassign_spark.eligibility.racks import fold_racks
from kassign_spark.inputs.checks import Inputs, refuse
from kassign_spark.inputs.patterns import with_topics
from kassign_spark.inputs.rules import any_broken, member_rules, owned_rules, rules_of_topics
from kassign_spark.rounds import Settled, hold
from kassign_spark.schemas import GROUP_KEY


class Prepared(NamedTuple):
    """The eligible frames of all groups, and the names of the assignors that the groups use."""

    eligible: Eligible
    assignors: list[str]


def prepare(inputs: Inputs, known_assignors: Collection[str] | None) -> Prepared:
    """Fold, check and hold the inputs; runs a job over each table.

    What was checked is what is assigned: the folded frames are held, not read again. Members that
    subscribe by a pattern are given its topics, and then held as well.

    Args:
        inputs: conforming tables.
        known_assignors: against which ``members.assignor`` is checked; None where the caller's
            own choice overrides that column.

    Raises:
        InputError: values that have no meaning; lists every one.
    """
    groups, of_groups = _hold_groups(inputs, known_assignors)
    if of_groups["patterns"]:
        resolved = with_topics(inputs.members, inputs.topics)
        inputs = inputs._replace(members=hold(resolved, {"rows": F.count(F.lit(1))}).frame)
        groups, of_groups = _hold_groups(inputs, known_assignors)
    topics, of_topics = hold(
        fold_topics(inputs.topics, bad_row=any_broken(rules_of_topics(inputs.topics))),
        {
            "bad": F.count_if((F.col("bad_rows") > 0) | F.col("is_inconsistent")),
            "most": F.max("num_partitions"),
            "mean": F.avg("num_partitions"),
        },
    )
    assignors = sorted(of_groups["assignors"] or [])
    unknown = known_assignors is not None and not set(assignors) <= set(known_assignors)
    if of_groups["bad"] or of_topics["bad"] or unknown or _has_bad_rows(inputs.owned):
        refuse(inputs, known_assignors)
    racks = _racks(inputs.topics) if of_groups["racked"] else None
    heterogeneous = of_groups["heterogeneous"]
    if heterogeneous:
        groups, compared = hold(
            _compare_as_sets(groups, inputs.members),
            {"heterogeneous": F.count_if(~F.col("is_homogeneous"))},
        )
        heterogeneous = compared["heterogeneous"]
    assignable = topics.where("num_partitions > 0").select(
        "cluster_id", "topic", F.col("num_partitions").cast("int").alias("num_partitions")
    )
    eligible = Eligible(
        inputs.members,
        assignable,
        inputs.owned,
        groups,
        heterogeneous=bool(heterogeneous),
        most_topics=of_groups["most_topics"] or 0,
        most_partitions=(of_groups["most_topics"] or 0) * (of_topics["most"] or 0),
        about_partitions=int((of_groups["all_topics"] or 0) * (of_topics["mean"] or 0)),
        racks=racks,
    )
    return Prepared(eligible, assignors)


def _hold_groups(inputs: Inputs, known_assignors: Collection[str] | None) -> Settled:
    ignore_assignor = F.lit(known_assignors is None)
    return hold(
        fold_groups(inputs.members, bad_row=any_broken(member_rules())),
        {
            "bad": F.count_if(
                (F.col("bad_rows") > 0)
                | F.col("has_duplicates")
                | (~ignore_assignor & (F.col("is_mixed") | F.col("assignor").isNull()))
            ),
            "patterns": F.count_if("has_patterns"),
            "assignors": F.collect_set("assignor"),
            "heterogeneous": F.count_if(~F.col("is_homogeneous")),
            "most_topics": F.max(F.size("topics")),
            "all_topics": F.sum(F.size("topics")),
            "racked": F.count_if("has_racks"),
        },
    )


def restrict(eligible: Eligible, assignor: str) -> Eligible:
    """Keep the groups that use ``assignor``."""
    uses_it = F.col("assignor") == assignor
    return eligible._replace(
        members=eligible.members.where(uses_it), groups=eligible.groups.where(uses_it)
    )


def restrict_to(eligible: Eligible, frame: DataFrame) -> Eligible:
    """Keep the groups that have rows in ``frame``."""
    keys = frame.select(*GROUP_KEY).distinct()

    def of_groups(rows: DataFrame) -> DataFrame:
        return rows.join(keys, on=list(GROUP_KEY), how="left_semi")

    return eligible._replace(
        members=of_groups(eligible.members),
        groups=of_groups(eligible.groups),
        owned=None if eligible.owned is None else of_groups(eligible.owned),
    )


def _compare_as_sets(groups: DataFrame, members: DataFrame) -> DataFrame:
    """Find the groups whose members list the same topics, only in another order or repeatedly."""
    differing = groups.where(~F.col("is_homogeneous")).select(*GROUP_KEY)
    subscription = F.sort_array(F.array_distinct("topics"))
    compared = (
        members.join(differing, on=list(GROUP_KEY), how="left_semi")
        .groupBy(*GROUP_KEY)
        .agg(
            F.min(subscription).alias("subscription"),
            (F.min(subscription) == F.max(subscription)).alias("equal"),
        )
    )
    return groups.join(compared, on=list(GROUP_KEY), how="left").withColumns(
        {
            "topics": F.coalesce("subscription", "topics"),
            "is_homogeneous": F.coalesce("equal", "is_homogeneous"),
        }
    )


def _racks(topics: DataFrame) -> DataFrame | None:
    """Hold the racks of the replicas; None where none is known."""
    if "replica_racks" not in topics.columns:
        return None
    racks, found = hold(fold_racks(topics), {"topics": F.count("*")})
    return racks if found["topics"] else None


def _has_bad_rows(owned: DataFrame | None) -> bool:
    if owned is None:
        return False
    return bool(owned.where(any_broken(owned_rules())).limit(1).count())
