"""HTTP API of the service."""
