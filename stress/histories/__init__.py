"""Randomised fault tests: clients record all requests, and a checker compares the record with the event log."""
