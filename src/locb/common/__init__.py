"""Shared building blocks: array types, rounds, feature hashing, the cache directory."""
