"""Why a group is uneven, what would help, and who can take what: what the page draws of it."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kassign_spark.display import printable
from kassign_spark.expressions import is_group_of
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.group_names import group_columns
from kassign_spark.groups.numbers import Flags, Longs
from kassign_spark.groups.rows import fold, run_in_tasks
from kassign_spark.spark.sessions import cores
from kassign_spark.whatif.advice import Ranked, ranked_pieces
from kassign_spark.whatif.advice_sentences import change_of, ids_of, reason_of, topics_of
from kassign_spark.whatif.candidates import GroupFacts

GroupName = tuple[str, str]

MAX_ROWS = 100
"""Kinds of members that are drawn; a kind is of one subscription."""
MAX_CLASSES = 40
MAX_NAMES = 3
"""Number of names that are shown per kind of members or class; the others are counted."""
MAX_PARTITIONS = 300_000
"""Partitions of all groups that get advice on the page: some twenty changed copies of each."""
_REASONS = "cluster_id string, group_id string, reasons string"


def choose_explained(groups: Sequence[dict[str, Any]]) -> list[GroupName]:
    """Choose the groups that the page explains, worst first: uneven and not giant."""
    room, names = MAX_PARTITIONS, []
    for group in groups:
        is_uneven = group["max_assigned"] - group["min_assigned"] > 1
        if is_uneven and group["partition_count"] <= room:
            room -= group["partition_count"]
            names.append((group["cluster_id"], group["group_id"]))
    return names


def collect_why(eligible: Eligible, names: Sequence[GroupName]) -> dict[GroupName, dict[str, Any]]:
    """Collect the explanations of some groups; runs one query.

    Args:
        eligible: the groups of a plan, each with the assignor of the plan.
        names: of those that are wanted, a few hundred at most.

    Returns:
        By group what the page's script knows as why: reason text; before: [most, spread]; advice:
        lists of text, largest load, spread, moved, paused, rounds; rows: lists of names, number of
        members, 1 where they are in the dense part, and what they can take, a digit 0 or 1 a class;
        classes: lists of names, number of topics, partitions, 1 where dense; more_rows and
        more_classes: how many are not drawn. Names are printable.
    """
    if not names:
        return {}
    is_shown = is_group_of(names)
    uneven = eligible._replace(
        members=eligible.members.where(is_shown),
        owned=None if eligible.owned is None else eligible.owned.where(is_shown),
        has_racks=False,
    )
    tasks = min(eligible.tasks, cores(eligible.members.sparkSession))
    rows = run_in_tasks(fold(uneven), why_arrow, _REASONS, tasks).collect()
    return {(row.cluster_id, row.group_id): json.loads(row.reasons) for row in rows}


def why_arrow(table: pa.Table) -> Iterator[pa.Table]:
    """Explain every group of a task (rows of ``rows.fold``): the columns of _REASONS."""
    for ranked in ranked_pieces(table):
        groups = np.arange(ranked.facts.batch.group_count)
        reasons = [json.dumps(_why(ranked, group)) for group in groups.tolist()]
        columns = group_columns(ranked.facts.batch, groups)
        yield pa.table({**columns, "reasons": pa.array(reasons, pa.string())})


def _why(ranked: Ranked, group: int) -> dict[str, Any]:
    facts, after = ranked.facts, ranked.after
    rows = np.flatnonzero((ranked.group == group) & (ranked.gain > 0))
    advice = []
    for row in rows[np.argsort(ranked.rank[rows])].tolist():
        copy = int(ranked.copy[row])
        detail = change_of(facts, ranked.changes, copy, int(ranked.kind[row])).detail
        numbers = (after.most, after.spread, after.moved, after.paused, after.rounds)
        advice.append([printable(detail), *(int(each[copy]) for each in numbers)])
    return {
        "reason": printable(reason_of(facts, group)),
        "before": [int(facts.before.most[group]), int(facts.before.spread[group])],
        "advice": advice,
        **_drawing(facts, group),
    }


def _drawing(facts: GroupFacts, group: int) -> dict[str, Any]:
    """Sort members by what they can take, and classes: part by part, dense ones first."""
    graph, levels = facts.graph, facts.levels
    members = np.flatnonzero(graph.group_of_member == group)
    classes = np.flatnonzero(graph.group_of_class == group)
    dense_member, dense_class = _dense(facts, members, classes)
    order = (-graph.supply[classes], levels.level_of_class[classes], graph.part_of_class[classes])
    by_level = np.lexsort((classes, *order))
    classes, dense_class = classes[by_level], dense_class[by_level]
    can_take = np.zeros((len(members), len(classes)), np.int8)
    place = np.full(len(graph.supply), -1)
    place[classes] = np.arange(len(classes))
    edges = np.flatnonzero(graph.group_of_member[graph.member_of] == group)
    can_take[graph.member_of[edges] - members[0], place[graph.class_of[edges]]] = 1
    alike: dict[bytes, list[int]] = {}
    for number, row in enumerate(can_take):
        alike.setdefault(row.tobytes(), []).append(number)
    firsts = np.array([numbers[0] for numbers in alike.values()])
    kinds = list(alike.values())
    level = levels.level_of_member[members[firsts]]
    part = graph.part_of_member[members[firsts]]
    # Those that can take nothing come last.
    turn = np.lexsort((firsts, np.where(part < 0, len(members), level), part, part < 0)).tolist()
    rows = []
    for number in turn[:MAX_ROWS]:
        first = kinds[number][0]
        digits = "".join(map(str, can_take[first, :MAX_CLASSES].tolist()))
        ids = ids_of(facts, members[kinds[number][:MAX_NAMES]])
        is_dense = int(dense_member[first])
        rows.append([list(map(printable, ids)), len(kinds[number]), is_dense, digits])
    return {
        "rows": rows,
        "classes": [
            _class(facts, int(class_), int(is_dense))
            for class_, is_dense in zip(classes[:MAX_CLASSES], dense_class, strict=False)
        ],
        "more_rows": max(0, len(kinds) - MAX_ROWS),
        "more_classes": max(0, len(classes) - MAX_CLASSES),
    }


def _class(facts: GroupFacts, class_: int, is_dense: int) -> list[Any]:
    topics = np.flatnonzero(facts.graph.class_of_topic == class_)
    names = list(map(printable, topics_of(facts, topics[:MAX_NAMES])))
    return [names, len(topics), int(facts.graph.supply[class_]), is_dense]


def _dense(facts: GroupFacts, members: Longs, classes: Longs) -> tuple[Flags, Flags]:
    """Return the dense part: every level but the last one of its component."""
    graph, levels = facts.graph, facts.levels
    part, level = graph.part_of_member[members], levels.level_of_member[members]
    last = np.zeros(int(part.max(initial=-1)) + 2, np.int64)
    np.maximum.at(last, part, level)
    of_class = graph.part_of_class[classes]
    return (part >= 0) & (level < last[part]), levels.level_of_class[classes] < last[of_class]
