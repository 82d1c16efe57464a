"""Counts of decisions and rewards over time and per user."""
