"""Compiled kernels of the DynUCB policy: state and rounds."""
