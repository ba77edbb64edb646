"""What if: compare assignors on one state, explain an observed assignment, give advice."""
