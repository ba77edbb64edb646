"""The assignment strategies: plain functions, registered under Kafka's own names."""

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from kassign_spark.assignors.range import assign_range
from kassign_spark.assignors.roundrobin import assign_roundrobin
from kassign_spark.assignors.sticky import assign_cooperative_sticky, assign_sticky
from kassign_spark.groups.eligible import Eligible
from kassign_spark.settings.computing import Settings

Assignor = Callable[[Eligible, Settings], DataFrame]
"""From what is eligible to the columns of ``schemas.ASSIGNMENT``; one of your own is as good."""

ASSIGNORS: Mapping[str, Assignor] = {
    "range": assign_range,
    "roundrobin": assign_roundrobin,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperative_sticky,
}
"""Kafka's own by name, as ``assign`` and the column ``members.assignor`` take them."""

BY_WINDOWS = ("range", "roundrobin")
"""Assignors that are pipelines of window functions; they do not look at owned partitions."""
