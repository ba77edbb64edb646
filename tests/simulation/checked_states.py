"""What holds for a group after every rebalance, inside a task."""

from typing import Any

from kassign_spark.simulation.kernel import take_step
from kassign_spark.simulation.simulated_group import Group, Naming


def check_states(groups: list[Group], naming: Naming) -> tuple[list[str], int]:
    """Let all events happen, and check the groups that have rebalanced after each.

    Returns:
        what was wrong with events, and how many rebalances were checked.
    """
    rebalanced = 0
    problems: list[str] = []
    for place in range(max((len(group.events) for group in groups), default=0)):
        step = take_step(groups, place, naming)
        problems += [row["problem"] for row in step.happened if row.get("problem")]
        simulated = {(row["cluster_id"], row["group_id"]): row for row in step.happened}
        withheld = _unsettled(step.happened, step.place, step.rows)
        for group in groups:
            key = (group.cluster_id, group.group_id)
            row = simulated.get(key, {})
            # What Kafka's client does when claims mislead it is held beside the client itself.
            if row.get("rebalance") and row.get("verdict") is None and key not in withheld:
                rebalanced += 1
                _check(group, naming)
    return problems, rebalanced


def _unsettled(happened: list[dict[str, Any]], place: Any, rows: Any) -> set[Any]:
    """Groups of which something is withheld in the last round: nobody has that."""
    result = set()
    for number, row in enumerate(happened):
        of = [(at == number, steps) for at, steps in zip(place, rows, strict=True)]
        last = max((int(s.round[is_of].max(initial=0)) for is_of, s in of), default=0)
        if any((s.action[is_of & (s.round == last)] == 3).any() for is_of, s in of):
            result.add((row["cluster_id"], row["group_id"]))
    return result


def _check(group: Group, naming: Naming) -> None:
    ids = naming.members.strings.to_pylist()
    topics = naming.topics.strings.to_pylist()
    read = {member.member_id: set(member.resolved or ()) for member in group.here()}
    expected = {
        (name, partition)
        for name, topic in group.topics.items()
        if any(name in names for names in read.values())
        for partition in range(topic.size)
    }
    owned = [
        (ids[member - 1], topics[topic - 1], int(partition))
        for member, topic, partition in zip(*group.owned, strict=True)
    ]
    assert all(topic in read[member] for member, topic, _ in owned), group
    assert sorted((topic, partition) for _, topic, partition in owned) == sorted(expected), group
    # All have come through it: one generation.
    assert len({member.generation for member in group.here()}) <= 1
