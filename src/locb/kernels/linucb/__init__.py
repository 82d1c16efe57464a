"""Compiled kernels of LinUCB."""
