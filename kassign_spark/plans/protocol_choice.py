"""The assignor of a group and the protocol of its members, chosen from the members' lists.

Sources: ``ConsumerCoordinator``'s constructor (protocol), ``ClassicGroup.selectProtocol`` of the
broker (assignor), KIP-429 (the way from eager to cooperative in two rolling bounces).
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.client.protocols import COOPERATIVE, EAGER
from kassign_spark.conforming import conform, has_cluster_id, short_assignor
from kassign_spark.expressions import hash_bucket, hash_map_capacity, java_hash_code
from kassign_spark.inputs.checks import describe_duplicate
from kassign_spark.results import to_result
from kassign_spark.schemas import GROUP_KEY, table_of

CANDIDATES = table_of(
    "candidates",
    "cluster_id string?, group_id string, member_id string, assignors array<string>",
)
"""The members' candidates: ``partition.assignment.strategy``, the preferred assignor first; null is
the client's default."""

DEFAULT_ASSIGNORS = ("range", "cooperative-sticky")
"""The Java client's default list since 3.0. It is eager."""

PROTOCOLS: Mapping[str, Collection[str]] = {
    "range": (EAGER,),
    "roundrobin": (EAGER,),
    "sticky": (EAGER,),
    "cooperative-sticky": (EAGER, COOPERATIVE),
}
"""The protocols that Kafka's own assignors support."""


class Choice(NamedTuple):
    """The chosen assignors; see ``choose_assignors``.

    Most votes come first, equal ones in the order that decides. Problems are `duplicate_member`
    (one is there more than once: nothing is chosen), `no_common_assignor` (the broker refuses the
    last to join: INCONSISTENT_GROUP_PROTOCOL), `no_protocol` (of some member) or `mixed_protocols`
    (some members eager, some cooperative). Lists have the default
    filled in; a member's protocol is the highest that all its assignors support.
    """

    groups: DataFrame
    members: DataFrame


def choose_assignors(
    candidates: DataFrame, *, protocols: Mapping[str, Collection[str]] = PROTOCOLS
) -> Choice:
    """Choose each group's assignor and protocol as its coordinator and members do.

    Candidates are the names on the list of every member. Each member votes for its first
    candidate, and most votes win; between equal ones the order of the coordinator's hash map of
    names decides.

    Args:
        candidates: ``CANDIDATES``, one row per member.
        protocols: what each assignor supports; give it with assignors of your own added. Names are
            Kafka's, or its classes' (``RangeAssignor``), as in ``CANDIDATES``.

    Returns:
        groups: cluster_id string (where the input has it), group_id string, assignor string (null
        where no name is on every member's list), votes `array<struct<assignor string, votes
        bigint>>`, protocol string (null where there is none), problem string (null where there is
        none, else `duplicate_member`, `no_common_assignor`, `no_protocol` or `mixed_protocols`);
        one row per group.

        members: cluster_id string (where the input has it), group_id string, member_id string,
        assignors `array<string>`, vote string (null where the group has no candidate), protocol
        string (null: none), detail string (why it has none, else null); one row per member.

    Raises:
        SchemaError: columns are missing or of the wrong type.
    """
    has_clusters = has_cluster_id(candidates)
    members = _members(candidates, protocols)
    return Choice(
        to_result(_groups(members), "choose_assignors.groups", has_cluster_id=has_clusters),
        to_result(members, "choose_assignors.members", has_cluster_id=has_clusters),
    )


def check_migration(
    candidates: DataFrame, *, protocols: Mapping[str, Collection[str]] = PROTOCOLS
) -> DataFrame:
    """Return how far each group is on the way from an eager assignor to `cooperative-sticky`.

    The way is two rolling bounces: in the first every member gets `cooperative-sticky` on its list
    beside the eager assignor, in the second it loses the eager one. Members that have had their
    second bounce cannot share a group with members that wait for their first.

    Args:
        candidates: ``CANDIDATES``, one row per member.
        protocols: as for ``choose_assignors``.

    Returns:
        One row per group: cluster_id string (where the input has it), group_id string,
        step string: `not_started`, `first_bounce` (begun), `first_bounce_done`, `second_bounce`
        (begun), `done`, or `stuck` (members of the second bounce beside members without the
        first, no assignor in common, or a member that is there more than once),
        assignor string: as chosen now, null where none is,
        mixes_protocols boolean: eager members beside cooperative ones; to be seen in a second
        bounce only, and unsafe to stay in: each rebalance still stops the eager ones,
        safe_steps `array<string>`: `add_cooperative_sticky` to the lists of members, that keep
        their eager assignor; `remove_eager` from the lists of members,
        blocking `array<struct<member_id string, reason string>>`: who stands in the way of
        `remove_eager`, by member_id; empty where nobody does.

    Raises:
        SchemaError: columns are missing or of the wrong type.
    """
    has_clusters = has_cluster_id(candidates)
    members = _members(candidates, protocols)
    lists_cooperative = F.array_contains("assignors", "cooperative-sticky")
    is_cooperative = F.coalesce(F.col("protocol") == COOPERATIVE, F.lit(False))
    reason = F.when(
        ~lists_cooperative,
        "does not list cooperative-sticky: members without an eager assignor cannot join it",
    ).otherwise(F.col("detail"))
    blocks = F.when(reason.isNotNull(), F.struct("member_id", reason.alias("reason")))
    measures = members.groupBy(*GROUP_KEY).agg(
        F.count("*").alias("all"),
        F.count_if(lists_cooperative).alias("listing"),
        F.count_if(is_cooperative).alias("cooperative"),
        F.count_if(F.col("protocol") == EAGER).alias("eager"),
        F.sort_array(F.collect_list(blocks)).alias("blocking"),
    )
    everyone, listing, cooperative = F.col("all"), F.col("listing"), F.col("cooperative")
    step = (
        F.when(F.col("assignor").isNull(), "stuck")
        .when(listing == 0, "not_started")
        .when(listing < everyone, "first_bounce")
        .when(cooperative == 0, "first_bounce_done")
        .when(cooperative < everyone, "second_bounce")
        .otherwise("done")
    )
    may_add = step.isin("not_started", "first_bounce")
    may_remove = step.isin("first_bounce_done", "second_bounce") & (F.size("blocking") == 0)
    safe = F.array(F.when(may_add, "add_cooperative_sticky"), F.when(may_remove, "remove_eager"))
    assignors = _groups(members).select(*GROUP_KEY, "assignor")
    verdicts = measures.join(assignors, on=list(GROUP_KEY), how="inner").withColumns(
        {
            "step": step,
            "mixes_protocols": (cooperative > 0) & (F.col("eager") > 0),
            "safe_steps": F.array_compact(safe),
        }
    )
    return to_result(verdicts, "check_migration", has_cluster_id=has_clusters)


def _members(candidates: DataFrame, protocols: Mapping[str, Collection[str]]) -> DataFrame:
    """Return ``Choice.members`` and, with each, the candidates of its group."""
    default = F.array(*(F.lit(name) for name in DEFAULT_ASSIGNORS))
    listed = F.array_distinct(F.coalesce("assignors", default))
    member = F.struct("member_id", listed.alias("assignors"))
    on_every_list = "name -> forall(members, member -> array_contains(member.assignors, name))"
    # Of a group with a member that appears twice no list has a name on every member's.
    common = (
        "if(size(array_distinct(members.member_id)) < size(members), array(), array_sort("
        f"filter(array_distinct(flatten(members.assignors)), {on_every_list}))) as candidates"
    )
    times = F.expr(f"count(*) over (partition by {', '.join(GROUP_KEY)}, member_id) as times")
    # Each group is one row, of which its members are made again: nothing is shuffled twice.
    offered = (
        conform(candidates, CANDIDATES)
        .where("group_id is not null")
        .groupBy(*GROUP_KEY)
        .agg(F.collect_list(member).alias("members"))
        .selectExpr(*GROUP_KEY, common, "inline(members)")
        .select("*", times)
    )
    is_candidate = F.filter("assignors", lambda a: F.array_contains("candidates", a))
    names = {short_assignor(name): supported for name, supported in protocols.items()}
    protocol, detail = _protocol(names)
    vote = F.get(is_candidate, F.lit(0))
    return offered.withColumns({"vote": vote, "protocol": protocol, "detail": detail})


def _protocol(protocols: Mapping[str, Collection[str]]) -> tuple[Column, Column]:
    """Find the highest protocol that all of a member's assignors support, or why there is none."""

    def all_support(protocol: str) -> Column:
        names = [name for name, supported in protocols.items() if protocol in supported]
        return F.forall("assignors", lambda a: a.isin(names))

    unknown = F.array_except("assignors", F.array(*(F.lit(name) for name in protocols)))
    # The same order as the client's: the highest first.
    protocol = F.when(
        (F.col("times") == 1) & (F.size("assignors") > 0),
        F.when(all_support(COOPERATIVE), COOPERATIVE).when(all_support(EAGER), EAGER),
    )
    unknown_says = F.concat(
        F.lit("which protocols these support is not known: "), F.array_join(unknown, ", ")
    )
    reason = (
        F.when(F.col("times") > 1, F.expr(describe_duplicate("times", "candidates")))
        .when(F.size("assignors") == 0, "lists no assignor")
        .when(F.size(unknown) > 0, unknown_says)
        .otherwise("its assignors have no protocol in common: the consumer does not start")
    )
    return protocol, F.when(protocol.isNull(), reason)


def _groups(members: DataFrame) -> DataFrame:
    """Count the votes: ``Choice.groups``."""
    by_group = members.groupBy(*GROUP_KEY).agg(
        F.max("candidates").alias("candidates"),
        F.collect_list("vote").alias("votes"),
        F.min("protocol").alias("least"),
        F.max("protocol").alias("most"),
        (F.count("protocol") < F.count("*")).alias("lacks"),
        (F.max("times") > 1).alias("is_repeated"),
    )
    names_voted_for = F.size(F.array_distinct("votes"))

    def counted(name: Column) -> Column:
        votes = F.size(F.filter("votes", lambda vote: vote == name)).cast("bigint")
        bucket = hash_bucket(java_hash_code(name), hash_map_capacity(names_voted_for))
        return F.struct((-votes).alias("fewest"), bucket.alias("bucket"), name.alias("assignor"))

    ranked = F.array_sort(F.transform("candidates", counted))
    ranked_votes = F.transform(
        "ranked", lambda r: F.struct(r["assignor"].alias("assignor"), (-r["fewest"]).alias("votes"))
    )
    protocol = F.when(~F.col("lacks") & (F.col("least") == F.col("most")), F.col("least"))
    problem = (
        F.when(F.col("is_repeated"), "duplicate_member")
        .when(F.size("candidates") == 0, "no_common_assignor")
        .when(F.col("lacks"), "no_protocol")
        .when(F.col("least") != F.col("most"), "mixed_protocols")
    )
    return by_group.withColumn("ranked", ranked).select(
        *GROUP_KEY,
        F.get("ranked", F.lit(0))["assignor"].alias("assignor"),
        ranked_votes.alias("votes"),
        protocol.alias("protocol"),
        problem.alias("problem"),
    )
