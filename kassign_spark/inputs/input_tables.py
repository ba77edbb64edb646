"""The input tables of most functions, made to conform to their schemas."""

from typing import NamedTuple

from pyspark.sql import DataFrame

from kassign_spark.conforming import check_same_clusters, conform, topics_table
from kassign_spark.inputs.client_families import SIGNS, with_clients
from kassign_spark.inputs.patterns import with_topics
from kassign_spark.inputs.regexes import with_regex_topics
from kassign_spark.schemas import MEMBERS, OWNED, OWNED_IN_ORDER, TARGET, Table


class Inputs(NamedTuple):
    """The input tables, conforming to their schemas."""

    members: DataFrame
    topics: DataFrame
    owned: DataFrame | None
    target: DataFrame | None
    has_patterns: bool
    """Whether members may subscribe by a pattern that the client resolves."""
    has_regexes: bool
    """Whether members may subscribe by a regex that the broker resolves."""
    has_types: bool
    """Whether there may be groups whose coordinator assigns (KIP-848)."""
    topics_form: Table
    """The schema of topics, one of two."""
    has_positions: bool = False
    """Whether what is owned may be in the order of the members' lists."""


def conform_inputs(
    members: DataFrame,
    topics: DataFrame,
    owned: DataFrame | None = None,
    target: DataFrame | None = None,
) -> Inputs:
    """Make the callers' tables conform to their schemas; runs no job.

    Raises:
        SchemaError: columns are missing or of the wrong type; lists every one of a table.
        SessionError: the server of Spark Connect does not answer.
        WorkerError: the session's Python workers run an interpreter without our packages.
    """
    members_in_order = conform(members, MEMBERS)
    topics_form = topics_table(topics)
    check_same_clusters(
        [(MEMBERS, members), (topics_form, topics), (OWNED, owned), (TARGET, target)]
    )
    has_positions = owned is not None and "position" in owned.columns
    has_signs = not {*SIGNS}.isdisjoint(members.columns)
    return Inputs(
        with_clients(members_in_order) if has_signs else members_in_order,
        conform(topics, topics_form),
        None if owned is None else conform(owned, OWNED_IN_ORDER if has_positions else OWNED),
        None if target is None else conform(target, TARGET),
        has_patterns="topics_pattern" in members.columns,
        has_regexes="topics_regex" in members.columns,
        has_types="group_type" in members.columns,
        topics_form=topics_form,
        has_positions=has_positions,
    )


def resolve_topics(inputs: Inputs) -> Inputs:
    """Return members with the topics of their pattern or regex; runs no job."""
    members = inputs.members
    if inputs.has_patterns:
        members = with_topics(members, inputs.topics)
    if inputs.has_regexes:
        members = with_regex_topics(members, inputs.topics)
    return inputs._replace(members=members)
