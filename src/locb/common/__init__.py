"""Shared building blocks: array types, compilation decorators, rounds, feature hashing, the cache directory."""
