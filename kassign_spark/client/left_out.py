"""Find topics that members subscribe to in vain: unknown, or without partitions."""

from collections.abc import Iterable

from kassign_spark.display import first_names

_MOST_TOPICS = 5
"""Topics of a group that a detail names."""


def describe_left_out(topics: Iterable[tuple[str, int]], *, is_idle: bool) -> str | None:
    """Describe the topics that a group subscribes to in vain; None if there are none.

    Args:
        topics: names of the topics left out, each with how many of its partitions members own.
        is_idle: whether the group gets nothing.
    """
    names = sorted(topics)
    reason = _describe_topics(names) if names else None
    return (
        f"the group gets nothing: {reason or 'no member subscribes to a topic'}"
        if is_idle
        else reason
    )


def _describe_topics(topics: list[tuple[str, int]]) -> str:
    """Name the topics, the first ones; and say what members own of them."""
    shown = first_names([topic for topic, _ in topics], _MOST_TOPICS)
    owned = sum(count for _, count in topics)
    hidden = (
        f"; members own {owned:,} of their partitions, so they were deleted, or the snapshot may "
        "not describe them, and then Kafka assigns them"
        if owned
        else ""
    )
    return f"left out, unknown to the table topics or without partitions: {shown}{hidden}"
