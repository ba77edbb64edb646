"""Plans of many groups inside a task: the rounds of a rebalance, and what comes of them."""
