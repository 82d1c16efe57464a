"""Experiments: simulation and comparison of policies, reproduction of the LOCB paper, and checks of its theorems."""
