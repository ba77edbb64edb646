"""The commands of ``kassign-spark``, a file each: ``add_parser`` and ``run``."""

from kassign_spark.commands import assign, diff, rebalance, snapshot, validate

COMMANDS = (assign, diff, rebalance, snapshot, validate)
