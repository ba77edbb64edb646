"""One look at the tables of groups of the new protocol: whether anything is to be refused."""

from collections.abc import Collection
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.groups.eligible import fold_topics
from kassign_spark.inputs.checks import (
    Inputs,
    group_refusals,
    refuse_problems,
    row_refusals,
    size_refusals,
    unknown_assignors,
)
from kassign_spark.inputs.regexes import with_regex_problems, with_regex_topics
from kassign_spark.inputs.rules import (
    IS_CONSUMER_GROUP,
    any_broken,
    is_one_of,
    member_rules,
    owned_rules,
    rules_of_topics,
)
from kassign_spark.inputs.target_rules import (
    consumer_problems,
    regex_rules,
    suspect_key,
    target_suspects,
    topic_id_rules,
)
from kassign_spark.limits import PARTITIONS_OF_A_GROUP, PARTITIONS_OF_A_TOPIC
from kassign_spark.schemas import GROUP_KEY

_IS_OURS = "coalesce(group_type != 'classic', false)"


def refuse_consumer_groups(
    inputs: Inputs, target: DataFrame | None, known_assignors: Collection[str] | None
) -> None:
    """Check what decides about groups of group_type `consumer`; runs one query where all is well.

    Classic members are another one's to check, but not those of a type that nobody knows. The
    arguments are as in ``inspection.inspect_inputs``, members of all types.

    Raises:
        InputError: values that have no meaning; lists every one.
    """
    if not _suspects(inputs, target, known_assignors):
        return
    members = inputs.members.where(_IS_OURS)
    reading = with_regex_topics(members, inputs.topics) if inputs.has_regexes else members
    problems = [
        row_refusals(inputs._replace(members=members)),
        group_refusals(members, None),
        size_refusals(inputs._replace(members=reading)),
        *consumer_problems(inputs, members, target),
    ]
    if known_assignors is not None:
        problems.append(unknown_assignors(members, known_assignors))
    refuse_problems(reduce(DataFrame.unionByName, problems))


def _suspects(
    inputs: Inputs, target: DataFrame | None, known_assignors: Collection[str] | None
) -> int:
    """Count in one query what may be wrong; more than there is, never less."""
    is_broken = any_broken([*member_rules(), *(regex_rules() if inputs.has_regexes else [])])
    if known_assignors is not None:
        is_broken += f" or not coalesce({is_one_of('assignor', known_assignors)}, true)"
    members = with_regex_problems(inputs.members) if inputs.has_regexes else inputs.members
    of_members = members.selectExpr(
        *GROUP_KEY,
        f"{_IS_OURS} and ({is_broken}) as is_bad",
        f"if({_IS_OURS}, {suspect_key('member', 'xxhash64(member_id)')}, null) as key",
        f"{IS_CONSUMER_GROUP} as is_consumer",
    )
    of_groups = target_suspects(of_members, target)
    has_ids = "topic_id" in inputs.topics.columns
    topic_rules = [*rules_of_topics(inputs.topics), *(topic_id_rules() if has_ids else [])]
    is_suspect = F.col("is_inconsistent") | (F.col("is_twice") & F.lit(has_ids))
    of_topics = fold_topics(inputs.topics, bad_row=any_broken(topic_rules)).select(
        (F.col("bad_rows") + is_suspect.cast("int")).alias("suspects"), "num_partitions"
    )
    # Whether a group reads too much is counted only where all topics together have so many.
    of_topics = of_topics.agg(
        F.expr(
            f"sum(suspects) + cast(sum(least(num_partitions, {PARTITIONS_OF_A_TOPIC})) "
            f"> {PARTITIONS_OF_A_GROUP} as int) as suspects"
        )
    )
    counted = of_groups.select("suspects").unionByName(of_topics)
    if inputs.owned is not None:
        of_owned = inputs.owned.agg(F.expr(f"count_if({any_broken(owned_rules())}) as suspects"))
        counted = counted.unionByName(of_owned)
    (total,) = counted.agg(F.sum("suspects")).collect()
    return int(total[0] or 0)
