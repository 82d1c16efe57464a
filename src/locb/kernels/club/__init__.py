"""Compiled CLUB."""
