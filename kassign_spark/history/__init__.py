"""What is made of the group log: every rebalance that happened and why, and who rebalances much."""
