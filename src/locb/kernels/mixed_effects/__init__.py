"""Compiled kernels of the MixedEffects policy: state, population and rounds."""
