"""Compiled SCLUB."""
