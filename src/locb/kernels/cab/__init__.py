"""Compiled kernels of the CAB policy: state and rounds."""
