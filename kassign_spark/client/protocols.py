"""The rebalance protocols, and which of Kafka's assignors know both."""

EAGER, COOPERATIVE = "eager", "cooperative"

COOPERATIVE_ASSIGNORS = frozenset({"cooperative-sticky"})
"""Those of Kafka's own that support both protocols; all others are eager only."""
