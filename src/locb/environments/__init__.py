"""Worlds to play in."""

from locb.environments.base import Environment
from locb.environments.synthetic import Synthetic

__all__ = ["Environment", "Synthetic"]
