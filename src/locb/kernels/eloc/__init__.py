"""Compiled ELOC."""
