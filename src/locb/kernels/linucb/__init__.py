"""Compiled LinUCB."""
