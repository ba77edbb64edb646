"""The changes worth trying: a few for each group, by what its bottlenecks and loads are.

Whether one helps is not known here: each is computed with the real assignors afterwards.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from kassign_spark.assignors.in_tasks import KAFKAS
from kassign_spark.client_libraries import CLIENTS, JAVA, clients_with
from kassign_spark.graph.class_batch import ClassGraph, Subscribed
from kassign_spark.graph.levels import Levels
from kassign_spark.groups.batch import Batch
from kassign_spark.groups.leading_clients import SEVERAL
from kassign_spark.groups.numbers import Flags, Longs, place_in_run, ranges, rows_by, starts
from kassign_spark.whatif.changes import NOTHING, Changes, together
from kassign_spark.whatif.evenness import Evenness

ASSIGNOR, SUBSCRIPTION, MEMBERS, PARTITIONS, CLIENT, INSTANCE_ID = range(6)
KINDS = ("assignor", "subscription", "members", "partitions", "client", "group.instance.id")
_ALL_NUMBERS = 8
"""Number of members up to which all numbers are tried; beyond it only those where something
changes."""
_MOST_PAIRS = 2_000_000
"""Further subscriptions of one change; beyond, a group is not asked to subscribe to everything."""


class GroupFacts(NamedTuple):
    """Facts about the groups before anything changes."""

    batch: Batch
    assignor: Longs
    subscribed: Subscribed
    graph: ClassGraph
    levels: Levels
    before: Evenness


def candidates(facts: GroupFacts) -> tuple[Longs, Changes]:
    """List the changes to try, and of each its kind."""
    # By kind.
    makers = (
        _other_assignors,
        _more_subscriptions,
        _other_numbers_of_members,
        _more_partitions,
        _another_library,
    )
    changes = [(kind, change) for kind, maker in enumerate(makers) for change in maker(facts)]
    kinds = [np.full(len(change.group), kind) for kind, change in changes]
    return np.concatenate([NOTHING, *kinds]), together([change for _, change in changes])


def _other_assignors(facts: GroupFacts) -> list[Changes]:
    has_partitions, changes = _partitions(facts) > 0, []
    for number, assignor in enumerate(KAFKAS):
        has_assignor = np.isin(facts.batch.leading_client, [SEVERAL, *clients_with(assignor)])
        groups = np.flatnonzero(has_partitions & has_assignor & (facts.assignor != number))
        changes.append(Changes(groups, np.full(len(groups), number)))
    return changes


def _another_library(facts: GroupFacts) -> list[Changes]:
    """Return groups that another library than Java's leads, with the same assignor of Java's."""
    groups = np.flatnonzero(facts.batch.leading_client > CLIENTS.index(JAVA))
    return [Changes(groups, facts.assignor[groups], led_by_java=np.arange(len(groups)))]


def _more_subscriptions(facts: GroupFacts) -> list[Changes]:
    """Subscribe one member, or all others, to the dense part's largest topic, or to all."""
    batch, heights = facts.batch, facts.levels
    topic_height = heights.height_of_class[facts.graph.class_of_topic]
    top = np.zeros(batch.group_count, np.int64)
    np.maximum.at(top, batch.topic_group, topic_height)
    members = np.diff(batch.first_member)
    even = -(-_partitions(facts) // np.maximum(members, 1))
    is_uneven = top > even
    dense = np.flatnonzero(is_uneven[batch.topic_group] & (topic_height == top[batch.topic_group]))
    largest = _largest(batch, dense)
    group = batch.member_group
    others = np.flatnonzero(is_uneven[group] & (heights.height_of_member < top[group]))
    others = others[rows_by(group[others], facts.before.load[others])]
    first_of_group = others[place_in_run(group[others]) == 0]
    several = np.bincount(batch.topic_group[dense], minlength=batch.group_count) > 1
    more_than_one = np.bincount(group[others], minlength=batch.group_count) > 1
    no_restriction = np.ones(batch.group_count, bool)
    changes = [
        _reading(facts, first_of_group, largest, no_restriction),
        _reading(facts, first_of_group, dense, several),
        _reading(facts, others, largest, more_than_one),
        _reading(facts, others, dense, several & more_than_one),
    ]
    return [*changes, _reading_everything(facts, is_uneven, others, dense)]


def _reading(facts: GroupFacts, members: Longs, topics: Longs, groups: Flags) -> Changes:
    """Subscribe each of these members to each of these topics of its group, in a copy per group."""
    batch = facts.batch
    members = members[groups[batch.member_group[members]]]
    topics = topics[groups[batch.topic_group[topics]]]
    topic_count = np.bincount(batch.topic_group[topics], minlength=batch.group_count)
    member_count = np.bincount(batch.member_group[members], minlength=batch.group_count)
    pairs = topic_count * member_count
    chosen = np.flatnonzero((pairs > 0) & (pairs <= _MOST_PAIRS))
    place = np.full(batch.group_count, -1)
    place[chosen] = np.arange(len(chosen))
    members = members[place[batch.member_group[members]] >= 0]
    of_member = batch.member_group[members]
    counts = topic_count[of_member]
    first = starts(topic_count)[:-1]
    topic = topics[np.argsort(batch.topic_group[topics], kind="stable")]
    return Changes(
        chosen,
        facts.assignor[chosen],
        reads=np.repeat(place[of_member], counts),
        reading_member=np.repeat(members, counts),
        read_topic=topic[ranges(first[of_member], counts)],
    )


def _reading_everything(facts: GroupFacts, groups: Flags, others: Longs, dense: Longs) -> Changes:
    """Subscribe all members to all topics of the group, if these are more than the dense ones."""
    batch = facts.batch
    everybody = np.flatnonzero(groups[batch.member_group])
    topics = np.flatnonzero(groups[batch.topic_group])
    all_pairs = np.diff(batch.first_member) * np.diff(batch.first_topic)
    edges = np.bincount(batch.topic_group, batch.subscribers.size, batch.group_count)
    more = np.bincount(batch.member_group[others], minlength=batch.group_count)
    more *= np.bincount(batch.topic_group[dense], minlength=batch.group_count)
    return _reading(facts, everybody, topics, groups & (all_pairs - edges > more))


def _other_numbers_of_members(facts: GroupFacts) -> list[Changes]:
    """Add members like the most loaded one, or take away the least loaded ones."""
    batch = facts.batch
    count = np.diff(batch.first_member)
    partitions = _partitions(facts)
    group: list[int] = []
    counts: list[int] = []
    for number in np.flatnonzero((partitions > 0) & (count > 0)).tolist():
        members, idle = int(count[number]), int(facts.before.idle[number])
        tried = set(numbers_to_try(members, int(partitions[number])))
        if not batch.is_alike[number]:
            tried = {n for n in tried if n > members}
        if 0 < idle < members:
            tried.add(members - idle)
        group += [number] * len(tried)
        counts += sorted(tried)
    groups, numbers = np.array(group, np.int64), np.array(counts, np.int64)
    by_load = rows_by(batch.member_group, facts.before.load)
    more, fewer = numbers > count[groups], numbers < count[groups]
    adding, dropping = groups[more], groups[fewer]
    copies = (numbers - count[groups])[more]
    drops = (count[groups] - numbers)[fewer]
    most_loaded = by_load[batch.first_member[1:][adding] - 1]
    return [
        Changes(
            adding,
            facts.assignor[adding],
            added=np.repeat(np.arange(len(adding)), copies),
            added_like=np.repeat(most_loaded, copies),
        ),
        Changes(
            dropping,
            facts.assignor[dropping],
            dropped=np.repeat(np.arange(len(dropping)), drops),
            dropped_member=by_load[ranges(batch.first_member[:-1][dropping], drops)],
        ),
    ]


@cache
def numbers_to_try(members: int, partitions: int) -> list[int]:
    """Return member counts from half to double, never more than partitions.

    One more and one less, half and double, the next two each way that divide the partitions, and
    the least that lowers the largest load; all where these are few.
    """
    low, high = -(-members // 2), min(2 * members, partitions)
    between = np.arange(low, high + 1)
    between = between[between != members]
    if len(between) <= _ALL_NUMBERS:
        return [int(n) for n in between]
    even = between[partitions % between == 0]
    lower = between[(between > members) & (-(-partitions // between) < -(-partitions // members))]
    chosen = {
        low,
        high,
        members - 1,
        members + 1,
        *even[even > members][:2].tolist(),
        *even[even < members][-2:].tolist(),
        *lower[:1].tolist(),
    }
    return sorted(int(n) for n in chosen if low <= n <= high and n != members)


def _more_partitions(facts: GroupFacts) -> list[Changes]:
    """Grow a topic to a multiple of its readers, or all partitions to one of the members."""
    batch, before = facts.batch, facts.before
    readers = batch.subscribers.size
    group = batch.topic_group
    to_multiple = (-batch.size) % readers
    can = np.flatnonzero((to_multiple > 0) & (before.spread[group] > 0))
    largest = _largest(batch, can)
    fewest = _largest(batch, np.flatnonzero((batch.size < readers) & (before.idle[group] > 0)))
    missing = (-_partitions(facts)) % np.maximum(np.diff(batch.first_member), 1)
    is_whole = batch.is_alike & (missing > 0) & (before.spread > 0)
    whole = _largest(batch, np.flatnonzero(is_whole[group]))
    topics = np.concatenate((largest, fewest, whole))
    sizes = np.concatenate(
        (
            batch.size[largest] + to_multiple[largest],
            readers[fewest],
            batch.size[whole] + missing[group[whole]],
        )
    )
    topics, sizes = np.unique(np.stack((topics, sizes)), axis=1)
    of_group = group[topics]
    return [
        Changes(
            of_group,
            facts.assignor[of_group],
            grown=np.arange(len(topics)),
            grown_topic=topics,
            grown_size=sizes,
        )
    ]


def _largest(batch: Batch, topics: Longs) -> Longs:
    """Return the largest topic of each group among these, ascending; the first of equals."""
    topics = topics[rows_by(batch.topic_group[topics], -batch.size[topics])]
    largest: Longs = topics[place_in_run(batch.topic_group[topics]) == 0]
    return largest


def _partitions(facts: GroupFacts) -> Longs:
    """Return partitions of each group."""
    count = np.bincount(facts.batch.topic_group, facts.batch.size, facts.batch.group_count)
    return count.astype(np.int64)
