"""Which of Kafka's assignors explains an assignment that was observed."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kassign_spark.groups.look import look
from kassign_spark.inputs.checks import conform_inputs
from kassign_spark.measures.variants import Variants, by_variant, make_variants
from kassign_spark.prediction.predict import PREDICTED, predict
from kassign_spark.schemas import (
    ASSIGNMENT,
    CLUSTER_ID,
    GROUP_KEY,
    MEMBERS,
    check_same_clusters,
    conform,
    has_cluster_id,
    restore_cluster_id,
)

_STICKY = ("sticky", "cooperative-sticky")
MOST_STALE = 16
"""Members of a group whose stale claims are tried one by one, the first by member id."""


def explain(
    assignment: DataFrame,
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
) -> DataFrame:
    """Say which assignor would have made an assignment, for every group at once.

    All of ``PREDICTED`` are predicted from what the members said when the rebalance began. For the
    sticky ones each member of an older generation is also left out, one at a time: so a stale
    claim is found that made the assignment what it is, or that the leader cannot have seen.
    `cooperative-sticky` is one rebalance; where the one that hands over has followed, ``owned`` is
    what members said then.

    Args:
        assignment: ``schemas.ASSIGNMENT``, observed in the cluster.
        members: ``schemas.MEMBERS``; ``assignor`` only decides between several that fit.
        topics: ``schemas.TOPICS``, or one row a partition.
        owned: ``schemas.OWNED``, what members said that they owned.

    Returns:
        One row a group: cluster_id string (where the inputs have it), group_id string,
        assignor string: what explains the assignment; null where nothing does,
        differing_count bigint: partitions that the nearest one gives to others,
        detail string: which others fit too, whose stale claims decide, or which assignor is the
        nearest and the first partition that differs; null where there is nothing to say.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning; lists every one.
    """
    check_same_clusters([(ASSIGNMENT, assignment), (MEMBERS, members)])
    inputs = conform_inputs(members, topics, owned)
    look(inputs, known_assignors=None)
    given = has_cluster_id(members)
    keys = _keys(inputs.members, inputs.owned)
    variants = make_variants(inputs, keys.drop("preferred"), given)
    predicted = predict(variants.members, topics, variants.owned)
    compared = _compare(conform(assignment, ASSIGNMENT), predicted.assignment, variants, given)
    verdicts = by_variant(predicted.verdicts, given).drop("detail")
    found = (
        variants.keys.join(
            keys.select(*GROUP_KEY, "preferred").distinct(), on=list(GROUP_KEY), how="inner"
        )
        .join(verdicts, on=[CLUSTER_ID, "variant_id"], how="inner")
        .join(compared, on=[CLUSTER_ID, "variant_id"], how="left")
        .withColumn("differing", F.coalesce("differing", F.lit(0)))
    )
    return restore_cluster_id(_conclude(found), given)


def _keys(members: DataFrame, owned: DataFrame | None) -> DataFrame:
    """List what to predict of each group: every assignor, and the sticky ones without a member."""
    groups = members.groupBy(*GROUP_KEY).agg(
        F.min("assignor").alias("preferred"),
        F.max(F.coalesce("generation", F.lit(-1))).alias("latest"),
    )
    if owned is None:
        return groups.select(*GROUP_KEY, "preferred", *_variants_without(None))
    claiming = owned.select(*GROUP_KEY, "member_id").distinct()
    stale = (
        members.join(groups, on=list(GROUP_KEY), how="inner")
        .where(F.coalesce("generation", F.lit(-1)) < F.col("latest"))
        .join(claiming, on=[*GROUP_KEY, "member_id"], how="left_semi")
        .groupBy(*GROUP_KEY)
        .agg(F.slice(F.sort_array(F.collect_set("member_id")), 1, MOST_STALE).alias("stale"))
    )
    return groups.join(stale, on=list(GROUP_KEY), how="left").select(
        *GROUP_KEY, "preferred", *_variants_without(F.col("stale"))
    )


def _variants_without(stale: Column | None) -> list[Column]:
    def variant(name: str, without: Column) -> Column:
        return F.struct(F.lit(name).alias("assignor"), without.cast("string").alias("without"))

    variants = F.array(*(variant(name, F.lit(None)) for name in PREDICTED))
    if stale is not None:
        left_out = F.flatten(
            F.transform(
                F.coalesce(stale, F.array().cast("array<string>")),
                lambda member: F.array(*(variant(name, member) for name in _STICKY)),
            )
        )
        variants = F.concat(variants, left_out)
    return [F.inline(variants)]


def _compare(
    observed: DataFrame, predicted: DataFrame, variants: Variants, given: bool
) -> DataFrame:
    """Count partitions whose members differ, and show the first of them."""
    seen = observed.join(
        variants.keys.select(*GROUP_KEY, "variant_id"), on=list(GROUP_KEY), how="inner"
    )
    columns = [CLUSTER_ID, "variant_id", "topic", "partition", "member_id"]
    both = (
        seen.select(*columns)
        .withColumn("is_observed", F.lit(True))
        .unionByName(
            by_variant(predicted, given).select(*columns).withColumn("is_observed", F.lit(False))
        )
    )

    def held(by: Column) -> Column:
        return F.sort_array(F.collect_list(F.when(by, F.col("member_id"))))

    partitions = both.groupBy(*columns[:-1]).agg(
        held(F.col("is_observed")).alias("observed"),
        held(~F.col("is_observed")).alias("expected"),
    )
    first = F.min(F.struct("topic", "partition", "observed", "expected"))
    return (
        partitions.where("observed != expected")
        .groupBy(CLUSTER_ID, "variant_id")
        .agg(F.count("*").alias("differing"), first.alias("first"))
    )


def _conclude(found: DataFrame) -> DataFrame:
    """One row a group from one row a variant."""
    rank = F.array_position(F.array(*map(F.lit, PREDICTED)), F.col("assignor"))
    is_exact = (F.col("differing") == 0) & ~F.col("verdict").isin("throws", "never_ends")
    # The order of the fields is the order of preference.
    variant = F.struct(
        (~is_exact).alias("is_other"),
        F.col("without").isNotNull().alias("is_without"),
        "differing",
        (~F.coalesce(F.col("assignor") == F.col("preferred"), F.lit(False))).alias("is_foreign"),
        rank.alias("rank"),
        "without",
        "assignor",
        "verdict",
        "first",
    )
    groups = found.groupBy(*GROUP_KEY).agg(F.sort_array(F.collect_list(variant)).alias("all"))
    best = F.col("all")[0]
    fitting = F.transform(
        F.filter("all", lambda v: ~v["is_other"] & ~v["is_without"] & (v != best)),
        lambda v: v["assignor"],
    )
    deciding = F.transform(
        F.filter(
            "all",
            lambda v: v["is_without"] & v["is_other"] & (v["assignor"] == best["assignor"]),
        ),
        lambda v: v["without"],
    )
    exact_detail = F.concat_ws(
        "; ",
        F.when(
            best["is_without"],
            F.concat(F.lit("without the stale claims of "), best["without"]),
        ),
        F.when(
            ~best["is_without"] & (F.size(deciding) > 0),
            F.concat(F.lit("because of the stale claims of "), F.array_join(deciding, ", ")),
        ),
        F.when(
            F.size(fitting) > 0,
            F.concat(F.array_join(fitting, ", "), F.lit(" would give the same")),
        ),
    )
    return groups.select(
        *GROUP_KEY,
        F.when(~best["is_other"], best["assignor"]).alias("assignor"),
        best["differing"].alias("differing_count"),
        F.nullif(F.when(best["is_other"], _nearest(best)).otherwise(exact_detail), F.lit("")).alias(
            "detail"
        ),
    )


def _nearest(best: Column) -> Column:
    first = best["first"]

    def names(members: Column) -> Column:
        return F.when(F.size(members) == 0, "nobody").otherwise(F.array_join(members, ", "))

    return F.concat(
        F.lit("nearest is "),
        best["assignor"],
        F.when(
            best["verdict"] != "ok", F.concat(F.lit(" ("), best["verdict"], F.lit(")"))
        ).otherwise(""),
        F.when(
            first.isNotNull(),
            F.concat(
                F.lit(": "),
                first["topic"],
                F.lit("-"),
                first["partition"].cast("string"),
                F.lit(" is with "),
                names(first["observed"]),
                F.lit(", not with "),
                names(first["expected"]),
            ),
        ).otherwise(""),
    )
