"""The commands of ``kassign-spark``, a file each: ``add_parser`` and ``run``."""

from kassign_spark.commands import (
    assign,
    check_settings,
    coordinators,
    deliver,
    diff,
    rebalance,
    simulate,
    snapshot,
    validate,
)

COMMANDS = (
    snapshot,
    assign,
    rebalance,
    simulate,
    validate,
    diff,
    deliver,
    coordinators,
    check_settings,
)
