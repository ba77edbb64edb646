"""The commands of ``kassign-spark``, a file each: ``add_parser`` and ``run``."""

from kassign_spark.commands import (
    assign,
    compare,
    diff,
    explain,
    predict,
    rebalance,
    snapshot,
    validate,
)

COMMANDS = (snapshot, validate, assign, rebalance, predict, compare, diff, explain)
