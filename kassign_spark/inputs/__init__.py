"""How tables come in: snapshots, live clusters, and the checks that they pass."""
