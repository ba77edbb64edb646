"""What if: every assignor on the same state, which of them explains what was seen, and advice."""
