"""Comparison of policies on the same environments and rounds."""
