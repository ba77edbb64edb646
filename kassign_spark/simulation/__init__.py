"""What happens to groups over time: events, the rebalances that they start, and what-if sweeps."""
