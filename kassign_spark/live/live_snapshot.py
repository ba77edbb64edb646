"""A live Kafka cluster's consumer groups as the tables of the design, through kafka-python.

Java's admin client shows only what members were assigned; kafka-python's also decodes what they
said when they joined: subscription, rack, owned partitions, generation.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kassign_spark.inputs.client_families import SIGNS, with_clients
from kassign_spark.live.admin import admin_client
from kassign_spark.live.classic_groups import stable_groups
from kassign_spark.live.cluster_rows import (
    Omission,
    group_rows,
    leader_rows,
    racks_of,
    topic_rows,
    topics_of,
)
from kassign_spark.live.consumer_protocol_groups import (
    NOT_ASKED_FOR,
    Row,
    consumer_group_names,
    describe_consumer_groups,
    describe_group_settings,
)
from kassign_spark.live.offsets import read_offsets
from kassign_spark.schemas import (
    CLUSTER_ID,
    GROUP_SETTINGS,
    LEADERS,
    MEMBERS,
    OFFSETS,
    OWNED,
    TARGET,
    TOPICS,
)
from kassign_spark.tables.snapshots import Snapshot


class ClusterTables(NamedTuple):
    """The state of a cluster at one time: rows in the column order of the schemas.

    The rows have ``cluster_id`` in front, null unless one was asked for.
    """

    members: list[Row]
    topics: list[Row]
    owned: list[Row]
    omitted: list[Omission]
    target: Sequence[Row] = ()
    leaders: Sequence[Row] = ()
    offsets: Sequence[Row] | None = None
    """None: not asked for."""
    settings: Sequence[Row] = ()
    sent: Mapping[tuple[str, str], tuple[str | None, bytes]] = {}
    """Of members of classic groups, by group_id and member_id: client id and subscription."""


def read_cluster(
    bootstrap_server: str,
    properties: Mapping[str, str] | None = None,
    *,
    cluster_id: str | None = None,
    consumer_groups: bool = True,
    offsets: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> ClusterTables:
    """Read every consumer group of a cluster, and all its topics.

    What the columns hold, beyond their names:

    - ``member_seq`` is the member's place in the coordinator's answer, from 0.
    - ``assignor`` is the one that the group chose from its members' lists.
    - ``topics`` has resolved names; Kafka does not say that a member subscribed by a pattern.
    - ``owned`` is the assignment that a stable group now has, not the ``ownedPartitions`` of the
      subscriptions: those are from *before* the last rebalance, and always empty in an eager group.
      The next rebalance starts from the assignment, so planning does too.
    - ``generation`` fits that: all members of a stable group own their partitions in the same, the
      current generation. Kafka does not show its number, but every member says the one before it
      joined: so it is at least one more than the highest of those, and 1 in a group that was new.
      Assignors only compare the numbers of members with one another, which are equal here.
    - ``topics.replica_racks`` counts all replicas, in sync or not, as Kafka's assignors do; a
      broker without a rack adds nothing; null when no broker of the cluster has one.
    - Internal topics are there: a group may subscribe to them by name. Patterns leave them out.

    A coordinator shows subscriptions only of stable groups. A group in the middle of a rebalance is
    asked again for some seconds, then left out. Left out as a whole, so that no plan is made from a
    part of a group, are also groups without members, of other protocols (Kafka Connect; share and
    streams groups), with a member whose bytes cannot be decoded, and those that may not be
    described.

    ``leaders`` are those of ``__consumer_offsets``, whose leaders coordinate the groups. Offsets
    are of every partition of the topics that a group's members subscribe to or own, a row per group
    and partition, ``as_of`` the moment at which the leader had answered, by this machine's clock.

    Groups of the new protocol (KIP-848), where the broker assigns, can be described in any state.
    Their ``group_type`` is `consumer`, their members' ``generation`` the member's epoch (-2: static
    and away), ``assignor`` the group's choice, ``owned`` what a member has been given and has not
    said to have given up, ``target`` what it is to have, in the coordinator's own order;
    ``settings`` are the group's own or the broker's defaults, where one may read them.

    Args:
        bootstrap_server: ``host:port``, or several with commas.
        properties: Of a Java client; see ``client_properties``.
        cluster_id: Name for column ``cluster_id``, for those who have several clusters.
        consumer_groups: Whether to read groups of the new protocol too; else they are left out.
        offsets: Whether to read begin, end and committed offsets too.
        progress: Called with a line of text now and then.

    Raises:
        ClusterError: the cluster cannot be reached or read, or kafka-python is not installed.
        SettingsError: a property is not understood; only its key is named.
    """
    with admin_client(bootstrap_server, properties or {}) as admin:
        racks = racks_of(admin.describe_cluster()["brokers"])
        progress(f"connected to {bootstrap_server}: {len(racks)} brokers")
        described_topics = admin.describe_topics()
        topics, omitted = topic_rows(described_topics, racks, cluster_id)
        progress(f"{len(topics)} topics")
        groups, reasons = stable_groups(admin, sorted(racks), progress)
        members, owned = group_rows(groups, cluster_id)
        target: list[Row] = []
        settings: list[Row] = []
        omitted_settings: dict[str, str] = {}
        if consumer_groups:
            described = describe_consumer_groups(admin, consumer_group_names(admin, sorted(racks)))
            names = sorted({row[0] for row in described.members})
            progress(f"described {len(names)} groups of the new protocol")
            members += [(cluster_id, *row) for row in described.members]
            owned += [(cluster_id, *row) for row in described.owned]
            target = [(cluster_id, *row) for row in described.target]
            reasons = {name: reason for name, reason in reasons.items() if reason != NOT_ASKED_FOR}
            reasons |= described.reasons
            rows, omitted_settings = describe_group_settings(admin, names)
            settings = [(cluster_id, *row) for row in rows]
        omitted += _omissions(reasons, "group") + _omissions(omitted_settings, "settings")
        read_result = None
        if offsets:
            read = topics_of(members, owned)
            read_result = read_offsets(admin, sorted(racks), read, described_topics, progress)
            omitted += _omissions(read_result.groups, "commits")
            omitted += _omissions(read_result.partitions, "offsets")
    return ClusterTables(
        members,
        topics,
        owned,
        omitted,
        target,
        leader_rows(described_topics, cluster_id),
        None if read_result is None else [(cluster_id, *row) for row in read_result.rows],
        settings,
        {
            (group.group_id, member.member_id): (member.client_id, member.subscription)
            for group in groups
            for member in group.members
        },
    )


def read_topics(
    bootstrap_server: str,
    properties: Mapping[str, str],
    spark: SparkSession,
    *,
    cluster_id: str | None = None,
) -> Snapshot:
    """Read a cluster's topics and the leaders of ``__consumer_offsets``, and no group.

    Raises:
        ClusterError: the cluster cannot be reached or read, or kafka-python is not installed.
        SettingsError: a property is not understood; only its key is named.
    """
    with admin_client(bootstrap_server, properties) as admin:
        racks = racks_of(admin.describe_cluster()["brokers"])
        described = admin.describe_topics()
        topics, omitted = topic_rows(described, racks, cluster_id)
        leaders = leader_rows(described, cluster_id)
    return to_snapshot(ClusterTables([], topics, [], omitted, leaders=leaders), spark)


def to_snapshot(tables: ClusterTables, spark: SparkSession) -> Snapshot:
    """Return the rows as DataFrames; ``cluster_id`` is absent where none was asked for.

    So are the columns and the table of the new protocol where no such group was read.
    """
    has_clusters = any(row[0] is not None for row in tables.members + tables.topics)
    has_new = any(row[-1] is not None for row in tables.members)

    def frame(rows: Sequence[Row], schema: StructType) -> DataFrame:
        created = spark.createDataFrame(rows, schema)
        if not has_new:
            created = created.drop("topics_regex", "group_type")
        return created if has_clusters else created.drop(CLUSTER_ID)

    # What members can take, and who leads, is nothing that a cluster says.
    unknown = ("capacity", "is_leader", "client", *(() if tables.sent else SIGNS))
    known_of_members = [field for field in MEMBERS.columns if field.name not in unknown]
    member_rows: Sequence[Row] = tables.members
    if tables.sent:
        member_rows = [(*r, *tables.sent.get((r[1], r[2]), (None, None))) for r in member_rows]
    members = frame(member_rows, StructType(known_of_members))
    return Snapshot(
        _sort_members(with_clients(members)) if tables.sent else members,
        frame(tables.topics, TOPICS.columns),
        frame(tables.owned, OWNED.columns),
        frame(tables.target, TARGET.columns) if has_new else None,
        None if tables.offsets is None else frame(tables.offsets, OFFSETS.columns),
        frame(tables.leaders, LEADERS.columns) if tables.leaders else None,
        frame(tables.settings, GROUP_SETTINGS.columns) if has_new else None,
    )


def _sort_members(members: DataFrame) -> DataFrame:
    return members.select(*(name for name in MEMBERS.columns.names if name in members.columns))


def _omissions(reasons: Mapping[str, str], kind: str) -> list[Omission]:
    return [Omission(kind, name, reasons[name]) for name in sorted(reasons)]
