"""What is measured on an assignment: balance, differences, violations."""
