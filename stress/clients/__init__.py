"""Clients of the service: ordinary load, and hostile clients."""
