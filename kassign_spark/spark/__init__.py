"""Spark itself: kinds of sessions, versions, workers, errors, and the one loop over DataFrames."""
