"""The commands of ``kassign-spark``, a file each.

It has ``ABOUT`` for the help, ``DOCUMENT`` for ``--json``, ``add_options`` and ``run``.
"""

from importlib import import_module
from types import ModuleType

COMMANDS = {
    "snapshot": "read a live cluster's groups, topics and owned partitions",
    "log": "save the group log, the records of __consumer_offsets, in files",
    "history": "show when and why each group rebalanced, and who rebalances too often",
    "validate": "list problems of a snapshot",
    "assign": "plan what every group of a snapshot would own",
    "rebalance": "follow the rebalance of every group, round by round",
    "predict": "show what Kafka's own client will do, and whether it will end",
    "compare": "compare what every assignor would do with the best there is",
    "plan": "plan by weight: even loads with few moves",
    "tradeoff": "show what each move would give: the curve of moves against load",
    "simulate": "apply events to a snapshot, and show the rebalances that they start",
    "diff": "show which partitions change owner",
    "explain": "find out which assignor made an assignment, or comes nearest to it",
    "graph": "write who can take what as a graph, and show what that rules out",
    "advise": "find changes that would make groups more even, and what they would cost",
    "touched-by": "show which groups a change of topics affects, and how much of them",
    "migrate": "show which groups can move to the new protocol, and what each restart does",
    "report": "write one page that shows what a plan does to the fleet",
    "deliver": "give each member its part of a plan, as JSON",
    "coordinators": "show which broker coordinates each group, and how loaded the brokers are",
    "check-settings": "check the properties files of consumers",
    "serve": "keep a Spark running, which later commands use",
    "java-archive": "make commands start sooner, with an archive of Java's classes",
}
"""What each does, in a line, in the order of the help."""
STARTING = ("serve", "java-archive")
"""Those that start a Spark of their own, always."""


def module_of(command: str) -> ModuleType:
    """Import the file of one command; to import all takes longer than some of them run."""
    return import_module(f"{__name__}.{command.replace('-', '_')}_command")
