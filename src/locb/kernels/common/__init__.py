"""Compiled building blocks that several algorithms share."""
