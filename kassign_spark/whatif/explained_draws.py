"""Find groups whose client draws lots, and may have drawn what was observed."""

from collections import defaultdict

from kassign_spark.client.group_state import DRAWN
from kassign_spark.client.model import may_draw
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.group_states import States
from kassign_spark.plans.exact import ClientOutcomes


def groups_by_lot(
    batch: Batch, claims: Claims, observed: Claims, judged: ClientOutcomes, assignor: str
) -> set[int]:
    """Return the groups for which an assignor draws lots, and may have drawn what was observed.

    ``judged`` is what it answers to ``claims``.
    """
    drawn = [group for group, (verdict, _) in enumerate(judged.verdicts) if verdict == DRAWN]
    if not drawn:
        return set()
    states = States(batch, claims, batch.generation)
    by_group, first = observed.by_group(batch.group_count)
    topics = batch.topic_names.to_pylist()
    columns = (by_group.name, by_group.topic, by_group.partition)
    possible = set()
    for group in drawn:
        rows = slice(first[group], first[group + 1])
        partitions: dict[int, list[tuple[str, int]]] = defaultdict(list)
        for name, topic, number in zip(*(column[rows].tolist() for column in columns), strict=True):
            partitions[name].append((topics[topic - 1], number))
        names = batch.member_name[states.members(group)].tolist()
        if partitions.keys() <= {*names} and may_draw(
            states.of(group, assignor), [partitions[name] for name in names]
        ):
            possible.add(group)
    return possible
