"""One group as the model sees it: names outside, small integers inside."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from kassign_spark.client.hash_order import sort_as_java
from kassign_spark.client_libraries import JAVA

OK, THROWS, NEVER_ENDS, INEXACT = "ok", "throws", "never_ends", "inexact"
NEVER_SETTLES = "never_settles"
"""Verdict on a sequence of rounds, not on a single one."""
STARVES, UNDEFINED, DRAWN = "starves", "undefined", "drawn"
"""Verdicts on other clients than Java's: nobody gets anything; the library's code has no answer;
chance decides who gets what."""
FAILING = (THROWS, NEVER_ENDS, STARVES, UNDEFINED)
"""Verdicts on groups whose members get nothing."""
UNANSWERED = (*FAILING, DRAWN)
"""Verdicts without an answer that could be compared with another."""
WORST_FIRST = (NEVER_ENDS, THROWS, STARVES, UNDEFINED, NEVER_SETTLES, DRAWN, INEXACT, OK)


@dataclass(frozen=True, slots=True)
class GroupState:
    """The state that a group's leader receives when a rebalance begins.

    The lists named ``member_...`` and ``subscriptions`` have one element per member, in the order
    of the JoinGroup response; those named ``claim_...`` one per claimed partition.

    Attributes:
        assignor: range, sticky or cooperative-sticky.
        member_ids: distinct.
        subscriptions: topic names, those without metadata included.
        member_racks: ``client.rack``; null and empty: none.
        member_instances: ``group.instance.id`` or None.
        generations: in which the member says that it owned what it claims; -1 for none. Of
            `sticky` as its user data has it, of `cooperative-sticky` as the subscription has it.
        field_generations: as the subscription's own field has it, whichever the assignor.
        claim_members: positions in ``member_ids``.
        claim_topics: names.
        claim_partitions: numbers from 0, existing or not.
        topics: names of the topics with metadata; any order.
        num_partitions: of each topic.
        replica_racks: for each topic and partition the racks of its replicas; None for a topic
            of which none is known.
        is_order_known: whether members are really in the order of the JoinGroup response.
        clients: those of ``client_libraries.CLIENTS`` that may lead: one, unless members run
            several and the leader is not known.
        leader: position of the member that leads the group; None: not known.
        has_positions: whether the claims of each member are in the order of its list.
        member_clients: the library that each member runs; empty: Java's client in all.
    """

    assignor: str
    member_ids: Sequence[str]
    subscriptions: Sequence[Sequence[str]]
    topics: Sequence[str]
    num_partitions: Sequence[int]
    member_racks: Sequence[str | None]
    member_instances: Sequence[str | None]
    generations: Sequence[int]
    field_generations: Sequence[int]
    claim_members: Sequence[int] = ()
    claim_topics: Sequence[str] = ()
    claim_partitions: Sequence[int] = ()
    replica_racks: Sequence[Sequence[Sequence[str | None]] | None] = ()
    is_order_known: bool = True
    clients: Sequence[str] = (JAVA,)
    leader: int | None = None
    has_positions: bool = False
    member_clients: Sequence[str] = ()

    @property
    def client(self) -> str:
        """Return the library that leads, if only one can."""
        return self.clients[0]

    def claims(self) -> Iterator[tuple[int, str, int]]:
        """Return the position of the member, topic and number of each claim."""
        return zip(self.claim_members, self.claim_topics, self.claim_partitions, strict=True)

    def with_claims(self, claims: Sequence[tuple[int, str, int]]) -> "GroupState":
        """Return the same group with other claims."""
        return replace(
            self,
            claim_members=[member for member, _, _ in claims],
            claim_topics=[topic for _, topic, _ in claims],
            claim_partitions=[partition for _, _, partition in claims],
        )


class Draws(NamedTuple):
    """What is known of an answer by lot.

    Attributes:
        answers: some that were drawn, each like ``Outcome.assigned``.
        sizes: how many partitions each member gets in any case, with those that it gets later;
            None: that is not certain.
        sorted_sizes: the same, ascending, where it is not certain who gets how many; None: neither
            is this.
        kept_count: how many partitions stay with their owners; None: that is not certain.
    """

    answers: Sequence[list[list[int]]] = ()
    sizes: list[int] | None = None
    sorted_sizes: list[int] | None = None
    kept_count: int | None = None


class Outcome(NamedTuple):
    """The client's result for a group.

    Attributes:
        verdict: ok, throws, never_ends or inexact.
        detail: why, where the verdict is not ok; or that partitions are given which do not exist.
        assigned: ids of partitions by position of the member; empty where there is no answer.
        withheld: partitions that `cooperative-sticky` holds back for a round, with the member that
            is to have them.
        layout: what the ids stand for.
        is_misled: whether claims of partitions that do not exist make the client throw or give
            away what it cannot.
        draws: of a verdict by lot.
    """

    verdict: str
    detail: str | None
    assigned: list[list[int]]
    withheld: dict[int, int]
    layout: "Layout"
    is_misled: bool = False
    draws: Draws = Draws()


def withholding(
    assigned: list[list[int]], moving: dict[int, int], unsure: str | None, layout: "Layout"
) -> Outcome:
    """Return a plan without its withheld partitions; ``unsure`` says why it may be inexact."""
    for partition, member in moving.items():
        assigned[member].remove(partition)
    return Outcome(INEXACT if unsure else OK, unsure, assigned, moving, layout)


class Thrown(Exception):  # noqa: N818 - the client's exception, predicted; not an error of ours
    """The client ends with an exception of this class."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")


class NeverEnds(Exception):  # noqa: N818 - as above
    """The client's loop has no end."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Partitions as integers: ids ascend by (topic, number), topics in Java's string order.

    Claimed numbers that do not exist have ids too, after the existing ones of their topic.

    Attributes:
        topics: names of the subscribed topics that have partitions.
        counts: existing partitions of each topic.
        starts: first id of each topic, and the end of the last one.
        topic_of: topic of each id.
        number_of: partition number of each id.
        missing: ids of numbers that do not exist.
        index: number of a topic by its name.
    """

    topics: list[str]
    counts: list[int]
    starts: list[int]
    topic_of: list[int]
    number_of: list[int]
    missing: frozenset[int]
    index: dict[str, int]

    @property
    def partition_count(self) -> int:
        """Return the number of existing partitions."""
        return len(self.topic_of) - len(self.missing)

    def existing(self, topic: int) -> range:
        """Return ids of a topic's partitions."""
        return range(self.starts[topic], self.starts[topic] + self.counts[topic])

    def name(self, partition: int) -> str:
        """Show an id as Kafka does."""
        return f"{self.topics[self.topic_of[partition]]}-{self.number_of[partition]}"


class ClaimedIds(NamedTuple):
    """Claims as ids: those of each member, in which one id may come twice."""

    layout: Layout
    by_member: list[list[int]]


def are_disputed(claims: ClaimedIds) -> bool:
    """Return whether a partition is claimed twice."""
    claimed = [partition for partitions in claims.by_member for partition in partitions]
    return len(set(claimed)) < len(claimed)


def topics_of_members(state: GroupState, layout: Layout) -> list[list[int]]:
    """Return each member's topics in its own order; one given twice appears twice."""
    index = layout.index
    return [
        [index[name] for name in subscription if name in index]
        for subscription in state.subscriptions
    ]


def readers_of_topics(state: GroupState, layout: Layout, order: list[int]) -> list[list[int]]:
    """Return the members that subscribe to each topic, in the given order."""
    readers: list[list[int]] = [[] for _ in layout.topics]
    topics_of = topics_of_members(state, layout)
    for member in order:
        for topic in dict.fromkeys(topics_of[member]):
            readers[topic].append(member)
    return readers


def without_missing(state: GroupState) -> GroupState:
    """Leave out claims of partitions that do not exist."""
    sizes = dict(zip(state.topics, state.num_partitions, strict=True))
    existing = [claim for claim in state.claims() if claim[2] < sizes.get(claim[1], 0)]
    return state if len(existing) == len(state.claim_members) else state.with_claims(existing)


def lay_out(state: GroupState) -> ClaimedIds:
    """Number the partitions of a group; claims of topics that nobody is assigned are left out."""
    subscribed = set().union(*state.subscriptions)
    sizes = {
        topic: count
        for topic, count in zip(state.topics, state.num_partitions, strict=True)
        if count > 0 and topic in subscribed
    }
    names = list(sizes)
    topics = [names[i] for i in sort_as_java(names)]
    index = {topic: number for number, topic in enumerate(topics)}
    counts = [sizes[topic] for topic in topics]
    missing = {
        (index[topic], partition)
        for _, topic, partition in state.claims()
        if topic in index and partition >= sizes[topic]
    }
    layout, ids_of_missing = _number(topics, counts, index, sorted(missing))
    by_member: list[list[int]] = [[] for _ in state.member_ids]
    starts = layout.starts
    for member, topic, partition in state.claims():
        number = index.get(topic)
        if number is not None:
            exists = partition < counts[number]
            by_member[member].append(
                starts[number] + partition if exists else ids_of_missing[number, partition]
            )
    return ClaimedIds(layout, by_member)


def _number(
    topics: list[str], counts: list[int], index: dict[str, int], missing: list[tuple[int, int]]
) -> tuple[Layout, dict[tuple[int, int], int]]:
    numbers = [list(range(count)) for count in counts]
    ids_of_missing = {}
    for topic, partition in missing:
        ids_of_missing[topic, partition] = len(numbers[topic])
        numbers[topic].append(partition)
    starts = [0, *accumulate(map(len, numbers))]
    topic_of: list[int] = []
    number_of: list[int] = []
    for topic, of_topic in enumerate(numbers):
        topic_of += [topic] * len(of_topic)
        number_of += of_topic
    ids = {(t, p): starts[t] + place for (t, p), place in ids_of_missing.items()}
    layout = Layout(topics, counts, starts, topic_of, number_of, frozenset(ids.values()), index)
    return layout, ids
