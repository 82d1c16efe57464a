"""Comparison of policies on the same environments and rounds: plan, runs and results."""
