"""Environments: sources of rounds."""

from locb.environments.base import Environment
from locb.environments.interactions import Interactions
from locb.environments.synthetic import Synthetic

__all__ = ["Environment", "Interactions", "Synthetic"]
