"""The commands of ``kassign-spark``, a file each.

It has ``ABOUT`` for the help, ``DOCUMENT`` of what ``--json`` prints, ``add_options`` and ``run``.
"""

from importlib import import_module
from types import ModuleType

COMMANDS = (
    "snapshot",
    "log",
    "history",
    "validate",
    "assign",
    "rebalance",
    "predict",
    "compare",
    "plan",
    "tradeoff",
    "simulate",
    "diff",
    "explain",
    "graph",
    "advise",
    "touched-by",
    "migrate",
    "report",
    "deliver",
    "coordinators",
    "check-settings",
    "serve",
    "java-archive",
)
"""In the order of the help."""
STARTING = ("serve", "java-archive")
"""Those that start a Spark of their own, always."""


def module_of(command: str) -> ModuleType:
    """The file of a command; to import those of all takes longer than some of them run."""
    return import_module(f"{__name__}.{command.replace('-', '_')}_command")
