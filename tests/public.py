"""The names that users import, by the room that each lives in."""

import inspect
from importlib import import_module
from typing import Any

_ROOMS = {
    "kassign_spark",
    "kassign_spark.brokers",
    "kassign_spark.graph",
    "kassign_spark.history",
    "kassign_spark.inputs",
    "kassign_spark.log",
    "kassign_spark.plans",
    "kassign_spark.producer",
    "kassign_spark.settings",
    "kassign_spark.simulation",
}
HOMES = {name: room for room in sorted(_ROOMS) for name in import_module(room).__all__}
"""Where each public name is listed; that of two rooms in the last one."""

PUBLIC: dict[str, Any] = {name: getattr(import_module(room), name) for name, room in HOMES.items()}
FUNCTIONS = [name for name, public in PUBLIC.items() if inspect.isfunction(public)]
