"""Compiled kernels of ELOC."""
