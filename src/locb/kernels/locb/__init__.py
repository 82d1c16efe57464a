"""Compiled kernels of LOCB."""
