"""Cheapest paths on counts, in numpy: the best balance, then the fewest moves."""
