"""Recommend and reward over HTTP, durably: one process, one policy, one log."""
