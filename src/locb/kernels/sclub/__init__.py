"""Compiled kernels of SCLUB."""
