"""Kafka's RangeAssignor: consecutive blocks of each topic, the first ones longer."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kassign_spark.assignors.in_tasks import RANGE
from kassign_spark.assignors.task_groups import assign_in_tasks, goes_by_clients, split_by_racks
from kassign_spark.groups.eligible import Eligible, member_order
from kassign_spark.groups.paths import WINDOWS
from kassign_spark.groups.subscribers import deal, homogeneous_topics, spread
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY
from kassign_spark.settings.computing import Settings


def assign_range(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign as ``org.apache.kafka.clients.consumer.RangeAssignor`` does.

    Of a topic with n partitions and k subscribers in MemberInfo order, the first n mod k get
    n div k + 1 consecutive partitions each, the others n div k. Where racks count, members get as
    many, but first of what has a replica in their own rack: that is sequential inside a group, and
    such groups are answered inside tasks.

    Returns:
        The columns of ``schemas.ASSIGNMENT``.
    """
    if goes_by_clients(eligible, settings):
        return assign_in_tasks(eligible, settings, RANGE)
    by_racks, others = split_by_racks(eligible, settings)
    parts = [] if others is None else [_assign_blocks(others, settings)]
    if by_racks is not None:
        parts.append(assign_in_tasks(by_racks, settings, RANGE))
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def _assign_blocks(eligible: Eligible, settings: Settings) -> DataFrame:
    eligible.note_path(WINDOWS)
    if eligible.heterogeneous:
        return _assign_by_rank(eligible, settings)
    return deal(homogeneous_topics(eligible, settings), _block_of_partition())


def _assign_by_rank(eligible: Eligible, settings: Settings) -> DataFrame:
    """Rank members among the subscribers of each topic, and give each its block.

    With 10,000 members of one group that all read the same 1,000 topics, to make a row of each
    member and topic takes 1.4 times as long as to look each partition's member up. Where members
    differ there is no list that serves all topics of a group, and to make one a topic takes twice
    as long (100,000 groups of ten members).
    """
    group = Window.partitionBy(*GROUP_KEY)
    ranked = eligible.members.select(
        *GROUP_KEY,
        "member_id",
        "topics",
        (F.row_number().over(group.orderBy(*member_order())) - 1).alias("rank"),
    )
    # The window has put a group into one task: its topics and partitions are for all of them.
    tasks = eligible.tasks if eligible.most_topics > settings.topics_per_task else 1
    topic = F.explode(F.array_distinct("topics")).alias("topic")
    subscriptions = (
        spread(ranked, tasks)
        .select(*GROUP_KEY, "member_id", "rank", topic)
        .join(eligible.topics, on=[CLUSTER_ID, "topic"], how="inner")
    )
    of_topic = Window.partitionBy(*GROUP_KEY, "topic")
    subscriptions = spread(subscriptions, tasks, *GROUP_KEY, "topic").withColumns(
        {
            "rank": F.row_number().over(of_topic.orderBy("rank")) - 1,
            "subscriber_count": F.count("*").over(of_topic),
        }
    )
    shortest, longer = "num_partitions div subscriber_count", "num_partitions % subscriber_count"
    first = f"rank * ({shortest}) + least(rank, {longer})"
    last = f"{first} + {shortest} + if(rank < {longer}, 0, -1)"
    names = (*GROUP_KEY, "member_id", "topic")
    return (
        subscriptions.selectExpr(*names, f"int({first}) as first", f"int({last}) as last")
        .where("first <= last")
        .select(*names, F.explode(F.sequence("first", "last")).alias("partition"))
    )


def _block_of_partition() -> Column:
    """Number the block that a partition lies in, from partition, num_partitions, subscribers."""
    shortest, longer = "num_partitions div size(subscribers)", "num_partitions % size(subscribers)"
    in_longer = f"{longer} * ({shortest} + 1)"
    # The last only where shortest >= 1: greatest() keeps the plan free of a division by zero.
    return F.expr(f"""int(if(
        partition < {in_longer},
        partition div ({shortest} + 1),
        {longer} + (partition - {in_longer}) div greatest({shortest}, 1L)
    ))""")
