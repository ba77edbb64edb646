"""Every assignor on the same state, beside the best that there is."""

from functools import partial

from pyspark.sql import DataFrame

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.groups.rows import fold, run_in_tasks
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.inputs.regexes import with_regex_topics
from kassign_spark.plans.weight_rows import (
    check_weight_options,
    fold_weights,
    refuse_weights,
    run_or_refuse,
)
from kassign_spark.plans.weighted_groups import WeightOptions
from kassign_spark.results import to_result
from kassign_spark.schemas import MEMBERS, WEIGHTS
from kassign_spark.settings.computing import Settings
from kassign_spark.whatif.compare_kernel import COMPARED, COMPARED_BY_WEIGHT, compare_arrow


def compare(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    exact: bool = False,
    settings: Settings = Settings(),
    weights: DataFrame | None = None,
    missing_weight: float | None = None,
    base_weight: float = 0.0,
) -> DataFrame:
    """Follow a rebalance of every group under every assignor of Kafka's.

    The coordinator's `uniform` and `range` (protocol `consumer`, KIP-848) start from what members
    own, as they do when a group goes over; neither looks at racks. A group is answered inside a
    task, whatever its size.

    Args:
        members: ``schemas.MEMBERS``; ``assignor`` is not looked at.
        topics: ``schemas.TOPICS``, or one row per partition.
        owned: ``schemas.OWNED``, what members own before.
        exact: with Kafka's own answers, as ``rebalance`` gives them; it may then end in verdicts
            other than ok. Otherwise with those of ``assign``, which are the best there are where
            subscriptions differ.
        settings: how to compute it; not used with ``exact``.
        weights: ``schemas.WEIGHTS``: what partitions weigh, as for ``plan_by_weight``; capacities
            are those of ``members``. With them, all is computed, and held, before this returns.
        missing_weight: as for ``plan_by_weight``.
        base_weight: as for ``plan_by_weight``.

    Returns:
        One row per group, assignor and protocol: cluster_id string (where the inputs have it),
        group_id string, assignor string, protocol string: `eager`, `cooperative` or
        `consumer`,
        verdict string: as in ``rebalance(..., exact=True)``, with protocol `consumer` of
        ``predict``: `inexact` where topic ids or the members' order are not known, detail string,
        member_count int, partition_count bigint: assigned in the end, kept bigint: of these, with a
        member that had them, moved bigint: with another member than before, also one that left,
        least_moves bigint: the fewest that can move at the best balance (a worse balance may need
        fewer), spread bigint: between the members with the most and the
        fewest partitions, topic_spread bigint: the same among the subscribers of one topic, of the
        topic where it is largest, sum_of_squares bigint: of the members' loads,
        least_sum_of_squares bigint: at the best balance, rounds int, paused bigint: partitions that
        their member stops reading for a while, though it is still there, cross_rack bigint: as
        cross_rack_count of ``balance``, cross_rack_more bigint: how many more than are owned across
        racks now; negative: fewer.
        kept, moved, least_moves and cross_rack_more are null without ``owned``; the optimum is null
        where nothing is assigned, and all columns of an answer where there is none (throws,
        never_ends). Of a partition that several members claim, any of them keeps it; the optimum
        knows one of them.
        With ``weights`` also, null in groups without weight: max_load double (the greatest of a
        member's weight by its capacity), load_skew double (that by the fair load of the group, as
        in ``tradeoff``), load_bound double (no assignment has a lower max_load), moved_weight
        double (of what counts as moved).

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning, or weights that are missing; lists every one.
        SettingsError: an option is out of range.
    """
    check_weight_options(missing_weight=missing_weight, base_weight=base_weight)
    inputs = conform_inputs(members, topics, owned)
    if inputs.has_regexes:
        inputs = inputs._replace(members=with_regex_topics(inputs.members, inputs.topics))
    eligible = inspect_inputs(inputs, None, both_types=True).eligible
    kernel = partial(
        compare_arrow,
        exact=exact,
        is_owned=owned is not None,
        has_racks="replica_racks" in topics.columns,
        racks_before_moves=settings.racks_before_moves,
        max_rounds=settings.max_rounds,
    )
    tasks = settings.batches or eligible.batches
    if weights is None:
        rows = run_in_tasks(fold(eligible), kernel, COMPARED, tasks)
    else:
        check_same_clusters([(MEMBERS, members), (WEIGHTS, weights)])
        known_weights = conform(weights, WEIGHTS)
        refuse_weights(known_weights, inputs.members)
        kernel = partial(kernel, weights=WeightOptions(False, missing_weight, base_weight, {}))
        table = fold_weights(eligible, known_weights)
        rows = run_or_refuse(table, kernel, COMPARED_BY_WEIGHT, tasks).drop("problem")
    form = "compare" if weights is None else "compare.weighted"
    return to_result(rows, form, has_cluster_id=has_cluster_id(members))
