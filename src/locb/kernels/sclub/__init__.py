"""Compiled kernels of the SCLUB policy: state, phases, splitting, merging and rounds."""
