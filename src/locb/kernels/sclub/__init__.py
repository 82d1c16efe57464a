"""Compiled kernels of the SCLUB policy: state, splitting, merging and rounds."""
