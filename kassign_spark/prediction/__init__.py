"""What Kafka's Java client itself will answer, group by group, and whether it will end.

The client's sticky assignors are sequential inside a group: here they are followed step by step,
in plain Python on small integers, while Spark puts thousands of groups side by side.
"""
