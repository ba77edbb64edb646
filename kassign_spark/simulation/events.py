"""The events of a simulation: their table, what each kind needs, and the order they come in."""

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.client_libraries import COORDINATOR_ASSIGNORS
from kassign_spark.conforming import conform
from kassign_spark.errors import InputError
from kassign_spark.inputs.problem_rows import MAX_LISTED
from kassign_spark.inputs.regexes import REGEX_PROBLEM, with_regex_problems
from kassign_spark.inputs.rules import (
    INT_MAX,
    NAME_ADVICE,
    integer_rule,
    is_one_of,
    is_refused_name,
    sql_quoted,
    sql_sentence,
    sql_text,
)
from kassign_spark.limits import EVENTS as MOST_EVENTS
from kassign_spark.limits import PARTITIONS_OF_A_TOPIC
from kassign_spark.plans.protocol_choice import PROTOCOLS
from kassign_spark.schemas import CLUSTER_ID, GROUP_KEY, table_of
from kassign_spark.simulation.timeouts import LEAST, Timeouts
from kassign_spark.spark.iteration import materialize

EVENTS = table_of(
    "events",
    "cluster_id string?, event int, kind string, line int?, group_id string?, member_id string?, "
    "group_instance_id string?, rack_id string?, topics array<string>?, topics_pattern string?, "
    "assignors array<string>?, new_member_id string?, downtime_ms int?, topic string?, "
    "num_partitions int?, topics_regex string?, stop string?, computed_before_ms int?, "
    "replica_racks array<array<string>>?, " + ", ".join(f"{name} int?" for name in LEAST),
)
"""What happens. ``event`` is the order, of each group and of its cluster's topics: two events of
one group have different numbers, events of two groups may have the same. ``line`` is where the
event stands in a file, for messages. ``member_id`` may be a static member's ``group.instance.id``,
but where the member joins. Of groups of the new protocol only: ``topics_regex``, ``stop`` (how a
member goes, one of ``STOPS``) and ``computed_before_ms``, how long before the event the group's
last target was computed (null: longer ago than the assignment interval)."""

STOPS = ("close", "leave_group", "remain_in_group", "crash")
"""The first three are ``CloseOptions`` of the Java client (KIP-1092), `close` its default."""


class Kind(NamedTuple):
    """An event kind: the columns that it must have, and those that it may have."""

    needs: tuple[str, ...]
    may: tuple[str, ...] = ()


_MEMBER = ("group_id", "member_id")
_SUBSCRIPTION = ("topics", "topics_pattern", "topics_regex")
_WHEN = ("computed_before_ms",)
KINDS = {
    "member_joins": Kind(
        _MEMBER, (*_SUBSCRIPTION, "group_instance_id", "rack_id", "assignors", *_WHEN)
    ),
    "member_leaves": Kind(_MEMBER, ("stop", *_WHEN)),
    "member_crashes": Kind(_MEMBER),
    "member_polls_too_late": Kind(_MEMBER),
    "member_restarts": Kind(
        _MEMBER,
        (*_SUBSCRIPTION, "rack_id", "assignors", "new_member_id", "downtime_ms", "stop", *_WHEN),
    ),
    "subscription_changes": Kind(("group_id",), ("member_id", *_SUBSCRIPTION, *_WHEN)),
    "assignor_changes": Kind(
        (*_MEMBER, "assignors"), ("new_member_id", "downtime_ms", "stop", *_WHEN)
    ),
    "group_settings_change": Kind(("group_id",)),
    "topic_appears": Kind(("topic", "num_partitions")),
    "topic_disappears": Kind(("topic",)),
    "topic_grows": Kind(("topic", "num_partitions")),
    "topic_is_recreated": Kind(("topic", "num_partitions")),
    "topic_changes_racks": Kind(("topic", "replica_racks")),
}
TOPIC_KINDS = tuple(kind for kind in KINDS if kind.startswith("topic_"))
RESTARTS = ("member_restarts", "assignor_changes")
"""A new list of assignors takes a restart of the member."""
_SETTINGS = ("session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms")
"""``consumer.session.timeout.ms`` and so on, of ``kafka-configs --entity-type groups``."""
_ASSIGNORS = sorted({*PROTOCOLS, *COORDINATOR_ASSIGNORS})
_NO_REGEX_PROBLEM = f"cast(null as string) as {REGEX_PROBLEM}"
_ALWAYS = (CLUSTER_ID, "event", "kind", "line", *LEAST)


class Events(NamedTuple):
    """Events that make sense by themselves.

    Attributes:
        frame: held; the columns of ``EVENTS``, timeouts filled in, and is_topic boolean.
        counts: of those that are about topics, that give patterns, regexes, and racks.
    """

    frame: DataFrame
    counts: dict[str, int]


def check_events(events: DataFrame, timeouts: Timeouts) -> Events:
    """Check events by themselves; runs a job.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        InputError: an event lacks what its kind needs, has what it has no use for, has a number
            out of range, or stands at the place of another; lists every one.
    """
    event_rows = conform(events, EVENTS)
    has_regexes = "topics_regex" in events.columns
    # A file has rows of all kinds in one frame: what a row leaves out is null.
    typed = event_rows.selectExpr(
        "*", f"coalesce({is_one_of('kind', TOPIC_KINDS)}, false) as is_topic"
    )
    typed = with_regex_problems(typed) if has_regexes else typed.selectExpr("*", _NO_REGEX_PROBLEM)
    checked, measured = materialize(
        typed.selectExpr("*", f"{_problem()} as problem"),
        {
            "events": F.count(F.lit(1)),
            "bad": F.expr("count(problem)"),
            "topics": F.expr("count_if(is_topic)"),
            "patterns": F.expr("count(topics_pattern)"),
            "regexes": F.expr("count(topics_regex)"),
            "racks": F.expr("count(rack_id)"),
        },
    )
    if measured["events"] > MOST_EVENTS:
        raise InputError(f"{measured['events']:,} events; at most {MOST_EVENTS:,} are followed")
    if measured["bad"]:
        raise_problems(checked.where("problem IS NOT NULL"))
    names = ", ".join(f"if({name} is null, null, {sql_text(name)})" for name in LEAST)
    filled = vars(timeouts)
    return Events(
        checked.selectExpr(
            *(
                f"coalesce({c}, {filled[c]}) as {c}" if c in filled else c
                for c in event_rows.columns
            ),
            "is_topic",
            f"array_compact(array({names})) as own_timeouts",
        ).coalesce(1),  # at most MOST_EVENTS
        measured,
    )


def raise_problems(problems: DataFrame) -> None:
    """Raise the error that lists ``problem`` of events, in their order.

    Raises:
        InputError: always.
    """
    order = ["event", "line", *GROUP_KEY, "problem"]
    problem_rows = (
        problems.selectExpr(f"{_where()} as where", "problem", *order[:-1])
        .orderBy(*order)
        .limit(MAX_LISTED + 1)
    )
    rows = [f"{row.where}: {row.problem}" for row in problem_rows.collect()]
    more = "; and more problems" if len(rows) > MAX_LISTED else ""
    raise InputError("; ".join(rows[:MAX_LISTED]) + more)


def _where() -> str:
    kind = "coalesce(concat(' (', kind, ')'), '')"
    name = sql_sentence("event {}{}", "coalesce(cast(event as string), 'without a number')", kind)
    return f"coalesce({sql_sentence('line {}: {}', 'line', name)}, {name})"


def _problem() -> str:
    """Return the first rule that an event breaks, as text; null where it is fine."""
    kinds, stops, assignors = (", ".join(names) for names in (KINDS, STOPS, _ASSIGNORS))
    rules = [
        ("event is null", sql_text("column event: give each event a number")),
        (
            f"not coalesce({is_one_of('kind', KINDS)}, false)",
            sql_sentence(f"unknown kind {{}}; known are {kinds}", sql_quoted("kind")),
        ),
    ]
    for name in EVENTS.columns.names:
        if name in _ALWAYS:
            continue
        needed = [kind for kind, rule in KINDS.items() if name in rule.needs]
        useless = [
            k for k, rule in KINDS.items() if name not in rule.needs and name not in rule.may
        ]
        rules += [
            (f"{is_one_of('kind', needed)} and {name} is null", sql_text(f"needs {name}")),
            (
                f"{is_one_of('kind', useless)} and {name} is not null",
                sql_text(f"has no use for {name}"),
            ),
        ]
        if name in ("group_id", "member_id", "topic", "new_member_id"):
            rules.append((f"{name} = ''", sql_text(f"{name} is empty")))
    unknown = f"array_except(assignors, array({', '.join(map(sql_text, _ASSIGNORS))}))"
    rules += [
        (
            "topics_pattern is not null and (topics is not null or topics_regex is not null)",
            sql_text("give topics_pattern, or topics and topics_regex, not both"),
        ),
        (
            "kind = 'subscription_changes' and "
            + " and ".join(f"{name} is null" for name in _SUBSCRIPTION),
            sql_text("needs topics, topics_pattern or topics_regex"),
        ),
        (
            f"kind = 'group_settings_change' and coalesce({', '.join(_SETTINGS)}) is null",
            sql_text(f"needs one of {', '.join(_SETTINGS)}"),
        ),
        (
            f"{REGEX_PROBLEM} is not null",
            sql_sentence("topics_regex {}: {}", sql_quoted("topics_regex"), REGEX_PROBLEM),
        ),
        (
            f"not {is_one_of('stop', STOPS)}",
            sql_sentence(f"unknown stop {{}}; known: {stops}", sql_quoted("stop")),
        ),
        (
            "exists(topics, name -> name is null or name = '')",
            sql_text("topics has a null or empty name"),
        ),
        (
            f"topic != '' and {is_refused_name('topic')}",
            sql_sentence(f"topic {{}}: {NAME_ADVICE}", sql_quoted("topic")),
        ),
        (
            f"exists(topics, name -> {is_refused_name('name')})",
            sql_sentence(
                f"topics: {{}}: {NAME_ADVICE}",
                f"to_json(filter(topics, name -> {is_refused_name('name')}))",
            ),
        ),
        ("size(assignors) = 0", sql_text("assignors is empty")),
        (
            f"size({unknown}) > 0",
            sql_sentence(f"unknown assignor {{}}; known are {assignors}", f"to_json({unknown})"),
        ),
    ]
    least_of = {"event": -(2**31), "num_partitions": 1, "downtime_ms": 0, "computed_before_ms": 0}
    for name, least in (least_of | LEAST).items():
        most = PARTITIONS_OF_A_TOPIC if name == "num_partitions" else INT_MAX
        number = integer_rule(name, least=least, most=most)
        rules.append(
            (number.broken, sql_sentence(f"{name} is {{}}; {{}}", number.value, number.advice))
        )
    at_once = f"(partition by {CLUSTER_ID}, event)"
    of_topic = f"max(is_topic) over {at_once} and count(*) over {at_once} > 1"
    of_group = f"count(*) over (partition by {', '.join(GROUP_KEY)}, event) > 1"
    at_same = "another event has the same number: the order is not known"
    rules.append((f"{of_topic} or {of_group}", sql_text(at_same)))
    return f"case {' '.join(f'when {broken} then {problem}' for broken, problem in rules)} end"


def with_steps(events: DataFrame) -> DataFrame:
    """Return in which step each event is, were all clusters to go on at one pace; runs no job.

    The nth events of all groups are of one step, but none before a topic's event of its cluster
    that comes first: it parts the groups' events into segments. A restart takes two steps.

    Returns:
        the columns of ``EVENTS``, step int (from 1), stage int, is_topic boolean.
    """
    cluster, segment = f"partition by {CLUSTER_ID}", [CLUSTER_ID, "segment"]
    in_order = f"over ({cluster} order by event)"
    of_group = f"{cluster}, segment, group_id order by event rows unbounded preceding"
    before = f"{cluster} order by segment rows between unbounded preceding and 1 preceding"
    placed = events.selectExpr(
        "*",
        f"if({is_one_of('kind', RESTARTS)}, 2, 1) as stages",
        f"count_if(is_topic) {in_order} - cast(is_topic as int) as segment",
    ).selectExpr("*", f"sum(stages) over ({of_group}) as place")
    length = F.expr("coalesce(max(if(is_topic, null, place)), 0) as length")
    offset = f"segment + coalesce(sum(length) over ({before}), 0) as offset"
    offsets = placed.groupBy(*segment).agg(length).selectExpr("*", offset)
    first = "if(is_topic, length + 1, place - stages + 1)"
    return (
        placed.join(offsets, on=segment, how="inner")
        .selectExpr("*", "explode(sequence(1, stages)) as stage")
        .selectExpr("*", f"cast(offset + {first} + stage - 1 as int) as step")
        .select(*EVENTS.columns.names, "step", "stage", "is_topic")
    )
