"""Policies to evaluate on a log: fixed policies, as choices or probabilities of arms, and learning policies."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints
from locb.common.validation import ParameterError, check_int
from locb.logs.log import Log
from locb.logs.row_arrays import RowBuffer, blocks, by_block, find, take
from locb.policies import Policy, make_policy
from locb.policies.base.reward_scale import HIGHEST, LOWEST, MIN_SIZE
from locb.policies.registry import policy_spec

LOGGED, FIRST, RANDOM, ARM_PREFIX = "logged", "first", "random", "arm:"
MAX_LISTED = 10  # arms in an error message
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
    choice: Ints | IndexArray | None = None
    probabilities: Floats | None = None

    def blocks(self, log: Log) -> Iterator[tuple[slice, Log, FixedTarget]]:
        """Return blocks of decisions: their indices, their log, and the policy for these decisions."""
        first = 0  # of ``probabilities``
        for rows in blocks(len(log)):
            part, probabilities = log.select(rows), None
            if self.probabilities is not None:
                last = first + int(part.n_arms.sum())
                probabilities, first = self.probabilities[first:last], last
            yield rows, part, FixedTarget(self.name, None if self.choice is None else self.choice[rows], probabilities)

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
        if self.probabilities is None and len(log.offers) <= len(log):
            sums = np.add.reduceat(row_values[log.offers.rows], log.offers.offsets[:-1])
            means: Floats = (sums / log.offers.sizes)[log.offer]
            return means
        starts, values = np.cumsum(log.n_arms) - log.n_arms, row_values[flat_rows(log)]
        if self.probabilities is None:
            return np.add.reduceat(values, starts) / log.n_arms
        return np.add.reduceat(self.probabilities * values, starts)

    def arm_counts(self, log: Log) -> Floats:
        """Return the expected number of choices of each arm of ``log.arm_ids``."""
        counts = np.zeros(len(log.arm_ids) + 1)  # the last one is for arms without an id
        for _, part, target in self.blocks(log):
            if target.choice is not None:
                np.add.at(counts, part.arms_of(target.choice), 1.0)
                continue
            weights = target.probabilities
            weights = np.repeat(1.0 / part.n_arms, part.n_arms) if weights is None else weights
            np.add.at(counts, part.offers.arms[flat_positions(part)], weights)
        return counts[:-1]


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
        return FixedTarget(name, np.broadcast_to(np.int32(0), len(log)))
    if policy == RANDOM:
        return FixedTarget(name)
    if policy.startswith(ARM_PREFIX):
        arm = policy.removeprefix(ARM_PREFIX)
        if arm not in log.arm_ids:
            raise ParameterError("policies", f": the log has no arm {arm!r}{_list_arms(arm, log.arm_ids)}")
        index = list(log.arm_ids).index(arm)
        positions = by_block(np.int32, len(log.offers), lambda lists: _positions(log, lists, index))
        if (positions < 0).any():
            raise ParameterError(
                "policies", f": arm {arm!r} is not offered in every decision; choose an arm that every decision offers"
            )
        return FixedTarget(name, take(positions, log.offer))
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


def _list_arms(unknown: str, arm_ids: Sequence[str]) -> str:
    """Return the ids of arms as text, the closest to an unknown id first."""
    lower = {arm.lower(): arm for arm in reversed(arm_ids)}
    close = [lower[arm] for arm in get_close_matches(unknown.lower(), lower, n=MAX_LISTED)]
    listed = list(dict.fromkeys([*close, *arm_ids[:MAX_LISTED]]))[:MAX_LISTED]
    if not listed:
        return ": its arms have no ids"
    hint = f"; did you mean {close[0]!r}?" if close else "."
    rest = f" and {len(arm_ids) - len(listed):,} others" if len(arm_ids) > len(listed) else ""
    return f"{hint} Its arms are {', '.join(map(repr, listed))}{rest}"


def _positions(log: Log, lists: slice, arm: int) -> Ints:
    """Return the position of an arm in each of the given lists; −1 if it is not in the list."""
    offsets = log.offers.offsets[lists.start : lists.stop + 1]
    found = np.flatnonzero(log.offers.arms[offsets[0] : offsets[-1]] == arm)[::-1]  # the first one is written last
    inside = np.searchsorted(offsets - offsets[0], found, side="right") - 1
    positions = np.full(len(offsets) - 1, -1)
    positions[inside] = found - (offsets - offsets[0])[inside]
    return positions


def _source_of(policy: Any) -> str:
    """Return the text of the file of a custom policy, and an empty text for a policy of ``locb``."""
    while isinstance(policy, partial):
        policy = policy.func
    file = None if policy.__module__.startswith("locb.") else inspect.getsourcefile(policy)
    return "" if file is None else Path(file).read_text(encoding="utf-8")


def reward_range(rewards: Floats) -> tuple[float, float] | None:
    """Return None if rewards are on a scale of about 0 to 1, else a range for policies that contains most rewards."""
    known = take(rewards, np.isfinite(rewards))
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if low >= LOWEST and MIN_SIZE <= high <= HIGHEST:
        return None
    inner_low, inner_high = np.quantile(known, (0.01, 0.99)).tolist() if known.size else (0.0, 1.0)
    if inner_high > inner_low:
        return inner_low, inner_high
    return (low, high) if high > low else (min(0.0, low), max(1.0, high))


def _choices(log: Log, choose: Callable[[int, Floats], int]) -> IndexArray:
    sizes = log.offers.sizes

    def choose_block(rows: slice) -> list[int]:
        return [
            check_int("the arm of the policy", choose(t, log.contexts(t)), 0, int(sizes[log.offer[t]]) - 1)
            for t in range(rows.start, rows.stop)
        ]

    choice: IndexArray = by_block(np.int32, len(log), choose_block)
    return choice


def _called_target(name: str, function: Callable[..., Any], log: Log) -> FixedTarget:
    """Return the target of a function (user, arms, contexts) that returns a position or probabilities."""
    names = np.array([*log.arm_ids, None], dtype=object)
    positions, probabilities = RowBuffer(np.int64), RowBuffer(np.float64)
    is_position = False
    for rows in blocks(len(log)):
        found = []
        for t in range(rows.start, rows.stop):
            span = slice(*log.offers.offsets[log.offer[t] : log.offer[t] + 2])
            arms = names[log.offers.arms[span]].tolist()
            found.append(function(log.user_ids[log.users[t]], arms, log.contexts(t)))
        is_position = np.ndim(found[0]) == 0 if rows.start == 0 else is_position
        if is_position:
            positions.append(found)
        else:
            probabilities.append(_check_probabilities(name, found, log, rows.start))
    if is_position:
        return FixedTarget(name, _check_choice(name, positions.build(), log))
    return FixedTarget(name, probabilities=probabilities.build())


def _check_probabilities(name: str, found: Sequence[Any], log: Log, first: int) -> Floats:
    """Return the probabilities of the arms of consecutive decisions in one array; ``first`` is the first decision."""
    probabilities = np.concatenate([np.asarray(values, dtype=np.float64) for values in found])
    sizes = np.array([len(values) for values in found])
    offered = log.select(slice(first, first + len(found))).n_arms
    if not np.array_equal(sizes, offered):
        t = int(np.flatnonzero(sizes != offered)[0])
        found_sizes = f"{sizes[t]} for the {offered[t]} arms of decision {first + t}"
        raise ParameterError("policies", f": {name} must return one probability per arm, not {found_sizes}")
    starts = np.cumsum(sizes) - sizes
    sums, smallest = np.add.reduceat(probabilities, starts), np.minimum.reduceat(probabilities, starts)
    wrong = np.flatnonzero((smallest < 0) | ~np.isclose(sums, 1.0, atol=1e-6))
    if wrong.size:
        t = int(wrong[0])
        raise ParameterError(
            "policies",
            f": the probabilities of {name} must be at least 0 and have the sum 1; in decision {first + t}, the "
            f"smallest is {smallest[t]:g} and the sum is {sums[t]:g}",
        )
    return probabilities


def _check_choice(name: str, choice: Any, log: Log) -> Ints:
    sizes = log.offers.sizes
    wrong = find(len(log), lambda rows: (choice[rows] < 0) | (choice[rows] >= sizes[log.offer[rows]]))
    if wrong.size:
        t = int(wrong[0])
        raise ParameterError(
            "policies",
            f": {name} chooses position {choice[t]} in decision {t}, which offers {sizes[log.offer[t]]} arms; "
            f"positions are 0 to {sizes[log.offer[t]] - 1}",
        )
    checked: Ints = choice
    return checked
