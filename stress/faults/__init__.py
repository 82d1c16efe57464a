"""Faults that a test injects while clients send requests, and what must hold afterwards."""
