"""Counts of decisions and rewards over time."""
