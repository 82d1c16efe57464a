"""Compiled kernels of the LinUCB policy: state and rounds."""
