"""Compiled kernels of the HybridLinUCB policy: state and rounds."""
