"""Groups that another client library than their own would make more even."""

from pyspark.sql import functions as F

from kassign_spark.client_libraries import JAVA
from kassign_spark.conforming import conform, topics_table
from kassign_spark.inputs.client_families import SIGNS, with_clients
from kassign_spark.report.details import Rows, rows_of
from kassign_spark.report.plan import Plan
from kassign_spark.schemas import GROUP_KEY, MEMBERS, OWNED
from kassign_spark.spark.iteration import materialize
from kassign_spark.whatif.advise import advise

_MOST = 3
"""Groups that a finding names."""


def other_libraries(plan: Plan) -> tuple[int, Rows]:
    """Count the groups that Java's client would make more even than the library that leads them.

    Returns:
        how many there are; of the worst ``_MOST`` group_id, detail, max_before, max_after.
    """
    members, topics, owned = plan.snapshot
    if {"client", *SIGNS}.isdisjoint(members.columns):
        return 0, []
    conformed = with_clients(conform(members, MEMBERS))
    is_other = f"client != '{JAVA}'"
    groups = conformed.where(is_other).select(*GROUP_KEY).distinct()
    if groups.isEmpty():
        return 0, []
    advice = advise(
        conformed.join(groups, on=list(GROUP_KEY), how="left_semi"),
        conform(topics, topics_table(topics)),
        None if owned is None else conform(owned, OWNED),
    ).where("change = 'client'")
    better = materialize(advice.select("group_id", "detail", "max_before", "max_after")).frame
    worst = better.orderBy(F.expr("max_after - max_before"), "group_id").limit(_MOST)
    return better.count(), rows_of(worst)
