"""What ``validate`` says of the problems that tasks find: SQL over ``tasks.GROUP_PROBLEMS``."""

from collections.abc import Collection

from kassign_spark.inputs.checks import (
    TOO_LARGE,
    assignor_problem,
    describe_duplicate,
    describe_too_large,
)
from kassign_spark.inputs.problem_rows import Problem
from kassign_spark.inputs.rules import sql_quoted, sql_sentence

_SUBSCRIBERS = ("number", "if(number = 1, 'member', 'members')")
_EMPTY_TOPIC = sql_sentence(
    "subscribed to by {} {}, has no partitions; left out of the assignment, as Kafka does",
    *_SUBSCRIBERS,
)
_UNKNOWN_TOPIC = sql_sentence(
    "subscribed to by {} {}, unknown to the table topics; left out of the assignment, as Kafka "
    "does",
    *_SUBSCRIBERS,
)
_HIDDEN_TOPIC = sql_sentence(
    "subscribed to by {} {}, who own {} of its partitions, unknown to the table topics: it was "
    "deleted, or the snapshot may not describe it; then Kafka assigns it, and the plan lacks it",
    *_SUBSCRIBERS,
    "numbers[0]",
)
_INSTANCE = (sql_quoted("text"), "array_join(texts, ', ')")
_CLASSIC_INSTANCE = sql_sentence(
    "group.instance.id {} is used by {}; a broker fences all but the newest", *_INSTANCE
)
_NEW_INSTANCE = sql_sentence(
    "group.instance.id {} is used by {}; a broker refuses all but the oldest of a group of the new "
    "protocol (UNRELEASED_INSTANCE_ID)",
    *_INSTANCE,
)
_COUNTED_CLAIM = sql_sentence(
    "the topic has only {} partitions; a plan drops the claim, but Kafka's sticky assignors count "
    "it",
    "number",
)
_DROPPED_CLAIM = sql_sentence("the topic has only {} partitions; the claim is dropped", "number")
_STRAY_CLAIM = sql_sentence("the table topics does not have the topic; the claim is dropped")
_CLAIMANT = sql_sentence("{} (generation {})", "m", "g")
_CLAIMANT_WITHOUT = sql_sentence("{} (no generation)", "m")
_DETAILS = {
    "duplicate_member": describe_duplicate("number"),
    **{problem: describe_too_large(problem, "number") for problem in TOO_LARGE},
    "topic_without_metadata": f"if(numbers[0] > 0, {_HIDDEN_TOPIC}, {_UNKNOWN_TOPIC})",
    "topic_without_partitions": _EMPTY_TOPIC,
    "duplicate_group_instance_id": f"if(size(numbers) > 0, {_NEW_INSTANCE}, {_CLASSIC_INSTANCE})",
    # Null where the topic is unknown: the sentences with its size are null, too.
    "owned_partition_missing": (
        f"coalesce(if(text is not null, {_COUNTED_CLAIM}, {_DROPPED_CLAIM}), {_STRAY_CLAIM})"
    ),
    "claims_mislead_client": "text",
    "owner_not_in_group": sql_sentence(
        "owns {} partitions but is not a member of the group: it counts as having left", "number"
    ),
    "claimed_twice": sql_sentence(
        "claimed by {}",
        "array_join(zip_with(texts, numbers, (m, g) -> "
        f"if(g < 0, {_CLAIMANT_WITHOUT}, {_CLAIMANT})), ', ')",
    ),
    "hash_order_not_reproduced": sql_sentence(
        "the hashes of {} member ids fall together in Java's hash map: in which order Kafka visits "
        "the members is not reproduced, so which of them keep one partition more may differ",
        "number",
    ),
    "member_order_unknown": sql_sentence(
        "members {} share a bucket of Java's hash map, and {} of them may keep one partition more: "
        "without member_seq it is not known which; here they are taken by member_id",
        "array_join(texts, ', ')",
        "number",
    ),
}


def problems_of_tasks(assignors: Collection[str] | None) -> list[Problem]:
    """Return what tasks look for; ``assignors`` are the known names, None: they are not judged."""
    details = dict(_DETAILS)
    if assignors is not None:
        # One row per group has its assignors; here they are judged.
        details["assignor_unusable"] = assignor_problem("texts", assignors)
    return [Problem(name, f"problem = '{name}'", detail) for name, detail in details.items()]
