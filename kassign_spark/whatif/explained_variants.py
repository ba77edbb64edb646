"""What each assignor predicts beside what was observed of a group, and what follows from that."""

from collections import defaultdict
from typing import NamedTuple

from kassign_spark.client.group_state import DRAWN, OK, UNANSWERED
from kassign_spark.client.model import may_draw
from kassign_spark.client_libraries import ASSIGNORS, COORDINATOR_ASSIGNORS
from kassign_spark.display import plural
from kassign_spark.groups.batch import Batch, Claims
from kassign_spark.groups.group_states import States
from kassign_spark.plans.exact import ClientOutcomes

NAMES = (*ASSIGNORS, *COORDINATOR_ASSIGNORS)
"""The clients' assignors, then those of the coordinator, in the order of their numbers here."""


class Variant(NamedTuple):
    """One prediction beside what was seen; the fields are in the order of preference.

    ``first`` describes the first partition whose predicted and observed owners differ;
    ``is_by_lot``: the assignor draws lots, and may have drawn this; ``leader``: the library that
    leads then, of a group whose leader is not known.
    """

    is_other: bool
    is_without: bool
    differing: int
    is_foreign: bool
    is_by_lot: bool
    assignor: int
    leader: str
    without: str
    verdict: str
    first: str | None


def conclude(variants: list[Variant], own: int) -> tuple[str | None, int, str | None]:
    """Return the assignor that explains a group, how many partitions differ, and a detail.

    ``own`` is the group's assignor: where another explains the group, or none, it comes first.
    """
    best = variants[0]
    details = (
        []
        if best.assignor == own
        else [_describe_own(v) for v in variants if v.assignor == own][:1]
    )
    if best.is_other:
        return None, best.differing, "; ".join([*details, _nearest(best)])
    if best.leader:
        details.append(f"as {best.leader} computes it: who leads is not known")
    if best.is_by_lot:
        details.append("by lot: this is one of the answers that its client may draw")
    of_best = [v for v in variants if v.assignor == best.assignor]
    deciding = [v.without for v in of_best if v.is_without and v.is_other]
    if best.is_without:
        details.append(f"without the stale claims of {best.without}")
    elif deciding:
        details.append(f"because of the stale claims of {', '.join(deciding)}")
    fits = [v for v in variants if not (v.is_other or v.is_without or v.assignor == best.assignor)]
    fitting = dict.fromkeys(NAMES[v.assignor] for v in fits)
    if fitting:
        details.append(f"{', '.join(fitting)} would give the same")
    return NAMES[best.assignor], best.differing, "; ".join(details) or None


def _describe_own(own: Variant) -> str:
    """Return what a group's own assignor makes of it instead."""
    name = f"its own assignor {NAMES[own.assignor]}"
    if own.verdict in UNANSWERED:
        return f"{name} has no answer ({own.verdict})"
    return f"{name} differs in {plural(own.differing, 'partition')}: {own.first}"


def _nearest(best: Variant) -> str:
    sentence = f"nearest is {NAMES[best.assignor]}"
    if best.verdict != OK:
        sentence += f" ({best.verdict})"
    return sentence if best.first is None else f"{sentence}: {best.first}"


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
