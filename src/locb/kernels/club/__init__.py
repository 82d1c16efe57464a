"""Compiled kernels of the CLUB policy: state, graph, components and rounds."""
