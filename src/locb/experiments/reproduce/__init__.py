"""Reproduction of the paper's evaluation: its tables and figures next to measured values, with a verdict per claim."""

from locb.experiments.reproduce.reproduction import TARGETS, Reproduction, plan_reproduction

__all__ = ["TARGETS", "Reproduction", "plan_reproduction"]
