"""Advise changes for each group, with their cost: every line is computed by the real assignors."""

from pyspark.sql import DataFrame

from kassign_spark.conforming import has_cluster_id
from kassign_spark.groups.inspection import inspect_inputs
from kassign_spark.groups.rows import fold, run_in_tasks
from kassign_spark.inputs.input_tables import conform_inputs
from kassign_spark.inputs.rules import is_consumer_group
from kassign_spark.results import to_result
from kassign_spark.settings.computing import Settings
from kassign_spark.whatif.advice import ADVICE, advise_arrow


def advise(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    *,
    settings: Settings = Settings(),
) -> DataFrame:
    """Find changes that would make each group more even, the cheapest for its gain first.

    What is tried: the other assignors; that one member, or all others, subscribe to topics that too
    few can read (the dense part of ``bottlenecks``), or all to everything; more members, up to
    double, subscribed like the most loaded one, and fewer, down to half, without the least loaded
    ones (of groups with differing subscriptions only those that have nothing); more partitions of
    the largest topic that its readers do not divide; Java's client where another library leads; and
    ``group.instance.id``, where a restart of the most loaded member, which leaves and comes back
    under another id, moves partitions. Each is a rebalance from what is owned, by the group's own
    assignor unless that is the change; compared is with the rebalance that it would have without
    any change. Racks are not looked at.

    Groups of group_type `consumer` are left out: their coordinator assigns, not one of these.

    Args:
        members: ``schemas.MEMBERS``; a group that names none of Kafka's assignors is taken to use
            `range`.
        topics: ``schemas.TOPICS``, or one row per partition.
        owned: ``schemas.OWNED``, what members own before.
        settings: ``batches``.

    Returns:
        One row per group and change that gains something: cluster_id string (where the inputs have
        it), group_id string, rank int: from 1, by gain for each partition that moves or pauses,
        change string: `assignor`, `subscription`, `members`, `partitions`, `client` (another
        library leads) or `group.instance.id` (the last of its group), detail string: what to do, in
        words, assignor string: what the change is with, member_ids `array<string>`: who subscribes,
        who goes, whom the new ones are like, or who restarts; else null, topics `array<string>`: of
        `subscription` and `partitions`, member_count int: of `members`, num_partitions int: of
        `partitions`, max_before bigint, max_after bigint: the largest load, spread_before bigint,
        spread_after bigint: between the largest and the least, idle_before int, idle_after int:
        members with nothing, moved bigint: partitions that change their owner, paused bigint:
        partitions that a member which stays stops reading for a while, rounds int, gain bigint: by
        how much the largest load (not for `members`), the spread and the idle members go down
        together; 0 for `group.instance.id`, restart_moved bigint: of that, partitions that a
        restart moves; else null, reason string: why the group is as it is, and what Kafka's own
        client does instead where members claim partitions that do not exist. At most three rows of
        a kind.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: values that have no meaning; lists every one.
    """
    inputs = conform_inputs(members, topics, owned)
    classic = inputs.members.where(~is_consumer_group())
    eligible = inspect_inputs(inputs._replace(members=classic), None).eligible
    eligible = eligible._replace(has_racks=False)
    advice = run_in_tasks(
        fold(eligible), advise_arrow, ADVICE, settings.batches or eligible.batches
    )
    return to_result(advice, "advise", has_cluster_id=has_cluster_id(members))
