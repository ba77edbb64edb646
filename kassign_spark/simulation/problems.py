"""Events that are not possible in the state that they meet."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from kassign_spark.schemas import CLUSTER_ID
from kassign_spark.simulation.events import RESTARTS


def is_restart() -> Column:
    """Whether the event ``e`` is the restart of a member."""
    return F.col("e.kind").isin(*RESTARTS)


def problem_of_event() -> Column:
    """Say why an event is not possible, over what ``decide`` knows of its group; null: it is."""
    event, kind = F.col("e"), F.col("e.kind")
    group = F.concat(F.lit("group "), F.to_json(F.array("group_id")))
    member = F.concat(F.lit("member "), F.to_json(F.array(event["member_id"])))
    topic = F.concat(F.lit("topic "), F.to_json(F.array(event["topic"])))

    def unquoted(text: Column) -> Column:
        return F.regexp_replace(text, r'^(\w+ )\["(.*)"\]$', '$1"$2"')

    group, member, topic = (unquoted(text) for text in (group, member, topic))
    size = event["topic_size"]
    is_unknown = F.coalesce(F.col("known_count"), F.lit(0)) == 0
    joins = kind == "member_joins"
    needs_here = event["member_id"].isNotNull() & (~joins & ~(is_restart() & (event["stage"] == 2)))
    return (
        F.when(
            F.col("group_id").isNull(),
            F.concat(F.lit("no group is in cluster "), F.to_json(F.array(event[CLUSTER_ID]))),
        )
        .when(
            (kind == "topic_appears") & size.isNotNull(),
            F.concat(
                topic, F.lit(" is there already, with "), size.cast("string"), F.lit(" partitions")
            ),
        )
        .when(
            kind.isin("topic_grows", "topic_disappears") & size.isNull(),
            F.concat(topic, F.lit(" is not there")),
        )
        .when(
            (kind == "topic_grows") & (event["num_partitions"] <= size),
            F.concat(
                topic,
                F.lit(" has "),
                size.cast("string"),
                F.lit(" partitions and cannot get "),
                event["num_partitions"].cast("string"),
                F.lit(": their number only grows"),
            ),
        )
        .when(
            is_unknown
            | (joins & (F.col("known_count") == 1) & F.col("is_new") & F.col("unassigned")),
            F.concat(
                group,
                F.when(
                    joins, " is not there: a new group needs topics or topics_pattern, and "
                ).otherwise(" is not there"),
                F.when(joins, "assignors").otherwise(""),
            ),
        )
        .when(
            joins & F.col("target_was_here"),
            F.concat(member, F.lit(" is in "), group, F.lit(" already")),
        )
        .when(
            needs_here & ~F.col("target_was_here"),
            F.concat(
                group,
                F.lit(" has no "),
                member,
                F.when(F.col("target_was_away"), " any more: it went before").otherwise(""),
            ),
        )
        .when(
            F.col("has_duplicates"), F.concat(F.lit("new_member_id is another member of "), group)
        )
        .when(
            F.col("shares_instance"),
            F.concat(
                F.lit("group.instance.id "),
                F.coalesce(event["group_instance_id"], F.lit("")),
                F.lit(" is another member's of "),
                group,
                F.lit(": member_restarts takes its place"),
            ),
        )
        .when(
            F.col("bad_pattern").isNotNull(),
            F.concat(
                F.lit("topics_pattern "),
                F.to_json(F.array("bad_pattern")),
                F.lit(" is no pattern of java.util.regex that a consumer takes"),
            ),
        )
        .when(
            F.col("unsubscribed"),
            F.concat(
                F.lit("the members of "),
                group,
                F.lit(" do not all subscribe alike: give topics or topics_pattern"),
            ),
        )
        .when(
            F.col("unassigned"),
            F.concat(
                F.lit("the members of "),
                group,
                F.lit(" do not all list the same assignors: give them"),
            ),
        )
    )
