"""Modules that all other packages use: array types, argument checks, compilation, rounds, feature hashing, cache."""
