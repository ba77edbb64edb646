"""Start or join the Spark of a command."""
