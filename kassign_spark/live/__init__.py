"""Snapshots of live clusters."""
