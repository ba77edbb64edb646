"""What is wrong or odd in the inputs: group by group in tasks, larger groups by steps."""
