"""Startup of a service: snapshots, replay of the log, and the start from a log or a saved policy."""
