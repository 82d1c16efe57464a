"""Experimental checks of the theorems in the LOCB paper, with the constants of the theorems."""

from locb.experiments.verify.verification import FULL, QUICK, Verification

__all__ = ["FULL", "QUICK", "Verification"]
