"""The commands of ``kassign-spark``, a file each: ``add_parser`` and ``run``."""

from kassign_spark.commands import (
    advise,
    assign,
    check_settings,
    compare,
    coordinators,
    deliver,
    diff,
    explain,
    graph,
    predict,
    rebalance,
    report,
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
    graph,
    advise,
    report,
    deliver,
    coordinators,
    check_settings,
)
