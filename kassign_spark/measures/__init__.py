"""Measures of an assignment: balance, differences, violations."""
