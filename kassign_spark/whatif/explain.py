"""Find which of Kafka's assignors explains an observed assignment."""

from pyspark.sql import DataFrame

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.groups.rows import fold, observed_rows, run_in_tasks
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.results import to_result
from kassign_spark.schemas import ASSIGNMENT, MEMBERS
from kassign_spark.whatif.explain_kernel import EXPLAINED, explain_arrow


def explain(
    assignment: DataFrame,
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
) -> DataFrame:
    """Return which assignor would have made an assignment, for every group at once.

    Groups of group_type `consumer` are asked of the coordinator's `uniform` and `range`, which
    start from what members own. Of the others all of ``PREDICTED`` are predicted from what the
    members said when the rebalance began. For the sticky ones each member of an older generation is
    also left out, one at a time: so a stale claim is found that made the assignment what it is, or
    that the leader cannot have seen.
    `cooperative-sticky` is one rebalance; where the one that hands over has followed, ``owned`` is
    what members said then.

    Args:
        assignment: ``schemas.ASSIGNMENT``, observed in the cluster.
        members: ``schemas.MEMBERS``; ``assignor`` decides between several that fit.
        topics: ``schemas.TOPICS``, or one row per partition.
        owned: ``schemas.OWNED``, what members said that they owned.

    Returns:
        One row per group: cluster_id string (where the inputs have it), group_id string,
        assignor string: what explains the assignment; null where nothing does,
        differing_count bigint: partitions that the nearest one gives to others,
        detail string: in how many partitions the group's own assignor differs where it is not the
        one that explains it, which others fit too, whose stale claims decide, or which assignor is
        the nearest and the first partition that differs; null if there is nothing to add,
        own_assignor string: what the members name, or the coordinator chooses by their votes; null
        where it is none of Kafka's.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning; lists every one.
    """
    check_same_clusters([(ASSIGNMENT, assignment), (MEMBERS, members)])
    inputs = conform_inputs(members, topics, owned)
    eligible = inspect_inputs(inputs, None).eligible
    table = fold(eligible).unionByName(observed_rows(conform(assignment, ASSIGNMENT)))
    rows = run_in_tasks(table, explain_arrow, EXPLAINED, eligible.batches)
    return to_result(rows, "explain", has_cluster_id=has_cluster_id(members))
