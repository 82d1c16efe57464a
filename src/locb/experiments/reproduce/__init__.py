"""Reproduction of the evaluation in the LOCB paper: published and measured values, and a verdict for each claim."""

from locb.experiments.reproduce.reproduction import TARGETS, Reproduction, plan_reproduction

__all__ = ["TARGETS", "Reproduction", "plan_reproduction"]
