"""Plan a group before a third member joins it: what would move, and is the result balanced?"""

from pyspark.sql import SparkSession

from kassign_spark import assign, balance, diff

spark = SparkSession.builder.appName("quickstart").getOrCreate()

topics = spark.createDataFrame([("orders", 6)], "topic string, num_partitions int")
owned = spark.createDataFrame(
    [("billing", f"C{p % 2}", "orders", p) for p in range(6)],
    "group_id string, member_id string, topic string, partition int",
)
members = spark.createDataFrame(
    [("billing", member, ["orders"], 1) for member in ("C0", "C1", "C2")],
    "group_id string, member_id string, topics array<string>, generation int",
)

for assignor in ("range", "sticky"):
    assignment = assign(members, topics, owned, assignor=assignor)
    print(f"{assignor}:")
    diff(owned, assignment).orderBy("partition").show()
    balance(assignment, members, owned).select(
        "min_assigned", "max_assigned", "kept_count", "moved_count"
    ).show()
