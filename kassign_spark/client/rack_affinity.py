"""kafka-go's `rack-affinity`: each topic is dealt to members in the racks of its leaders.

Go draws the order of racks anew each time: where racks compete for the longer shares, and in what
order they give away what no member of theirs takes. The rules are compared with the library itself
(``tests/clients/test_rack_affinity.py``).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from kassign_spark.client.group_state import (
    DRAWN,
    INEXACT,
    OK,
    GroupState,
    Layout,
    Outcome,
    readers_of_topics,
)

_BY_RACK = "kafka-go goes through racks in an order that Go draws anew each time"
_UNKNOWN_RACKS = (
    "kafka-go looks at the racks of members and of partition leaders, and rack_id or "
    "replica_racks is not known"
)
_UNKNOWN_ORDER = "kafka-go looks at the order of members in JoinGroup, and member_seq is not known"


class _Topic(NamedTuple):
    """A topic as kafka-go deals it.

    Attributes:
        readers: members that subscribe to it, in the order of the JoinGroup response.
        readers_in: of each rack.
        partitions_in: partitions whose leader is in the rack, ascending.
    """

    readers: Sequence[int]
    readers_in: Mapping[str, Sequence[int]]
    partitions_in: Mapping[str, Sequence[int]]

    @property
    def share(self) -> int:
        """Return how many partitions each reader gets at least."""
        return sum(map(len, self.partitions_in.values())) // len(self.readers)

    @property
    def longer_count(self) -> int:
        """Return how many readers get one more."""
        return sum(map(len, self.partitions_in.values())) % len(self.readers)

    def share_in(self, rack: str) -> int:
        """Return how many partitions of its own rack each reader in it gets first."""
        return min(len(self.partitions_in[rack]) // len(self.readers_in[rack]), self.share)

    def longer_in(self, rack: str) -> int:
        """Return how many readers of a rack could have one more of its partitions."""
        readers = len(self.readers_in[rack])
        return min(len(self.partitions_in[rack]) - readers * self.share_in(rack), readers)


class _Deal(NamedTuple):
    """A topic that has been dealt.

    Attributes:
        by_reader: partitions of each reader.
        left: what each rack's own readers did not take.
        takers: readers that got some of that, in their order.
    """

    by_reader: dict[int, list[int]]
    left: dict[str, list[int]]
    takers: list[int]


def predict_rack_affinity(state: GroupState, layout: Layout) -> Outcome:
    """Return the answer, if there is only one; otherwise `drawn`, and what is certain."""
    assigned: list[list[int]] = [[] for _ in state.member_ids]
    least, most = [0] * len(assigned), [0] * len(assigned)
    are_sizes_certain, is_certain = True, True
    for topic in _topics(state, layout).values():
        deal = _deal(topic, sorted(topic.readers_in), sorted(topic.partitions_in))
        for member, partitions in deal.by_reader.items():
            assigned[member] += partitions
        competes = _competes_for_longer_shares(topic)
        for member in topic.readers:
            size = len(deal.by_reader[member])
            least[member] += topic.share if competes else size
            most[member] += topic.share + 1 if competes else size
        are_sizes_certain &= not competes
        # One taker gets all that is left, in whatever order.
        is_certain &= not competes and (len(deal.left) < 2 or len(deal.takers) < 2)
    unsure = _unsure(state)
    if unsure or is_certain:
        return Outcome(INEXACT if unsure else OK, unsure, assigned, {}, layout)
    sentence = (
        "how many partitions each member gets is certain"
        if are_sizes_certain
        else f"no member gets fewer than {min(least)} or more than {max(most)} partitions"
    )
    return Outcome(DRAWN, f"{_BY_RACK}; {sentence}", [[] for _ in assigned], {}, layout)


def may_draw_by_rack(
    state: GroupState, layout: Layout, assigned: Sequence[Collection[tuple[str, int]]]
) -> bool:
    """Return whether members may have got these partitions, topic and number, by lot.

    What they got tells an order of racks that gives it, if there is one.
    """
    owners: dict[str, dict[int, int]] = {}
    for member, partitions in enumerate(assigned):
        for name, number in partitions:
            if owners.setdefault(name, {}).setdefault(number, member) != member:
                return False
    topics = _topics(state, layout)
    if not owners.keys() <= topics.keys():
        return False
    for name, topic in topics.items():
        first = layout.starts[layout.index[name]]
        owner = {first + number: member for number, member in owners.get(name, {}).items()}
        deal = _deal(topic, *_orders(topic, owner))
        if {p: reader for reader, own in deal.by_reader.items() for p in own} != owner:
            return False
    return True


def _topics(state: GroupState, layout: Layout) -> dict[str, _Topic]:
    """Return each topic that somebody reads, by name."""
    racks = dict(zip(state.topics, state.replica_racks or [None] * len(state.topics), strict=True))
    in_order = readers_of_topics(state, layout, [*range(len(state.member_ids))])
    topics = {}
    for number, readers in enumerate(in_order):
        of_leaders = racks[layout.topics[number]] or ()
        readers_in: dict[str, list[int]] = {}
        partitions_in: dict[str, list[int]] = {}
        for member in readers:
            readers_in.setdefault(state.member_racks[member] or "", []).append(member)
        for place, partition in enumerate(layout.existing(number)):
            replicas = of_leaders[place] if place < len(of_leaders) else ()
            rack = replicas[0] if replicas else None
            partitions_in.setdefault(rack or "", []).append(partition)
        if readers:
            topics[layout.topics[number]] = _Topic(readers, readers_in, partitions_in)
    return topics


def _deal(topic: _Topic, first_racks: Sequence[str], later_racks: Sequence[str]) -> _Deal:
    """Deal a topic; the racks are in the order in which they give to their readers, and later."""
    by_reader: dict[int, list[int]] = {member: [] for member in topic.readers}
    left = {rack: [*partitions] for rack, partitions in topic.partitions_in.items()}
    longer_count = topic.longer_count
    for rack in first_racks:
        if rack not in left:
            continue
        partitions, longer = iter(topic.partitions_in[rack]), topic.longer_in(rack)
        for member in topic.readers_in[rack]:
            by_reader[member] += _next(partitions, topic.share_in(rack))
        if topic.share_in(rack) == topic.share:
            longer = min(longer, longer_count)
            longer_count -= longer
        for member in topic.readers_in[rack][:longer]:
            by_reader[member] += _next(partitions, 1)
        left[rack] = [*partitions]
    left = {rack: partitions for rack, partitions in left.items() if partitions}
    remaining = (partition for rack in later_racks for partition in left.get(rack, ()))
    takers = []
    for member in topic.readers:
        count = topic.share - len(by_reader[member])
        if count >= 0 and longer_count:
            count, longer_count = count + 1, longer_count - 1
        if count > 0:
            by_reader[member] += _next(remaining, count)
            takers.append(member)
    return _Deal(by_reader, left, takers)


def _next(partitions: Iterator[int], count: int) -> list[int]:
    return [next(partitions) for _ in range(count)]


def _full_racks(topic: _Topic) -> list[str]:
    """Return racks whose readers all get their share in it, so that it can give longer ones."""
    return [
        rack
        for rack in topic.readers_in
        if rack in topic.partitions_in and topic.share_in(rack) == topic.share
    ]


def _competes_for_longer_shares(topic: _Topic) -> bool:
    """Return whether the order of racks decides whose readers get the longer shares."""
    counts = [topic.longer_in(rack) for rack in _full_racks(topic)]
    return 0 < topic.longer_count < sum(counts) and counts.count(0) < len(counts) - 1


def _orders(topic: _Topic, owner: Mapping[int, int]) -> tuple[list[str], list[str]]:
    """Return the orders of racks, first and later, that give this if any do."""
    sizes = dict.fromkeys(topic.readers, 0)
    for member in owner.values():
        sizes[member] = sizes.get(member, 0) + 1
    full = {*_full_racks(topic)}

    def longer_shares(rack: str) -> tuple[bool, int]:
        """Return a sort key: racks that gave all their longer shares come first."""
        if rack not in full:
            return False, 0
        count = sum(sizes[member] > topic.share for member in topic.readers_in[rack])
        return count < topic.longer_in(rack), -count

    first_racks = sorted(topic.readers_in, key=longer_shares)
    left = _deal(topic, first_racks, sorted(topic.partitions_in)).left
    place = {member: n for n, member in enumerate(topic.readers)}

    def takers(rack: str) -> tuple[int, int]:
        """Return a sort key: places of the first and last reader of what the rack leaves."""
        places = [place.get(owner.get(partition, -1), -1) for partition in left.get(rack, ())]
        return (places[0], places[-1]) if places else (-1, -1)

    return first_racks, sorted(topic.partitions_in, key=takers)


def _unsure(state: GroupState) -> str | None:
    if None in (state.replica_racks or (None,)) or not any(state.member_racks):
        return _UNKNOWN_RACKS
    return None if state.is_order_known or len(state.member_ids) == 1 else _UNKNOWN_ORDER
