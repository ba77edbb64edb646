"""What a rebalance is made of, round by round and call by call."""
