"""The constrained pass of the sticky assignors where nothing is owned: members take turns.

All laps are full then, and each goes by member id. Source:
``AbstractStickyAssignor.ConstrainedAssignmentBuilder``, clients 3.7.1 and later.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kassign_spark.assignors.dealing import deal
from kassign_spark.assignors.roundrobin import turns, whose_turn
from kassign_spark.expressions import java_string_order
from kassign_spark.groups.eligible import Eligible
from kassign_spark.groups.paths import WINDOWS
from kassign_spark.groups.subscribers import homogeneous_groups
from kassign_spark.settings.computing import Settings


def assign_fresh(eligible: Eligible, settings: Settings) -> DataFrame:
    """Assign the groups whose members all subscribe alike and own nothing; runs no job.

    Returns:
        The columns of ``schemas.ASSIGNMENT`` and is_moving boolean: false.
    """
    eligible.note_path(WINDOWS)
    by_id = F.transform(
        "members", lambda member: F.struct(java_string_order(member), member.alias("member_id"))
    )
    ring = homogeneous_groups(eligible).withColumn("members", F.sort_array(by_id)["member_id"])
    dealt = deal(turns(ring, eligible, settings), whose_turn())
    return dealt.withColumn("is_moving", F.lit(False))
