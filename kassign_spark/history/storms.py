"""Groups that rebalance too often: who causes it, and what other settings would have saved."""

from functools import partial

from pyspark.sql import DataFrame

from kassign_spark.conforming import conform
from kassign_spark.errors import InputError
from kassign_spark.groups.rows import in_tasks
from kassign_spark.history.columns import REBALANCES, STORMS
from kassign_spark.history.storms_kernel import storms_arrow
from kassign_spark.plans.offsets import seconds_of
from kassign_spark.sessions import cores
from kassign_spark.workers import check_workers


def storms(rebalances: DataFrame, *, within: str = "10m", at_least: int = 5) -> DataFrame:
    """Find times in which groups rebalance too often, and say who or what causes it.

    A rebalance is of a storm when it is one of ``at_least`` in a span of ``within``; those whose
    spans meet are one storm. What settings would have saved is found by replaying each client that
    left and came back by the rules of ``simulate``: a static member that is back within its session
    timeout starts no rebalance, neither by going nor by coming.

    Args:
        rebalances: what ``rebalances`` gives, of a batch.
        within: a length of time: a number and one of s, m, h, d.
        at_least: how many are too many.

    Returns:
        One row a storm: group_id string, begins, ends timestamp, rebalances int, most_within int:
        the most in one span, cause string (``columns.CAUSES``), client_id, client_host string: who
        joins and leaves the most (null: nobody does), joins, leaves int: its own, moved int: of all
        its rebalances, longest_pause double: seconds, saved_by_static int: rebalances that would
        not have been, had every client that came back had a ``group.instance.id``, with the session
        timeout that it had, saved_by_session int: with a session timeout of session_needed_ms as
        well, session_needed_ms int: longer than each was away (null: the present one is), detail
        string: the same in words.

    Raises:
        SchemaError: columns are missing or of the wrong type.
        SettingsError: ``within`` is no length of time.
        InputError: ``at_least`` is below 2.
    """
    seconds = seconds_of("within", within)
    if at_least < 2:
        raise InputError(f"at_least is {at_least}; a storm is of at least 2 rebalances")
    check_workers(rebalances.sparkSession)
    kernel = partial(storms_arrow, within=round(seconds * 1e6), at_least=at_least)
    tasks = cores(rebalances.sparkSession)
    known = conform(rebalances, REBALANCES)
    return in_tasks(known, kernel, STORMS.columns, tasks, keys=("group_id",))
