"""Logs of decisions: the log format, its readers, and the evaluation of policies on a log (off-policy evaluation)."""
