"""Weights that nothing is planned by: of groups, topics and partitions that are not there."""

from pyspark.sql import DataFrame

from kassign_spark.conforming import check_same_clusters, conform, has_cluster_id
from kassign_spark.groups.input_counts import fold_topics
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.inputs.problem_rows import Check, Problem, list_problems
from kassign_spark.inputs.rules import sql_sentence
from kassign_spark.results import to_result
from kassign_spark.schemas import GROUP_KEY, MEMBERS, WEIGHTS


def unused_weights(weights: DataFrame, members: DataFrame, topics: DataFrame) -> DataFrame:
    """List the weights of groups, topics and partitions that the tables do not have.

    Returns:
        the columns of ``validate``, with the problems `weight_of_unknown_group` and
        `weight_of_unknown_partition`.

    Raises:
        SchemaError: columns are missing or of the wrong type.
    """
    check_same_clusters([(MEMBERS, members), (WEIGHTS, weights)])
    inputs = conform_inputs(members, topics)
    problems = find_unused(conform(weights, WEIGHTS), inputs.members, inputs.topics)
    return to_result(problems, "validate", has_cluster_id=has_cluster_id(members))


def find_unused(weights: DataFrame, members: DataFrame, topics: DataFrame) -> DataFrame:
    """List ``unused_weights`` of conforming tables; partition is a bigint."""
    passed = "the weight is passed over"
    counts = fold_topics(topics, bad_row="false").select("cluster_id", "topic", "num_partitions")
    with_counts = weights.join(counts, on=["cluster_id", "topic"], how="left")
    beyond = with_counts.where("num_partitions is null or partition >= num_partitions")
    only = sql_sentence(f"the topic has only {{}} partitions; {passed}", "num_partitions")
    missing = sql_sentence(f"the table topics does not have the topic; {passed}")
    groups = members.select(*GROUP_KEY).distinct()
    of_groups = weights.where("group_id is not null")
    of_nobody = of_groups.join(groups, on=list(GROUP_KEY), how="left_anti")
    about = (*GROUP_KEY, "topic", "partition")
    of_partition = Problem("weight_of_unknown_partition", "true", f"coalesce({only}, {missing})")
    no_group = sql_sentence(f"the table members does not have the group; {passed}")
    of_group = Problem("weight_of_unknown_group", "true", no_group)
    return list_problems(
        [Check(beyond, about, [of_partition]), Check(of_nobody, about, [of_group])]
    )
