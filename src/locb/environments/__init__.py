"""Environments: sources of bandit rounds, synthetic or from records of users."""

from locb.environments.base import Environment
from locb.environments.categorical import Categorical
from locb.environments.interactions import Interactions
from locb.environments.recorded import RecordedRounds
from locb.environments.recorded_rewards import RecordedRewards
from locb.environments.synthetic import Synthetic

__all__ = ["Categorical", "Environment", "Interactions", "RecordedRewards", "RecordedRounds", "Synthetic"]
