"""Environments: sources of bandit rounds, synthetic or from recorded interactions."""

from locb.environments.base import Environment
from locb.environments.interactions import Interactions
from locb.environments.synthetic import Synthetic

__all__ = ["Environment", "Interactions", "Synthetic"]
