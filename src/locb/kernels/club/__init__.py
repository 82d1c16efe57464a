"""Compiled kernels of CLUB."""
