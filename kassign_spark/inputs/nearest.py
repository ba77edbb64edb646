"""Names that a person typed: found in a table, or refused with the nearest ones there are."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.errors import InputError

_SHOWN = 3


def refuse_unknown(names: DataFrame, sought_names: Sequence[str], *, noun: str) -> None:
    """Refuse a name that is not in a table; runs a job, and another one where some is not.

    ``names`` has name string, any number of times each.

    Raises:
        InputError: it names the first one that does not exist, and the nearest that are.
    """
    distinct = sorted(set(sought_names))
    existing = names.where(F.col("name").isin(distinct)).distinct().limit(len(distinct)).collect()
    unknown = sorted(set(distinct) - {row.name for row in existing})
    if not unknown:
        return
    nearest = _nearest(names, unknown[0])
    near = f"; the nearest are {', '.join(nearest)}" if nearest else "; there is none at all"
    raise InputError(f"unknown {noun} {unknown[0]!r}{near}")


def _nearest(names: DataFrame, name: str) -> list[str]:
    """Return the names that the fewest changed letters give; a part of a name counts as near."""
    contains: Column = F.instr(F.lower("name"), name.lower()) > 0
    rows = (
        names.where("name IS NOT NULL")
        .distinct()
        .orderBy(~contains, F.levenshtein("name", F.lit(name)), "name")
        .limit(_SHOWN)
        .collect()
    )
    return [row.name for row in rows]
