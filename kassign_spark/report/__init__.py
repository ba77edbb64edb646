"""One page for people that says what a plan does to a fleet."""
