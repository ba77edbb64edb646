"""Assignment by weight: how even it can be, how few moves it takes, and the proofs beside it.

Kernels on arrays, without Spark. ``planner.plan_groups`` is the door; it reads as: bounds, parts,
what can be reached (phase A), fewest moves within the limits (phase B), verdict.
"""
