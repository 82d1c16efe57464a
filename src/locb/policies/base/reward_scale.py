"""Scale of rewards: the mapping of a reward range to [0, 1] and back, and a check of rewards that are not mapped.

The kernels, and parameters such as gamma and sigma, assume rewards of about 0 to 1.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TypeVar

import numpy as np

from locb.common.arrays import Floats
from locb.common.rounds import Rounds
from locb.common.validation import ParameterError

LOWEST, HIGHEST = -0.5, 1.5  # rewards outside this interval are reported
MIN_SIZE = 0.05  # rewards are reported if all of them are smaller in absolute value, but not all are 0
MIN_REWARDS = 200  # number of rewards after which small rewards are reported
MAX_NOISE = 1.0  # largest standard deviation of noise around known means in the interval that is not reported
Values = TypeVar("Values", float, Floats)

_receiver: ContextVar[Callable[[str], None] | None] = ContextVar("_receiver", default=None)


class RewardScaleWarning(UserWarning):
    """Warning that the rewards of a policy are not on a scale of about 0 to 1. A policy issues it at most once."""


@contextlib.contextmanager
def report_problems_to(receiver: Callable[[str], None]) -> Iterator[None]:
    """Context manager in which ``receiver`` is called with each problem, and no ``RewardScaleWarning`` is issued."""
    token = _receiver.set(receiver)
    try:
        yield
    finally:
        _receiver.reset(token)


class RewardScale:
    """Linear mapping between rewards and the scale of the kernel.

    With a range (low, high), low is mapped to 0 and high to 1. Without a range, rewards are not changed, and the
    scale reports the first rewards that are not on a scale of about 0 to 1.

    Parameters
    ----------
    reward_range : (float, float) or None
        Lowest and highest reward.
    is_checked : bool, default True
        Whether to report rewards that are not on a scale of about 0 to 1, if there is no range.

    Attributes
    ----------
    low, width : float
        The lowest reward, and the length of the range: 0 and 1 without a range.
    is_identity : bool
        Whether the mapping does not change rewards.
    passed : (float, float)
        Rewards in this interval need not be checked. The interval is empty (inf, −inf) until the absolute value of a
        reward is at least ``MIN_SIZE``.
    problem : str or None
        Why the rewards are not on a scale of about 0 to 1; None if they are.

    Examples
    --------
    >>> scale = RewardScale((-10.0, 30.0))
    >>> scale.map(20.0), scale.unmap(0.75), scale.unmap_difference(0.25)
    (0.75, 20.0, 10.0)
    """

    __slots__ = ("_count", "_largest", "is_identity", "low", "passed", "problem", "width")

    def __init__(self, reward_range: tuple[float, float] | None, *, is_checked: bool = True) -> None:
        low, high = (0.0, 1.0) if reward_range is None else reward_range
        self.low, self.width = low, high - low
        self.is_identity = (low, high) == (0.0, 1.0)
        self.passed = (math.inf, -math.inf) if reward_range is None and is_checked else (-math.inf, math.inf)
        self.problem: str | None = None
        self._count, self._largest = 0, 0.0  # number and largest absolute value of rewards, until that is MIN_SIZE

    # Mapping

    def map(self, rewards: Values) -> Values:
        """Return rewards on the scale of the kernel."""
        return rewards if self.is_identity else (rewards - self.low) / self.width

    def map_one(self, name: str, reward: float, limit: float) -> float:
        """Return a reward on the scale of the kernel; raise a ValueError if the result is not within ±``limit``."""
        mapped = self.map(reward)
        if not -limit <= mapped <= limit:
            found = f" is {reward:g}, which reward_range maps to {mapped:g}"
            raise ParameterError(name, f"{found}; mapped rewards must be from {-limit:g} to {limit:g}")
        return mapped

    def unmap(self, values: Values) -> Values:
        """Return expected rewards of the kernel in original units."""
        return values if self.is_identity else self.low + self.width * values

    def unmap_difference(self, values: Values) -> Values:
        """Return differences of rewards, such as bonuses and weights of features, in original units."""
        return values if self.width == 1.0 else self.width * values

    def unmap_scores(self, estimate: Floats, bonus: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return estimates and bonuses of arms, and weights of features, in original units."""
        return self.unmap(estimate), self.unmap_difference(bonus), self.unmap_difference(theta)

    # Check of rewards that are not mapped

    def check(self, reward: float) -> None:
        """Report a reward on another scale than about 0 to 1. Not needed for a reward in the interval ``passed``."""
        if self.passed[0] == -math.inf:
            return
        if LOWEST <= reward <= HIGHEST:
            problem = self._check_size(1, abs(reward))
        else:
            problem = f"a reward of {reward:g} is not in {LOWEST} … {HIGHEST}"
        if problem is not None:
            self._report(problem)

    def check_rounds(self, rounds: Rounds, learned: int) -> None:
        """Report rewards that are not on a scale of about 0 to 1. Noise around known means is not reported.

        ``learned`` is the number of rounds whose reward was learned.
        """
        if self.passed[0] == -math.inf or not len(rounds):
            return
        low, high = rounds.reward_limits()
        if math.isnan(low) or (self.passed[0] <= low and high <= self.passed[1]):
            return
        problem = None
        if low >= LOWEST and high <= HIGHEST:
            problem = self._check_size(learned, max(-low, high))
        elif _is_noise(rounds):
            self.passed = min(LOWEST, low), max(HIGHEST, high)
        else:
            problem = f"rewards from {low:g} to {high:g} are not in {LOWEST} … {HIGHEST}"
        if problem is not None:
            self._report(problem)

    def _check_size(self, count: int, largest: float) -> str | None:
        """Count rewards. Return a problem if the first ``MIN_REWARDS`` or more are all small, but not all are 0.

        Parameters
        ----------
        count : int
            Number of further rewards.
        largest : float
            Largest absolute value of these rewards.
        """
        self._count += count
        self._largest = max(self._largest, largest)
        if self._largest >= MIN_SIZE:
            self.passed = LOWEST, HIGHEST
        elif self._count >= MIN_REWARDS and self._largest > 0.0:
            return f"{self._count} rewards are at most {self._largest:g} in absolute value, below {MIN_SIZE}"
        return None

    def _report(self, problem: str) -> None:
        self.problem = problem
        self.passed = (-math.inf, math.inf)
        receiver = _receiver.get()
        if receiver is not None:
            receiver(problem)
            return
        warnings.warn(
            f"{problem}, but the policy assumes rewards of about 0 to 1: choices and clusters may be poor. Pass "
            "reward_range=(low, high), your lowest and highest reward. If the scale is intended, pass "
            "reward_range=(0, 1).",
            RewardScaleWarning,
            stacklevel=4,  # the caller of ``update``, ``play`` or ``correct``
        )


def _is_noise(rounds: Rounds) -> bool:
    """Return whether the rewards are noise around known means that are on a scale of about 0 to 1."""
    means = rounds.means
    if (
        means is None
        or not LOWEST <= float(np.fmin.reduce(means, None)) <= float(np.fmax.reduce(means, None)) <= HIGHEST
    ):
        return False
    return rounds.noise() <= MAX_NOISE
