"""Environments: sources of bandit rounds, synthetic or from recorded interactions."""

from locb.environments.base import Environment
from locb.environments.categorical import Categorical
from locb.environments.interactions import Interactions
from locb.environments.recorded import RecordedRounds
from locb.environments.synthetic import Synthetic

__all__ = ["Categorical", "Environment", "Interactions", "RecordedRounds", "Synthetic"]
