"""The newest state in the group log as a snapshot: all groups, without asking a broker."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import conform, has_cluster_id
from kassign_spark.inputs.client_families import with_clients
from kassign_spark.inputs.rules import CONSUMER
from kassign_spark.live.consumer_protocol_groups import NOT_ASKED_FOR
from kassign_spark.log.decode import NO_DAMAGE
from kassign_spark.log.group_log import group_log, has_type, sent_subscriptions
from kassign_spark.log.messages import KINDS, OTHER_KINDS
from kassign_spark.results import to_result
from kassign_spark.schemas import CLUSTER_ID, MEMBERS, OWNED, TARGET, TOPICS, Table
from kassign_spark.spark.iteration import materialize
from kassign_spark.tables.snapshots import Snapshot

_STATE_TYPES = (2, 3, 5, 7, 8)
"""Records of groups, members, targets and current assignments."""
_KNOWN = (*KINDS, *OTHER_KINDS)
_DAMAGED = "its newest record cannot be read"
_DEFAULT_ASSIGNOR = "uniform"
"""The coordinator's default assignor for a group whose members name none."""
_OF_MEMBER = ["group_id", "member_id"]


class NewestState(NamedTuple):
    """A snapshot, and the groups of the log that are not in it.

    Attributes:
        snapshot: its members, topics, owned partitions and, where there are groups of the new
            protocol, targets.
        omitted: group_id string, reason string; null for no column.
        unread: what of the newest records cannot be read: group_id string?, kind string, reason
            string, count bigint.
    """

    snapshot: Snapshot
    omitted: DataFrame
    unread: DataFrame


def newest_state(
    records: DataFrame, topics: DataFrame, *, consumer_groups: bool = True
) -> NewestState:
    """Make a snapshot of each group's last state in raw records; the log is read once.

    - ``generation`` of classic groups is the group's own number, which a live coordinator does not
      tell: there a snapshot has the least that it can be. Of the new protocol it is the member's
      epoch.
    - ``member_seq`` is the place in the record; null of the new protocol.
    - ``is_leader`` says which member of a classic group led when its partitions were assigned.
    - ``owned`` is what the leader assigned, or of the new protocol what a member was given and has
      not given up.
    - ``target`` has no ``position``: the log does not keep the coordinator's order.

    Left out as a whole are groups without members, of other protocols, and with a newest record
    that cannot be read, or a member whose bytes cannot be decoded: an older one is not their
    state.

    Args:
        records: a batch with the columns of ``schemas.RECORDS``.
        topics: the cluster's topics as of now (``schemas.TOPICS``); the new protocol's partitions
            need the column topic_id. Its ``cluster_id`` is that of the whole snapshot.
        consumer_groups: Whether groups of the new protocol are in it too; else they are left out.
    """
    has_clusters = has_cluster_id(topics)
    topics = conform(topics, TOPICS)
    newest = materialize(_newest(records)).frame
    log = group_log(newest)
    groups = log.generations.where("NOT is_tombstone")
    members = log.log_members.where("NOT is_tombstone")
    unread = log.unread.where(~F.col("reason").isin(*NO_DAMAGE)).drop("version")
    reasons = materialize(_reasons(groups, members, unread, consumer_groups)).frame
    fine = reasons.where("reason IS NULL").select("group_id")
    omitted = reasons.where("reason IS NOT NULL AND group_id IS NOT NULL")
    damage = reasons.selectExpr("group_id", "inline(unread)")

    classic = _classic(groups, members, sent_subscriptions(newest)).join(
        fine, "group_id", "left_semi"
    )
    consumer = _consumer(groups, members).join(fine, "group_id", "left_semi")
    cluster = topics.agg(F.max(CLUSTER_ID).alias(CLUSTER_ID))
    whole = materialize(classic.unionByName(consumer, allowMissingColumns=True)).frame
    assignment = _name_topics(log.log_assignment, topics)
    assigned = materialize(assignment.join(whole.select(_OF_MEMBER), _OF_MEMBER, "left_semi")).frame

    def table(frame: DataFrame, result: Table) -> DataFrame:
        return to_result(frame.crossJoin(F.broadcast(cluster)), result, has_cluster_id=has_clusters)

    of_new = () if consumer_groups else ("topics_regex", "group_type")
    snapshot = Snapshot(
        table(whole, MEMBERS).drop("capacity", *of_new),
        to_result(topics, TOPICS, has_cluster_id=has_clusters),
        table(assigned.where("role IN ('assigned', 'revoking')"), OWNED),
        table(assigned.where("role = 'target'"), TARGET) if consumer_groups else None,
    )
    return NewestState(snapshot, omitted.select("group_id", "reason"), damage)


def _newest(records: DataFrame) -> DataFrame:
    """Return the last record of each key: what compaction will leave."""
    columns = [name for name in records.columns if name != "key"]
    last: Column = F.max_by(F.struct(*columns), "offset")
    # A key of an unknown type may have been one of them.
    of_state = records.where(has_type(_STATE_TYPES) | ~F.coalesce(has_type(_KNOWN), F.lit(False)))
    return of_state.groupBy("key").agg(last.alias("last")).select("key", "last.*")


def _reasons(
    groups: DataFrame, members: DataFrame, unread: DataFrame, consumer_groups: bool
) -> DataFrame:
    """Return each group of the log, why it is left out, if it is, and its unread records."""
    damage = unread.groupBy("group_id").agg(
        F.collect_list(F.struct("kind", "reason", "count")).alias("unread")
    )
    member_counts = (
        members.where("record IN ('group', 'member')")
        .groupBy("group_id")
        .agg(
            F.count(F.lit(1)).alias("members"),
            # A member of the new protocol always has topics: none where it gave a regex alone.
            F.min(F.struct(F.col("topics").isNotNull().alias("decoded"), "member_id")).alias(
                "first"
            ),
        )
    )
    undecoded = F.concat(
        F.lit("member "), "first.member_id", F.lit(": its bytes cannot be decoded")
    )
    other = F.concat(F.lit("protocol type "), "protocol_type", F.lit(", not consumer"))
    not_asked_for = F.lit(not consumer_groups) & (F.col("group_type") == CONSUMER)
    reason = (
        F.when(not_asked_for, F.lit(NOT_ASKED_FOR))
        .when(F.col("first.decoded") & F.isnotnull("unread"), F.lit(_DAMAGED))
        .when(F.isnull("group_type"), F.lit(_DAMAGED))
        .when(F.col("members").isNull(), F.lit("no members"))
        .when(F.col("protocol_type") != "consumer", other)
        .when(~F.col("first.decoded"), undecoded)
    )
    of_groups = groups.join(member_counts, "group_id", "left").join(damage, "group_id", "full")
    return of_groups.select("group_id", reason.alias("reason"), "unread")


def _classic(groups: DataFrame, members: DataFrame, subscriptions: DataFrame) -> DataFrame:
    """Return rows of ``members`` of classic groups."""
    of_group = groups.where("group_type = 'classic'").select("group_id", "assignor", "leader")
    columns = ("group_instance_id", "topics", "generation", "member_seq", "assignor")
    of_members = members.where("record = 'group'").drop("assignor")
    subscribed = of_members.join(of_group, "group_id").join(subscriptions, _OF_MEMBER, "left")
    return with_clients(
        subscribed.selectExpr(
            *_OF_MEMBER,
            *columns,
            "nullif(rack_id, '') as rack_id",
            "client_id",
            "subscription",
            "member_id = leader as is_leader",
        )
    )


def _consumer(groups: DataFrame, members: DataFrame) -> DataFrame:
    """Return rows of ``members`` of groups of the new protocol."""
    of_group = groups.where("group_type = 'consumer'").select("group_id")
    epochs = members.where("record = 'current'").select(*_OF_MEMBER, "generation")
    members_of_groups = members.where("record = 'member'").join(of_group, "group_id", "left_semi")
    votes = members_of_groups.where("assignor IS NOT NULL").groupBy("group_id", "assignor").count()
    # The most votes; of two with as many the coordinator takes any.
    chosen = votes.groupBy("group_id").agg(
        F.min_by("assignor", F.struct(-F.col("count"), F.col("assignor"))).alias("chosen")
    )
    return (
        members_of_groups.drop("generation")
        .join(epochs, _OF_MEMBER, "left")
        .join(chosen, "group_id", "left")
        .select(
            *_OF_MEMBER,
            "group_instance_id",
            F.expr("nullif(rack_id, '') as rack_id"),
            "topics",
            F.expr("nullif(topics_regex, '') as topics_regex"),
            "generation",
            F.coalesce("chosen", F.lit(_DEFAULT_ASSIGNOR)).alias("assignor"),
            F.lit(CONSUMER).alias("group_type"),
        )
    )


def _name_topics(assignment: DataFrame, topics: DataFrame) -> DataFrame:
    """Return partitions with their topics' names; without those of topics that exist no more."""
    names = topics.where("topic_id IS NOT NULL").select("topic_id", F.col("topic").alias("name"))
    return (
        assignment.join(F.broadcast(names), "topic_id", "left")
        .select(*_OF_MEMBER, "role", F.coalesce("topic", "name").alias("topic"), "partition")
        .where("topic IS NOT NULL")
    )
