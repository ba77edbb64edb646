"""Groups in texts of Kafka's tools: several texts become one state, or are refused."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from kassign_spark.display import format_value, plural
from kassign_spark.errors import InputError
from kassign_spark.live.describe_text import (
    NO_MEMBERS,
    NONE,
    Remark,
    Row,
    Section,
    parse_assignment,
)
from kassign_spark.live.text_lines import whole_number

_LARGEST_PARTITION = 2**31 - 2
_LARGEST_OFFSET = 2**63 - 1

TopicPartition = tuple[str, int]


@dataclass
class Member:
    """A member, from tables of members, or known only by its partitions."""

    where: str
    group_instance_id: str | None = None
    epoch: int | None = None
    """The member epoch, in the new protocol."""
    count: int | None = None
    """The number of partitions, as the tool prints it."""
    assigned: list[TopicPartition] | None = None
    """None: the text does not say."""
    target: list[TopicPartition] | None = None


@dataclass
class DescribedGroup:
    """All that the texts say of a group."""

    group_id: str
    members: dict[str, Member] | None = None
    """In the coordinator's order; None: no table of members."""
    owners: dict[TopicPartition, list[tuple[str, str]]] | None = None
    """The owner of each partition, and the line; None: no table of offsets."""
    offsets: dict[TopicPartition, tuple[int, int, datetime]] = field(default_factory=dict)
    """Committed, end, and when; of partitions with both."""
    topics: dict[str, int] = field(default_factory=dict)
    """The highest partition that is named, of topics without an owner too."""
    assignor: str | None = None
    state: str | None = None
    remarks: dict[str, str] = field(default_factory=dict)
    """Reasons by line."""

    @property
    def is_new(self) -> bool:
        """Return whether it uses the new protocol, whose members have epochs."""
        return self.has_epochs or self.assignor == "uniform"

    @property
    def has_epochs(self) -> bool:
        """Return whether the text has all that a group has in the middle of a rebalance."""
        return any(member.epoch is not None for member in (self.members or {}).values())

    def owned(self) -> list[tuple[str, str, int]]:
        """Return member, topic and partition, sorted; if both tables have them, they are equal."""
        if self.owners is not None:
            claims = [(m, *tp) for tp, claims in self.owners.items() for m, _ in claims]
        else:
            claims = [
                (m, *tp)
                for m, member in (self.members or {}).items()
                for tp in member.assigned or ()
            ]
        return sorted(claims)

    def reason_to_omit(self) -> str | None:
        """Return why the rows are not those of a settled group; None: they are."""
        names = set(self.members or ()) | {member for member, _, _ in self.owned()}
        is_settled = self.has_epochs or (
            "rebalancing" not in self.remarks.values() and self.state in (None, "Stable")
        )
        if names and not is_settled:
            return "it was rebalancing, and what its members own is not settled"
        if not names:
            others = [r for r in self.remarks.values() if r != NO_MEMBERS]
            unknown = self.state not in (None, "Empty", "Dead") or "rebalancing" in others
            return "its members are in no text" if unknown else (others or [NO_MEMBERS])[0]
        if self.owners is None and any(
            member.assigned is None and member.count for member in (self.members or {}).values()
        ):
            return "what its members own is in no text: add one of --describe, without --members"
        return None


def group_states(sections: Iterable[Section], remarks: Iterable[Remark]) -> list[DescribedGroup]:
    """Merge what tables and remarks say about each group, by name.

    Raises:
        InputError: two tables contradict each other, or a cell is no value of its column; the text
            names the lines.
    """
    groups: dict[str, DescribedGroup] = {}
    for section in sections:
        for group_id, rows in _iterate_groups(section.rows):
            group = groups.setdefault(group_id, DescribedGroup(group_id))
            {"members": _add_members, "offsets": _add_offsets, "states": _add_state}[section.kind](
                group, rows, section.at
            )
    for remark in remarks:
        if remark.group_id is not None:
            group = groups.setdefault(remark.group_id, DescribedGroup(remark.group_id))
            group.remarks[remark.where] = remark.reason
    for group in groups.values():
        _refuse_disagreement(group)
    return [groups[name] for name in sorted(groups)]


def _iterate_groups(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.cells["GROUP"], []).append(row)
    yield from groups.items()


def _add_members(group: DescribedGroup, rows: list[Row], _: datetime) -> None:
    members: dict[str, Member] = {}
    for row in rows:
        member_id, member = row.cells["CONSUMER-ID"], _member(row)
        earlier = members.setdefault(member_id, member)
        if earlier is not member:
            raise InputError(f"{row.where}: member {member_id!r} is in {earlier.where} too")
    if group.members is None:
        group.members = members
        return
    _refuse_other_members(group.group_id, group.members, members)
    for member_id, member in members.items():
        earlier = group.members[member_id]
        same = ("group_instance_id", "epoch", "count", "assigned", "target")
        for name in same:
            old, new = getattr(earlier, name), getattr(member, name)
            if old is None:
                setattr(earlier, name, new)
            elif new is not None and old != new:
                raise _disagreement(group.group_id, earlier.where, member.where, f"{member_id!r}")


def _member(row: Row) -> Member:
    cells = row.cells
    assigned = target = None
    for column in ("ASSIGNMENT", "CURRENT-ASSIGNMENT"):
        if column in cells:
            assigned = _partitions(cells[column], row)
    epoch = cells.get("CURRENT-EPOCH", NONE)
    if epoch not in ("", NONE) and "TARGET-ASSIGNMENT" in cells:
        target = _partitions(cells["TARGET-ASSIGNMENT"], row)
    count = whole_number(cells["#PARTITIONS"], f"{row.where}, column #PARTITIONS", 2**31 - 1)
    if assigned is not None and len(assigned) != count:
        raise InputError(
            f"{row.where}: #PARTITIONS is {count}, and the assignment has {len(assigned)}: "
            "the line is cut"
        )
    return Member(
        row.where,
        # An empty cell is a dynamic member's; without the column nobody is static.
        cells.get("GROUP-INSTANCE-ID") or None,
        None if epoch in ("", NONE) else _epoch(epoch, row),
        count,
        assigned,
        target,
    )


def _epoch(cell: str, row: Row) -> int:
    """Return the epoch of a member; negative ones are of members that are away."""
    where = f"{row.where}, column CURRENT-EPOCH"
    epoch = whole_number(cell.removeprefix("-"), where, 2**31 - 1)
    return -epoch if cell.startswith("-") else epoch


def _partitions(cell: str, row: Row) -> list[TopicPartition] | None:
    partitions = parse_assignment(cell, row)
    for _, partition in partitions or ():
        whole_number(str(partition), row.where, _LARGEST_PARTITION)
    return None if partitions is None else sorted(partitions)


def _add_offsets(group: DescribedGroup, rows: list[Row], at: datetime) -> None:
    owners: dict[TopicPartition, list[tuple[str, str]]] = {}
    for row in rows:
        cells = row.cells
        if cells["PARTITION"] == NONE:  # a member without partitions, as some versions print it
            continue
        where = f"{row.where}, column "
        partition = whole_number(cells["PARTITION"], f"{where}PARTITION", _LARGEST_PARTITION)
        topic = cells["TOPIC"]
        group.topics[topic] = max(group.topics.get(topic, 0), partition)
        if cells["CONSUMER-ID"] != NONE:
            claims = owners.setdefault((topic, partition), [])
            if cells["CONSUMER-ID"] not in [member_id for member_id, _ in claims]:
                claims.append((cells["CONSUMER-ID"], row.where))
        numbers = [
            whole_number(cells[column], where + column, _LARGEST_OFFSET)
            for column in ("CURRENT-OFFSET", "LOG-END-OFFSET")
            if cells.get(column, NONE) != NONE
        ]
        if len(numbers) == 2:
            group.offsets[topic, partition] = (numbers[0], numbers[1], at)
    if group.owners is not None:
        _refuse_other_owners(group.group_id, group.owners, owners)
    group.owners = owners


def _add_state(group: DescribedGroup, rows: list[Row], _: datetime) -> None:
    for row in rows:
        state, strategy = row.cells["STATE"], row.cells["ASSIGNMENT-STRATEGY"]
        assignor = None if strategy in ("", NONE) else strategy
        if group.state is not None and (group.state, group.assignor) != (state, assignor):
            raise InputError(
                f"{row.where}: group {group.group_id!r} is {state} with assignor {assignor}, and "
                f"{group.state} with {group.assignor} before: {_ONE_MOMENT}"
            )
        group.state, group.assignor = state, assignor


_ONE_MOMENT = "give texts of one moment"


def _disagreement(group_id: str, place: str, other_place: str, subject: str) -> InputError:
    return InputError(
        f"group {group_id!r}: {subject} is not the same in {place} and in {other_place}: "
        f"{_ONE_MOMENT}"
    )


def _refuse_other_members(
    group_id: str, before: dict[str, Member], after: dict[str, Member]
) -> None:
    for member_id in [
        *(m for m in before if m not in after),
        *(m for m in after if m not in before),
    ]:
        where = (before.get(member_id) or after[member_id]).where
        raise InputError(
            f"group {group_id!r}: member {format_value(member_id)} of {where} is in no other of "
            f"its tables of members: {_ONE_MOMENT}"
        )


def _refuse_other_owners(
    group_id: str,
    one: dict[TopicPartition, list[tuple[str, str]]],
    other: dict[TopicPartition, list[tuple[str, str]]],
) -> None:
    for topic, partition in sorted(one.keys() | other.keys()):
        owners = [sorted(owners_of.get((topic, partition), ())) for owners_of in (one, other)]
        if [m for m, _ in owners[0]] != [m for m, _ in owners[1]]:
            names = [
                ", ".join(f"{m} ({where})" for m, where in claims) or "nobody" for claims in owners
            ]
            raise InputError(
                f"group {group_id!r}: {topic}-{partition} is with {names[0]} and with {names[1]}: "
                f"{_ONE_MOMENT}"
            )


def _refuse_disagreement(group: DescribedGroup) -> None:
    """Check that tables of members and of offsets agree."""
    if group.members is None or group.owners is None:
        return
    counts: dict[str, int] = dict.fromkeys(group.members, 0)
    for claims in group.owners.values():
        for member_id, where in claims:
            if member_id not in group.members:
                raise InputError(
                    f"{where}: {member_id!r} is not a member of group {group.group_id!r} in its "
                    f"table of members: {_ONE_MOMENT}"
                )
            counts[member_id] += 1
    claimants: dict[TopicPartition, list[tuple[str, str]]] = {}
    for member_id, member in group.members.items():
        for partition in member.assigned or ():
            claimants.setdefault(partition, []).append((member_id, member.where))
        if member.assigned is None and member.count not in (None, counts[member_id]):
            raise InputError(
                f"{member.where}: member {member_id!r} has {plural(member.count or 0, 'partition')}"
                f", and {counts[member_id]} in the table of offsets: {_ONE_MOMENT}"
            )
    if all(member.assigned is not None for member in group.members.values()):
        _refuse_other_owners(group.group_id, claimants, group.owners)
