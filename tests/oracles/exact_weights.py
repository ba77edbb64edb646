"""Proven optima of small groups with weights, by CP-SAT (OR-tools); no code of the package.

A group is plain data as ``tests.assignors.weighted.drawn_groups.draw`` makes it. Loads are exact:
member m has L_m / C_m, which is compared as L_m * (lcm / C_m).
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ortools.sat.python import cp_model


def least_load(group: Mapping[str, Any], *, moves: int | None = None, seconds: float) -> Any:
    """The least greatest relative load, with at most so many moves; None: not proven in time."""
    model, x, loads = _model(group)
    unit = math.lcm(*group["capacity"])
    most = model.new_int_var(0, sum(group["weight"]) * unit, "most")
    for load, capacity in zip(loads, group["capacity"], strict=True):
        model.add(load * (unit // capacity) <= most)
    if moves is not None:
        model.add(_moved(group, x) <= moves)
    model.minimize(most)
    result = _solve(model, seconds)
    return None if result is None else Fraction(result, unit)


def least_moves(group: Mapping[str, Any], limit: Fraction, *, seconds: float) -> int | None:
    """The fewest moves that keep every member within a limit that can be kept."""
    model, x, loads = _model(group)
    for load, capacity in zip(loads, group["capacity"], strict=True):
        model.add(load <= math.floor(limit * capacity))
    model.minimize(_moved(group, x))
    return _solve(model, seconds)


def _model(group: Mapping[str, Any]) -> tuple[cp_model.CpModel, list[dict[int, Any]], list[Any]]:
    model = cp_model.CpModel()
    x = [
        {m: model.new_bool_var("") for m, takes in enumerate(group["eligible"][k]) if takes}
        for k in group["class"]
    ]
    for row in x:
        model.add_exactly_one(row.values())
    weights = group["weight"]
    loads = [
        sum(weights[p] * row[m] for p, row in enumerate(x) if m in row)
        for m in range(len(group["capacity"]))
    ]
    return model, x, loads


def _moved(group: Mapping[str, Any], x: list[dict[int, Any]]) -> Any:
    return sum(1 - row[home] for row, home in zip(x, group["home"], strict=True) if home >= 0)


def _solve(model: cp_model.CpModel, seconds: float) -> int | None:
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    status = solver.solve(model)
    return round(solver.objective_value) if status == cp_model.OPTIMAL else None
