"""A snapshot from the printed output of Kafka's own tools."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kassign_spark.display import plural
from kassign_spark.errors import InputError
from kassign_spark.live.cluster_rows import Omission
from kassign_spark.live.consumer_protocol_groups import Row
from kassign_spark.live.describe_text import NO_MEMBERS, Remark, Section, read_groups
from kassign_spark.live.described_groups import DescribedGroup, Member, group_states
from kassign_spark.live.live_snapshot import ClusterTables
from kassign_spark.live.text_lines import read_text
from kassign_spark.live.topics_text import DescribedTopic, leaders_of_offsets, read_described_topics

_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")


class Described(NamedTuple):
    """The tables, and in sentences what in them the texts do not say."""

    tables: ClusterTables
    notes: list[str]


def read_described(
    files: Sequence[str], topics: str | None = None, *, cluster_id: str | None = None
) -> Described:
    """Read texts of ``kafka-consumer-groups.sh --describe``.

    What the columns hold, where a live snapshot has more:

    - ``topics`` of a member are all topics of which a member of its group owns a partition: the
      tool prints no subscriptions. ``topics_pattern``, ``rack_id`` and ``replica_racks`` are null.
    - ``generation`` is null, of members of the new protocol their epoch, where the text has it.
    - ``member_seq`` is the place in a table of members, null where there is none: the table of
      offsets has another order, and no members without partitions.
    - ``assignor`` is that of a table of ``--state``, else null.
    - ``num_partitions`` is that of ``topics``, else the highest partition in the texts and one.
    - ``offsets`` has the partitions with a committed offset, which is the ``begin_offset`` too (the
      end, where it is less); ``as_of`` is the time at which the file was last written.

    Args:
        files: of one moment; ``GROUP=FILE`` names the group of a text without a column GROUP.
        topics: a text of ``kafka-topics.sh --describe``.
        cluster_id: Name for column ``cluster_id``, for those who have several clusters.

    Raises:
        InputError: a file cannot be read or is not such a text, or two of them contradict
            each other; the text names file and line.
    """
    sections: list[Section] = []
    remarks: list[Remark] = []
    for file in files:
        group_id, path = _group_and_path(file)
        text = read_text(path)
        tables, notes = read_groups(text, group_id)
        if not tables and not notes:
            raise InputError(f"{path}: has no table of kafka-consumer-groups.sh --describe")
        sections += tables
        remarks += notes
    described = None if topics is None else read_described_topics(read_text(topics))
    groups = group_states(sections, remarks)
    reasons = {group.group_id: group.reason_to_omit() for group in groups}
    settled = [group for group in groups if reasons[group.group_id] is None]
    if not settled:
        raise InputError(f"{files[0]}: no group can be read: {_why_none(reasons, remarks)}")
    omitted = [
        Omission("group", name, reason) for name, reason in reasons.items() if reason is not None
    ]
    omitted += [Omission("line", r.where, r.reason) for r in remarks if r.group_id is None]
    cluster = ClusterTables(
        [row for group in settled for row in _members(group, cluster_id)],
        [(cluster_id, *row) for row in _topics(settled, described)],
        [(cluster_id, group.group_id, *row) for group in settled for row in group.owned()],
        omitted,
        [row for group in settled for row in _target(group, cluster_id)],
        [(cluster_id, *row) for row in leaders_of_offsets(described or {})],
        _offsets(settled, cluster_id),
    )
    return Described(cluster, _notes(settled, described, cluster))


def _group_and_path(file: str) -> tuple[str | None, str]:
    if "=" in file and not Path(file).exists():
        group_id, _, path = file.partition("=")
        if group_id:
            return group_id, path
    return None, file


def _why_none(reasons: dict[str, str | None], remarks: Sequence[Remark]) -> str:
    for name, reason in sorted(reasons.items(), key=lambda item: item[1] == NO_MEMBERS):
        return f"group {name!r}: {reason}"
    return remarks[0].reason if remarks else "there is none in the text"


def _members(group: DescribedGroup, cluster_id: str | None) -> list[Row]:
    owned = group.owned()
    topics = sorted({topic for _, topic, _ in owned})
    members = group.members
    has_order = members is not None
    if members is None:
        members = {name: Member("") for name in sorted({member for member, _, _ in owned})}
    return [
        (
            *(cluster_id, group.group_id, member_id, member.group_instance_id, None),
            *(topics, None, member.epoch, seq if has_order else None),
            *(group.assignor, None, "consumer" if group.is_new else None),
        )
        for seq, (member_id, member) in enumerate(members.items())
    ]


def _target(group: DescribedGroup, cluster_id: str | None) -> list[Row]:
    """Return the target of a new-protocol group; without epochs it is what members own."""
    if not group.is_new:
        return []
    target_rows = [
        (member_id, *partition)
        for member_id, member in (group.members or {}).items()
        for partition in member.target or ()
    ]
    rows = target_rows if group.has_epochs else group.owned()
    return [(cluster_id, group.group_id, *row, None) for row in rows]


def _topics(
    groups: Sequence[DescribedGroup], described: dict[str, DescribedTopic] | None
) -> list[Row]:
    """Return the described topics, and of others what the groups' texts show."""
    topics = described or {}
    rows: dict[str, Row] = {}
    for name, topic in topics.items():
        has_id = topic.topic_id and _TOPIC_ID.fullmatch(topic.topic_id)
        rows[name] = (name, topic.num_partitions, None, topic.topic_id if has_id else None)
    counts: dict[str, int] = {}
    for group in groups:
        for name, highest in group.topics.items():
            counts[name] = max(counts.get(name, 0), highest + 1)
        for _, name, partition in group.owned():
            counts[name] = max(counts.get(name, 0), partition + 1)
    for name in counts.keys() - rows.keys():
        rows[name] = (name, counts[name], None, None)
    return [rows[name] for name in sorted(rows)]


def _offsets(groups: Sequence[DescribedGroup], cluster_id: str | None) -> list[Row] | None:
    rows = [
        (cluster_id, group.group_id, topic, partition, min(committed, end), end, committed, at)
        for group in groups
        for (topic, partition), (committed, end, at) in sorted(group.offsets.items())
    ]
    return rows or None


def _notes(
    groups: Sequence[DescribedGroup],
    described: dict[str, DescribedTopic] | None,
    tables: ClusterTables,
) -> list[str]:
    """Return what the texts do not contain, one sentence each."""
    notes = [
        "such texts have no subscriptions: each member's topics are those that its group's members "
        "own",
        "they have no patterns and no racks, and of classic groups no generation: these are null",
    ]
    if unnamed := [group for group in groups if group.assignor is None]:
        notes.append(
            f"the assignor of {plural(len(unnamed), 'group')} is in no text: add one of --describe "
            "--state, or name it later (--assignor)"
        )
    if unlisted := [group for group in groups if group.members is None]:
        notes.append(
            f"of {plural(len(unlisted), 'group')} there is no table of members: members without "
            "partitions, their order and group.instance.id are in one of --members --verbose"
        )
    count = len([row for row in tables.topics if row[1] not in (described or {})])
    if count:
        source = "--topics does not have" if described is not None else "have, without --topics,"
        notes.append(f"{plural(count, 'topic')} {source} the partitions that groups name, no more")
    if tables.offsets:
        notes.append(
            "begin offsets are in no text: in the table offsets they are the committed ones"
        )
    return notes
