"""Compiled kernels of the ELOC policy: state, population, neighbourhoods, posterior and rounds."""
