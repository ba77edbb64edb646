"""A live cluster's topics alone, for those who have the groups from elsewhere."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from kassign_spark.live.admin import admin_client
from kassign_spark.live.client_properties import admin_settings
from kassign_spark.live.cluster_rows import leader_rows, racks_of, topic_rows
from kassign_spark.live.snapshot import ClusterTables, check_address, to_snapshot
from kassign_spark.tables.snapshots import Snapshot


def read_topics(
    bootstrap_server: str,
    properties: Mapping[str, str],
    spark: SparkSession,
    *,
    cluster_id: str | None = None,
) -> Snapshot:
    """Read a cluster's topics and the leaders of ``__consumer_offsets``, and no group.

    Raises:
        ClusterError: the cluster cannot be reached or read, or kafka-python is not installed.
        SettingsError: a property is not understood; only its key is named.
    """
    check_address(bootstrap_server)
    with admin_client(bootstrap_server, admin_settings(properties)) as admin:
        racks = racks_of(admin.describe_cluster()["brokers"])
        described = admin.describe_topics()
        topics, omitted = topic_rows(described, racks, cluster_id)
        leaders = leader_rows(described, cluster_id)
    return to_snapshot(ClusterTables([], topics, [], omitted, leaders=leaders), spark)
