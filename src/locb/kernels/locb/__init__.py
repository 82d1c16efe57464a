"""Compiled LOCB."""
