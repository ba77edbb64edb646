"""What if: every assignor on the same state, and which of them explains what was seen."""
