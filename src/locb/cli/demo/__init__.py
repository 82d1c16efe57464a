"""Demonstration of the service: simulated visitors request film recommendations over HTTP."""
