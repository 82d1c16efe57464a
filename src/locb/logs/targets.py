"""Policies to evaluate on a log: fixed policies, as choices or probabilities of arms, and learning policies."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import ParameterError, check_int
from locb.logs.log import Log
from locb.policies import Policy, make_policy
from locb.policies.base.reward_scale import HIGHEST, LOWEST, MIN_SIZE
from locb.policies.registry import policy_spec

LOGGED, FIRST, RANDOM, ARM_PREFIX = "logged", "first", "random", "arm:"
FIXED_NAMES = (LOGGED, FIRST, RANDOM, f"{ARM_PREFIX}ID")


@dataclass(frozen=True)
class FixedTarget:
    """Fixed policy: one arm per decision, or the probability of every arm. By default, all arms are equally probable.

    Attributes
    ----------
    name : str
        Name of the policy.
    choice : (n,) ints or None
        Position of the chosen arm of each decision.
    probabilities : (total arms,) floats or None
        Probability of each arm of each decision, one decision after the other.
    """

    name: str
    choice: Ints | None = None
    probabilities: Floats | None = None

    def probability_of_chosen(self, log: Log) -> Floats:
        """Return the probability of the logged arm of each decision, (n,)."""
        if self.choice is not None:
            return np.asarray(self.choice == log.chosen, dtype=np.float64)
        if self.probabilities is None:
            even: Floats = 1.0 / log.n_arms
            return even
        starts = np.cumsum(log.n_arms) - log.n_arms
        chosen: Floats = self.probabilities[starts + log.chosen]
        return chosen

    def expect(self, log: Log, row_values: Floats) -> Floats:
        """Return the expectation over the arms of each decision, (n,), of a value per row of ``log.features``."""
        if self.choice is not None:
            values: Floats = row_values[log.rows_of(self.choice)]
            return values
        if self.probabilities is None:
            sums = np.add.reduceat(row_values[log.offers.rows], log.offers.offsets[:-1])
            means: Floats = (sums / log.offers.sizes)[log.offer]
            return means
        starts = np.cumsum(log.n_arms) - log.n_arms
        return np.add.reduceat(self.probabilities * row_values[flat_rows(log)], starts)

    def arm_counts(self, log: Log) -> Floats:
        """Return the expected number of choices of each arm of ``log.arm_ids``."""
        n_arms = len(log.arm_ids)
        if self.choice is not None:
            return np.bincount(log.arms_of(self.choice), minlength=n_arms).astype(np.float64)
        listed = log.offers.arms[flat_positions(log)]
        weights = np.repeat(1.0 / log.n_arms, log.n_arms) if self.probabilities is None else self.probabilities
        return np.bincount(listed, weights=weights, minlength=n_arms).astype(np.float64)


@dataclass(frozen=True)
class LearningTarget:
    """Policy that learns. ``make`` returns a new policy; its argument is a random seed.

    ``identity`` describes all that determines the policy, except the seed; None if that is not known.
    """

    name: str
    make: Callable[[int], Policy]
    identity: str | None = None


Target = FixedTarget | LearningTarget


def flat_positions(log: Log) -> Ints:
    """Return the positions in ``log.offers.arms`` of all arms of all decisions, one decision after the other."""
    sizes = log.n_arms
    starts = np.cumsum(sizes) - sizes
    positions: Ints = np.arange(int(sizes.sum())) + np.repeat(log.offers.offsets[log.offer] - starts, sizes)
    return positions


def flat_rows(log: Log) -> Any:
    """Return the rows of ``log.features`` of all arms of all decisions, one decision after the other."""
    return log.offers.rows[flat_positions(log)]


def name_policies(policies: Any) -> dict[str, Any]:
    """Return the policies to evaluate by name; ``policies`` is one policy, a sequence, or a mapping."""
    if isinstance(policies, Mapping):
        return {str(name): policy for name, policy in policies.items()}
    is_one = isinstance(policies, str | Policy) or callable(policies)
    listed: Sequence[Any] = [policies] if is_one else list(policies)
    named: dict[str, Any] = {}
    for policy in listed:
        name = policy if isinstance(policy, str) else getattr(policy, "__name__", type(policy).__name__)
        named[name if name not in named else f"{name} {len(named) + 1}"] = policy
    if not named:
        raise ParameterError("policies", " must have at least one policy, not 0")
    return named


def make_target(name: str, policy: Any, log: Log, learn: bool, parameters: Mapping[str, Any]) -> Target:
    """Return the target of a policy; see :func:`locb.evaluate` for the kinds of policies.

    Raises
    ------
    ValueError
        If the policy is unknown, or does not fit the log.
    """
    if isinstance(policy, str):
        return _named_target(name, policy, log, parameters)
    if isinstance(policy, Policy):
        if policy.dim != log.dim or policy.n_users < log.n_users:
            raise ParameterError(
                "policies",
                f": {name} has {policy.n_users} users and {policy.dim} features, but the log has {log.n_users} users "
                f"and {log.dim} features; create the policy with n_users={log.n_users} and dim={log.dim}",
            )
        if learn:
            return LearningTarget(name, lambda _: copy.deepcopy(policy))
        return FixedTarget(name, _choices(log, lambda t, contexts: policy.recommend(int(log.users[t]), contexts)))
    if callable(policy):
        return _called_target(name, policy, log)
    choice = np.asarray(policy)
    if choice.shape != (len(log),) or choice.dtype.kind not in "iu":
        raise ParameterError(
            "policies", f": {name} must be a policy, a function or an array of {len(log)} positions, not {policy!r}"
        )
    return FixedTarget(name, _check_choice(name, choice.astype(np.int64), log))


def _named_target(name: str, policy: str, log: Log, parameters: Mapping[str, Any]) -> Target:
    if policy == FIRST:
        return FixedTarget(name, np.zeros(len(log), np.int64))
    if policy == RANDOM:
        return FixedTarget(name)
    if policy.startswith(ARM_PREFIX):
        arm = policy.removeprefix(ARM_PREFIX)
        index = list(log.arm_ids).index(arm) if arm in log.arm_ids else -1
        offered = [np.flatnonzero(part == index) for part in np.split(log.offers.arms, log.offers.offsets[1:-1])]
        if index < 0 or not all(positions.size for positions in offered):
            raise ParameterError(
                "policies", f": arm {arm!r} is not offered in every decision; choose an arm that every decision offers"
            )
        return FixedTarget(name, np.array([positions[0] for positions in offered])[log.offer])
    factory = policy_spec(policy, parameter="policies", others=FIXED_NAMES[1:]).factory
    arguments: dict[str, Any] = {"n_users": log.n_users, "dim": log.dim} | dict(parameters)
    accepted = inspect.signature(factory).parameters
    if "reward_range" in accepted and "reward_range" not in arguments:
        arguments["reward_range"] = reward_range(log.rewards)
    plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in arguments.items()}
    identity = f"{policy} {sorted(plain.items())} {_source_of(factory)}"
    if "seed" in accepted and "seed" not in arguments:
        return LearningTarget(name, lambda seed: make_policy(policy, **arguments, seed=seed), identity)
    return LearningTarget(name, lambda _: make_policy(policy, **arguments), identity)


def _source_of(policy: Any) -> str:
    """Return the text of the file of a custom policy, and an empty text for a policy of ``locb``."""
    while isinstance(policy, partial):
        policy = policy.func
    file = None if policy.__module__.startswith("locb.") else inspect.getsourcefile(policy)
    return "" if file is None else Path(file).read_text(encoding="utf-8")


def reward_range(rewards: Floats) -> tuple[float, float] | None:
    """Return None if rewards are on a scale of about 0 to 1, else a range for policies that contains most rewards."""
    known = rewards[np.isfinite(rewards)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if low >= LOWEST and MIN_SIZE <= high <= HIGHEST:
        return None
    inner_low, inner_high = np.quantile(known, (0.01, 0.99)).tolist() if known.size else (0.0, 1.0)
    if inner_high > inner_low:
        return inner_low, inner_high
    return (low, high) if high > low else (min(0.0, low), max(1.0, high))


def _choices(log: Log, choose: Callable[[int, Floats], int]) -> Ints:
    sizes = log.n_arms
    return np.array(
        [check_int("the arm of the policy", choose(t, log.contexts(t)), 0, int(sizes[t]) - 1) for t in range(len(log))]
    )


def _called_target(name: str, function: Callable[..., Any], log: Log) -> FixedTarget:
    """Return the target of a function (user, arms, contexts) that returns a position or probabilities."""
    names = np.array([*log.arm_ids, None], dtype=object)
    found = []
    for t in range(len(log)):
        span = slice(*log.offers.offsets[log.offer[t] : log.offer[t] + 2])
        arms = names[log.offers.arms[span]].tolist()
        found.append(function(log.user_ids[log.users[t]], arms, log.contexts(t)))
    if found and np.ndim(found[0]) == 0:
        return FixedTarget(name, _check_choice(name, np.array(found, dtype=np.int64), log))
    probabilities = np.concatenate([np.asarray(values, dtype=np.float64) for values in found])
    sizes = np.array([len(values) for values in found])
    if not np.array_equal(sizes, log.n_arms):
        t = int(np.flatnonzero(sizes != log.n_arms)[0])
        found_sizes = f"{sizes[t]} for the {log.n_arms[t]} arms of decision {t}"
        raise ParameterError("policies", f": {name} must return one probability per arm, not {found_sizes}")
    starts = np.cumsum(sizes) - sizes
    sums, smallest = np.add.reduceat(probabilities, starts), np.minimum.reduceat(probabilities, starts)
    wrong = np.flatnonzero((smallest < 0) | ~np.isclose(sums, 1.0, atol=1e-6))
    if wrong.size:
        t = int(wrong[0])
        raise ParameterError(
            "policies",
            f": the probabilities of {name} must be at least 0 and have the sum 1; in decision {t}, the smallest is "
            f"{smallest[t]:g} and the sum is {sums[t]:g}",
        )
    return FixedTarget(name, probabilities=probabilities)


def _check_choice(name: str, choice: Ints, log: Log) -> Ints:
    wrong = np.flatnonzero((choice < 0) | (choice >= log.n_arms))
    if wrong.size:
        t = int(wrong[0])
        raise ParameterError(
            "policies",
            f": {name} chooses position {choice[t]} in decision {t}, which offers {log.n_arms[t]} arms; positions are "
            f"0 to {log.n_arms[t] - 1}",
        )
    return choice
