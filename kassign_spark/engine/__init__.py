"""The general pass as supersteps over blocks of edges: best balance, then the fewest moves."""
