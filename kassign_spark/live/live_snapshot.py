"""A live Kafka cluster's consumer groups as the tables of the design, through kafka-python.

Java's admin client shows only what members were assigned; kafka-python's also decodes what they
said when they joined: subscription, rack, owned partitions, generation.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kassign_spark.live.admin import admin_client, batches
from kassign_spark.live.cluster_rows import (
    Omission,
    clients_of,
    group_rows,
    leader_rows,
    racks_of,
    short_subscription,
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

_ATTEMPTS = 4
_PAUSE_SECONDS = 1.0


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
    clients: Mapping[tuple[str, str], str] = {}
    """Of members by group_id and member_id, where it is known and not Java's."""


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
        groups, reasons = _stable_groups(admin, sorted(racks), progress)
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
        clients_of(groups),
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
    """The rows as DataFrames; ``cluster_id`` is absent where none was asked for.

    So are the columns and the table of the new protocol where no such group was read.
    """
    named = any(row[0] is not None for row in tables.members + tables.topics)
    has_new = any(row[-1] is not None for row in tables.members)

    def frame(rows: Sequence[Row], schema: StructType) -> DataFrame:
        created = spark.createDataFrame(rows, schema)
        if not has_new:
            created = created.drop("topics_regex", "group_type")
        return created if named else created.drop(CLUSTER_ID)

    # What members can take, and who leads, is nothing that a cluster says.
    unknown = ("capacity", "is_leader", *(() if tables.clients else ("client",)))
    known_of_members = [field for field in MEMBERS.columns if field.name not in unknown]
    members: Sequence[Row] = tables.members
    if tables.clients:
        members = [(*row, tables.clients.get((row[1], row[2]))) for row in members]
    return Snapshot(
        frame(members, StructType(known_of_members)),
        frame(tables.topics, TOPICS.columns),
        frame(tables.owned, OWNED.columns),
        frame(tables.target, TARGET.columns) if has_new else None,
        None if tables.offsets is None else frame(tables.offsets, OFFSETS.columns),
        frame(tables.leaders, LEADERS.columns) if tables.leaders else None,
        frame(tables.settings, GROUP_SETTINGS.columns) if has_new else None,
    )


def _stable_groups(
    admin: Any, brokers: Sequence[int], progress: Callable[[str], None]
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Descriptions of all stable groups by name, and the others with the reason.

    Each broker lists the groups that it coordinates, so no look-up of coordinators is needed; a
    group whose coordinator moves meanwhile is found with its new one at the next attempt.
    """
    stable: dict[str, dict[str, Any]] = {}
    reasons: dict[str, str] = {}
    pending: set[str] | None = None
    for attempt in range(_ATTEMPTS):
        if attempt:
            progress(f"{len(pending or ())} groups are not stable, asking again")
            time.sleep(_PAUSE_SECONDS)
        listed = {broker: _wanted(admin, broker, pending, reasons) for broker in brokers}
        pending, total = set(), sum(map(len, listed.values()))
        done = 0
        for broker, names in listed.items():
            for batch in batches(names):
                for group_id, group in _described(admin, batch, broker).items():
                    reason = _reason_to_omit(group)
                    if reason is None:
                        stable[group_id] = group
                        reasons.pop(group_id, None)
                    else:
                        reasons[group_id] = reason
                        if _may_settle(group):
                            pending.add(group_id)
                done += len(batch)
                progress(f"described {done} of {total} groups")
        if not pending:
            break
    return [stable[group_id] for group_id in sorted(stable)], reasons


def _omissions(reasons: Mapping[str, str], kind: str) -> list[Omission]:
    return [Omission(kind, name, reasons[name]) for name in sorted(reasons)]


def _wanted(
    admin: Any, broker: int, pending: set[str] | None, reasons: dict[str, str]
) -> list[str]:
    """Names of a broker's classic consumer groups; the reasons get those of other kinds."""
    names = []
    for group in admin.list_groups(broker_ids=[broker]):
        name = group["group_id"]
        kind = (group.get("group_type") or "classic").lower()
        protocol = group["protocol_type"]
        if pending is not None:
            if name in pending:
                names.append(name)
        elif kind == "consumer":
            reasons[name] = NOT_ASKED_FOR
        elif kind != "classic":
            reasons[name] = f"a {kind} group, not a consumer group"
        elif protocol not in ("consumer", ""):
            reasons[name] = f"protocol type {protocol}, not consumer"
        else:
            names.append(name)
    return sorted(names)


def _described(admin: Any, names: Sequence[str], broker: int) -> dict[str, dict[str, Any]]:
    """Describe groups in one request or, if bytes of a member break that, one by one.

    The bytes of kafka-go, which end too soon for the decoder, are decoded here.
    """
    described: dict[str, dict[str, Any]] = {}
    try:
        described |= admin.describe_groups(names, group_coordinator_id=broker)
    except (ValueError, IndexError, TypeError):  # kafka-python's decoder, on malformed bytes
        if len(names) == 1:
            return {names[0]: {"error": "a member's bytes cannot be decoded", "members": []}}
        for each in names:
            described |= _described(admin, [each], broker)
    for group in described.values():
        for member in group["members"]:
            if isinstance(member["member_metadata"], str):
                short = short_subscription(member["member_metadata"])
                member["member_metadata"] = short or member["member_metadata"]
    return described


def _reason_to_omit(group: Mapping[str, Any]) -> str | None:
    if group["error"]:
        return str(group["error"])
    if not group["members"]:
        return "no members"
    if group["group_state"] != "Stable":
        return f"state {group['group_state']}: a coordinator shows only stable groups' members"
    for member in group["members"]:
        for part in ("member_metadata", "member_assignment"):
            if not isinstance(member[part], Mapping) and (member[part] or part.endswith("data")):
                return f"member {member['member_id']}: its {part} cannot be decoded"
    return None


def _may_settle(group: Mapping[str, Any]) -> bool:
    """Rebalancing, or its coordinator is loading or moving (errors 14, 15 and 16)."""
    if group["error"]:
        return bool(re.match(r"\[Error 1[456]\]", str(group["error"])))
    return bool(group["members"]) and group["group_state"] != "Stable"
