"""The kernels as functions of the oracle's groups, many in a call, without Spark."""

from collections.abc import Sequence

from kassign_spark.assignors.task_groups import assign_arrow
from kassign_spark.client.model import predict_group
from tests.kafka.oracle import Assigned, Group, Member
from tests.oracles.mixed_groups import MixedGroup
from tests.prediction.prediction_states import named, to_state
from tests.task_rows import assigned_of, table_of


def group_of(shape: MixedGroup, assignor: str) -> Group:
    """A group of ``mixed_groups`` whose members say what they own."""
    owned = shape.owned.items()
    members = [
        Member(name, topics, [tp for tp, owner in owned if owner == name], 1)
        for name, topics in shape.subscriptions.items()
    ]
    return Group(shape.partitions, members, assignor)


def answer_of(name: str, groups: Sequence[Group]) -> list[Assigned | str]:
    """Each group's answer by the kernel for a fleet of ``recorded.FLEETS``."""
    if name == "states":
        return [follow(group) for group in groups]
    return [*assigned(groups)]


def assigned(groups: Sequence[Group]) -> list[Assigned]:
    """What ``assign`` gives in a task, each group by its own assignor; the lists are sorted."""
    result = assigned_of(assign_arrow(table_of(groups)), groups)
    return [{member: sorted(tps) for member, tps in of.items()} for of in result]


def follow(group: Group) -> Assigned | str:
    """The model of the client, which gives its exceptions and endless loops too."""
    outcome = predict_group(to_state(group))
    if outcome.verdict == "ok":
        return named(group, outcome)
    assert not outcome.assigned
    return {"never_ends": "TimeLimit"}.get(outcome.verdict) or str(outcome.detail).split(":")[0]
