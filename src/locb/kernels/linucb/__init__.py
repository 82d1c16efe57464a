"""Compiled kernels of the policies LinUCB and LinTS: state and rounds."""
