"""Logs of decisions: format, readers, off-policy evaluation, choice of a policy (tuning), and groups of users."""
