"""Demonstration of the service: simulated visitors choose films over HTTP."""
