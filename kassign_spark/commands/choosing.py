"""What the options of a command choose: settings, one group, values that its document repeats."""

import argparse
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.conforming import has_cluster_id
from kassign_spark.errors import InputError
from kassign_spark.inputs.nearest import refuse_unknown
from kassign_spark.schemas import CLUSTER_ID
from kassign_spark.settings.computing import Settings, load_settings
from kassign_spark.tables.snapshots import Snapshot


def settings_of(args: argparse.Namespace) -> Settings:
    """Load the settings that were named, or take the defaults.

    Raises:
        SettingsError: the file cannot be read, or a setting is unknown or out of range.
    """
    return load_settings(args.settings) if args.settings else Settings()


def named_arguments(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the values of these options, by name."""
    return {name: getattr(args, name) for name in names}


def only_group(snapshot: Snapshot, group: str | None, *, one: bool = False) -> Snapshot:
    """Keep the rows of one group, if one was named; runs a job then.

    Args:
        snapshot: any.
        group: its group_id, or CLUSTER/GROUP; None: all groups.
        one: refuse a name that groups of several clusters have.

    Raises:
        InputError: there is no such group, or, with ``one``, there are several.
    """
    if group is None:
        return snapshot
    members = snapshot.members
    is_of_group = _name(members) == group
    names: list[str] = []
    if has_cluster_id(members):
        is_of_group = is_of_group | (F.col("group_id") == group)
        groups = members.where(is_of_group).select(_name(members).alias("name")).distinct()
        names = sorted(row.name for row in groups.limit(20).collect())
        if one and len(names) > 1:
            raise InputError(f"group {group!r} is in several clusters: name {' or '.join(names)}")
    if not names:
        refuse_unknown(members.select(_name(members).alias("name")), [group], noun="group")
    owned = snapshot.owned
    return snapshot._replace(
        members=members.where(is_of_group),
        owned=None if owned is None else owned.where(is_of_group),
    )


def _name(members: DataFrame) -> Column:
    if not has_cluster_id(members):
        return F.col("group_id")
    return F.expr(f"concat_ws('/', nullif({CLUSTER_ID}, ''), group_id)")
