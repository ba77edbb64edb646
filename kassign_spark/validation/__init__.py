"""Find what is wrong or odd in the inputs, group by group in tasks."""
