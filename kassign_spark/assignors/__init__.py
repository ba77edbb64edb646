"""The assignment strategies, one file each."""
