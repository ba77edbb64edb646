"""The rebalance protocols, and which of them an assignor works with."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from kassign_spark.assignors import ASSIGNORS, Assignor
from kassign_spark.client.protocols import COOPERATIVE, COOPERATIVE_ASSIGNORS, EAGER
from kassign_spark.conforming import short_assignor
from kassign_spark.errors import InputError


def check_protocol(protocol: str | None) -> None:
    """Refuse what is no protocol.

    Raises:
        InputError: an unknown protocol.
    """
    if protocol not in (None, EAGER, COOPERATIVE):
        raise InputError(f"unknown protocol {protocol!r}; known are {EAGER}, {COOPERATIVE}")


def own_protocol(strategy: Assignor) -> str:
    """Return the protocol that an assignor works with by itself."""
    cooperative = any(strategy is ASSIGNORS[name] for name in COOPERATIVE_ASSIGNORS)
    return COOPERATIVE if cooperative else EAGER


def protocol_column(assignor: str | Assignor | None, protocol: str | None) -> Column:
    """Return the protocol of each group: string, over the columns of ``schemas.MEMBERS``.

    Raises:
        InputError: an unknown protocol.
    """
    check_protocol(protocol)
    if protocol is not None:
        return F.lit(protocol)
    if callable(assignor):
        return F.lit(own_protocol(assignor))
    name = F.col("assignor") if assignor is None else F.lit(short_assignor(assignor))
    return F.when(name.isin(*COOPERATIVE_ASSIGNORS), COOPERATIVE).otherwise(EAGER)
