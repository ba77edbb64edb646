"""Exact answers that tests compare with, each computed another way than the package does."""
