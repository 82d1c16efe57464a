"""Readers of logs: tables in files and data frames, and published formats."""
