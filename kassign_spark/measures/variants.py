"""The same groups several times over, each time under other conditions, in one fleet."""

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.inputs.checks import Inputs
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY, restore_cluster_id

_SEPARATOR = "\u001f"


class Variants(NamedTuple):
    """Inputs of groups that stand for others.

    Attributes:
        keys: cluster_id string, group_id string, assignor string, without string (a member whose
            claims are left out; null: none), variant_id string.
        members: ``schemas.MEMBERS``, where group_id is the variant_id.
        owned: ``schemas.OWNED``, likewise, or None.
    """

    keys: DataFrame
    members: DataFrame
    owned: DataFrame | None


def make_variants(inputs: Inputs, keys: DataFrame, given: bool) -> Variants:
    """Repeat the groups of conforming inputs.

    Args:
        inputs: conforming tables.
        keys: cluster_id string, group_id string, assignor string, without string.
        given: whether the caller's tables name clusters.
    """
    keys = keys.withColumn(
        "variant_id",
        F.concat_ws(_SEPARATOR, "group_id", "assignor", F.coalesce("without", F.lit(""))),
    )
    members = inputs.members.drop("assignor").join(
        keys.drop("without"), on=list(GROUP_KEY), how="inner"
    )
    owned = None
    if inputs.owned is not None:
        claims = inputs.owned.join(keys.drop("assignor"), on=list(GROUP_KEY), how="inner")
        told = claims.where(~F.coalesce(F.col("member_id") == F.col("without"), F.lit(False)))
        owned = restore_cluster_id(_renamed(told.drop("without")), given)
    return Variants(keys, restore_cluster_id(_renamed(members), given), owned)


def by_variant(frame: DataFrame, given: bool) -> DataFrame:
    """Read a result of variants: cluster_id, never null, and variant_id for group_id."""
    cluster = F.coalesce(CLUSTER_ID, F.lit("")) if given else F.lit("")
    return frame.withColumn(CLUSTER_ID, cluster).withColumnRenamed("group_id", "variant_id")


def _renamed(frame: DataFrame) -> DataFrame:
    return frame.drop("group_id").withColumnRenamed("variant_id", "group_id")
