"""What ``validate`` says of each problem: SQL over what was counted."""

from kassign_spark.inputs.rules import says, shown


def without_metadata_says(subscribers: str) -> str:
    """Of a topic that the table of topics lacks."""
    return _left_out(subscribers, "unknown to the table topics")


def without_partitions_says(subscribers: str) -> str:
    """Of a topic with no partitions."""
    return _left_out(subscribers, "has no partitions")


def _left_out(subscribers: str, why: str) -> str:
    return says(
        f"subscribed to by {{}} {{}}, {why}; left out of the assignment, as Kafka does",
        subscribers,
        f"if({subscribers} = 1, 'member', 'members')",
    )


def instance_says(instance: str, members: str) -> str:
    """Of a group.instance.id, the name of its column, that several members have."""
    return says(
        "group.instance.id {} is used by {}; a broker fences all but the newest",
        shown(instance),
        f"array_join({members}, ', ')",
    )


def beyond_says(count: str, so: str = "the claim is dropped") -> str:
    """Of a partition beyond the ``count`` that there are; null: there is no topic."""
    there = says(f"the topic has only {{}} partitions; {so}", count)
    return f"coalesce({there}, {says(f'the cluster has no such topic; {so}')})"


def stranger_says(rows: str) -> str:
    """Of an owner that is not in the group."""
    return says("owns {} partitions but is no member of the group: it counts as having left", rows)


def claims_say(members: str, generations: str) -> str:
    """Of a partition with several claims: who, and in which generation, -1 if in none."""
    named = says("{} (generation {})", "m", "g")
    each = f"if(g < 0, {says('{} (no generation)', 'm')}, {named})"
    return says(
        "claimed by {}", f"array_join(zip_with({members}, {generations}, (m, g) -> {each}), ', ')"
    )


def order_says(ids: str, more: str) -> str:
    """Of members of which some keep one partition more."""
    return says(
        "members {} share a bucket of Java's hash map, and {} of them may keep one partition more: "
        "without member_seq it is not known which; here they are taken by member_id",
        f"array_join({ids}, ', ')",
        more,
    )


def lost_order_says(bucket_size: str) -> str:
    """Of a group whose members' hashes crowd a bucket."""
    return says(
        "the hashes of {} member ids fall together in Java's hash map: in which order Kafka visits "
        "the members is not reproduced, so which of them keep one partition more may differ",
        bucket_size,
    )
