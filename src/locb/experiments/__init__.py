"""Experiments: simulation of one policy, comparison of several, reproduction of the paper, checks of its theorems."""
