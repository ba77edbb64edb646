"""The commands of ``kassign-spark``, a file each: ``add_parser`` and ``run``."""

from kassign_spark.commands import (
    assign,
    check_settings,
    compare,
    coordinators,
    deliver,
    diff,
    explain,
    predict,
    rebalance,
    simulate,
    snapshot,
    validate,
)

COMMANDS = (
    snapshot,
    validate,
    assign,
    rebalance,
    predict,
    compare,
    simulate,
    diff,
    explain,
    deliver,
    coordinators,
    check_settings,
)
