"""Compiled kernels of the LOCB policy: state, scoring, clustering, drift bounds and rounds."""
