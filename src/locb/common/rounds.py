"""Batches of bandit rounds: the user, the contexts of the arms and the rewards of every round."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.item_contexts import CHUNK, ItemContexts, make_item_contexts
from locb.common.validation import MAX_REWARD, ParameterError, check_array

BUFFER_NUMBERS = 1 << 17  # features in the buffer of ``Rounds.blocks`` (1 MiB), unless one round has more


class Block(NamedTuple):
    """Consecutive rounds with equally many arms."""

    span: slice  # the rounds
    contexts: Floats  # (n, k, d), overwritten by the next block
    rewards: Floats  # (n, k); NaN if not observed
    is_observed: bool  # whether all rewards were observed; if not, some may be missing


@dataclass(frozen=True)
class Rounds:
    """A batch of rounds with the rewards of the arms, so that every policy can play the same batch.

    A reward can be missing (NaN), because it was not observed. A policy plays such a round, but learns nothing if the
    reward of its arm is missing. :meth:`of_items` makes rounds whose arms are items of a catalogue, without an array of
    all contexts. Contiguous float64 arrays are stored without a copy. Do not change such an array afterwards.

    Parameters
    ----------
    users : (T,) array of int
        The user of each of T rounds, as an index from 0.
    contexts : (T, k, d) array of float
        The d features of each of the k arms that a round offers. Absolute values are at most 1e6.
    rewards : (T, k) array of float
        The reward that each arm would give; NaN if it was not observed. Absolute values are at most 1e100.
    means : (T, k) array of float, default None
        The expected reward of each arm; NaN if it is not known. ``regret`` uses ``means`` if given, otherwise
        ``rewards``.
    observed : (T,) array of int, optional
        The only arm whose reward was observed in each round, as a position from 0. ``rewards`` is then an array (T,).
    user_ids : sequence, optional
        Name of each user.
    arm_ids : sequence, optional
        Name of each of the k arms; with a catalogue, of each item.

    Raises
    ------
    ValueError
        If the shapes do not match, or a value is negative (``users``), infinite, or too large.

    Examples
    --------
    >>> rounds = Rounds(users=[0, 1], contexts=[[[1, 0], [0, 1]]] * 2, rewards=[[1, 0], [0, 1]])
    >>> len(rounds), rounds.n_arms, rounds.dim
    (2, 2, 2)
    >>> rounds.regret([0, 0]).tolist()
    [0.0, 1.0]
    """

    users: Ints
    contexts: Any  # Floats or ItemContexts
    rewards: NDArray[Any]
    means: NDArray[Any] | None = None
    observed: Ints | None = None
    user_ids: Sequence[Any] | None = None
    arm_ids: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        """Check shapes and values, so that policies need not check each round."""
        users, contexts = _check_users(self.users), self.contexts
        same_length = f", because users has length {users.size}"
        if isinstance(contexts, ItemContexts):
            if len(contexts) != users.size:
                raise ValueError(f"contexts must have {users.size} rounds, not {len(contexts)}{same_length}")
        else:
            contexts = check_array("contexts", contexts, (users.size, None, None), because=same_length)
            if contexts.shape[1] == 0 or contexts.shape[2] == 0:
                raise ValueError(f"contexts must have at least one arm and one feature, not shape {contexts.shape}")
        object.__setattr__(self, "users", users)
        object.__setattr__(self, "contexts", contexts)
        shape = (users.size, self.n_arms)
        if self.observed is not None:
            object.__setattr__(self, "observed", self._check_positions("observed", self.observed))
        kept = isinstance(contexts, ItemContexts)  # a conversion to float64 can take more memory than all other arrays
        rewards = _check_values("rewards", self.rewards, shape if self.observed is None else shape[:1], kept)
        object.__setattr__(self, "rewards", rewards)
        if self.means is not None:
            object.__setattr__(self, "means", _check_values("means", self.means, shape, kept))
        self._check_names()

    def _check_names(self) -> None:
        n_users, n_named = int(self.users.max(initial=-1)) + 1, self.n_arms
        if isinstance(self.contexts, ItemContexts):
            n_named = len(self.contexts.items)
        if self.user_ids is not None and len(self.user_ids) < n_users:
            raise ParameterError("user_ids", f" must have at least {n_users} names, not {len(self.user_ids)}")
        if self.arm_ids is not None and len(self.arm_ids) != n_named:
            raise ParameterError("arm_ids", f" must have {n_named} names, not {len(self.arm_ids)}")

    @classmethod
    def of_items(
        cls,
        users: Any,
        items: Any,
        rewards: Any,
        *,
        arms: Any = None,
        means: Any = None,
        observed: Any = None,
        user_ids: Sequence[Any] | None = None,
        arm_ids: Sequence[Any] | None = None,
    ) -> Rounds:
        """Return rounds whose arms are items of a catalogue, possibly with a different number of arms in each round.

        The features of an item are stored once. Arrays of integers, bool and float32 are kept without a copy.

        Parameters
        ----------
        users : (T,) array of int
            The user of each round.
        items : (n_items, d) array of float
            The features of each item.
        rewards : (T, k) or (T,) array of float
            As in :class:`Rounds`. Values after the last arm of a round are not used.
        arms : (T, k) or (k,) array of int, optional
            The items that a round offers, as indices into ``items``. A round with fewer than k arms has −1 after its
            last arm. One row (k,) is offered in all rounds. By default, all rounds offer all items.
        means, observed, user_ids, arm_ids
            As in :class:`Rounds`; ``arm_ids`` has the name of each item.

        Examples
        --------
        >>> items = [[1, 0], [0, 1], [1, 1]]
        >>> rounds = Rounds.of_items([0, 1], items, arms=[[2, 0, 1], [1, 2, -1]], observed=[1, 0], rewards=[0.5, 3.0])
        >>> rounds
        Rounds(2 rounds, 2 to 3 arms, 2 features, 3 items, one observed reward per round)
        >>> rounds.contexts[1].tolist(), rounds.earned([0, 0]).tolist()
        ([[0.0, 1.0], [1.0, 1.0]], [nan, 3.0])
        """
        users = _check_users(users)
        contexts = make_item_contexts(items, arms, len(users))
        return cls(users, contexts, rewards, means, observed, user_ids, arm_ids)

    def __len__(self) -> int:
        return int(self.users.size)

    def __repr__(self) -> str:
        sizes, low = self.sizes, self.n_arms
        if sizes is not None and len(sizes):
            low = int(sizes.min())
        facts = [f"{len(self):,} rounds", f"{'' if low == self.n_arms else f'{low} to '}{self.n_arms} arms"]
        facts.append(f"{self.dim} features")
        facts += [f"{len(self.contexts.items):,} items"] if isinstance(self.contexts, ItemContexts) else []
        facts += [] if self.observed is None else ["one observed reward per round"]
        facts += [] if self.means is None else ["with expected rewards"]
        return f"Rounds({', '.join(facts)})"

    @property
    def n_arms(self) -> int:
        """The largest number of arms per round."""
        return int(self.contexts.shape[1])

    @property
    def dim(self) -> int:
        """The number of features per arm."""
        return int(self.contexts.shape[2])

    @property
    def sizes(self) -> Ints | None:
        """The number of arms of each round, (T,); None if it is always ``n_arms``."""
        return self.contexts.sizes if isinstance(self.contexts, ItemContexts) else None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays with one row per round, by name. ``arms`` replaces ``contexts`` if there is a catalogue."""
        contexts = self.contexts
        found = {"arms": contexts.arms} if isinstance(contexts, ItemContexts) else {"contexts": contexts}
        found |= {"users": self.users, "rewards": self.rewards}
        optional = {"means": self.means, "observed": self.observed}
        return found | {name: values for name, values in optional.items() if values is not None}

    def with_arrays(self, arrays: dict[str, NDArray[Any]]) -> Rounds:
        """Return a copy with the given ``arrays``, in the form that ``Rounds.arrays`` returns.

        The catalogue and the names stay the same.
        """
        fields = dict(arrays)
        if "arms" in fields:
            fields["contexts"] = ItemContexts(self.contexts.items, fields.pop("arms"))  # type: ignore[assignment]
        return Rounds(**fields, user_ids=self.user_ids, arm_ids=self.arm_ids)

    def slice(self, start: int, stop: int) -> Rounds:
        """Return the rounds from ``start`` to ``stop`` − 1."""
        if start == 0 and stop >= len(self):
            return self
        return self.with_arrays({name: values[start:stop] for name, values in self.arrays().items()})

    def blocks(self) -> Iterator[Block]:
        """Yield all rounds as blocks of rounds with equally many arms, for compiled policies.

        Rounds of a catalogue are gathered in a buffer of limited size. Other rounds are one block without a copy.
        """
        contexts, sizes = self.contexts, self.sizes
        width, buffer = max(1, min(CHUNK, BUFFER_NUMBERS // (self.n_arms * self.dim))), np.empty(0)
        if isinstance(contexts, ItemContexts):
            buffer = np.empty(min(width, len(self)) * self.n_arms * self.dim)
        elif self.observed is None and not np.isnan(self.rewards.min(initial=0.0)):
            yield Block(slice(0, len(self)), contexts, self.rewards, True)
            return
        for first in range(0, len(self), width):
            rewards = self.reward_rows(first, first + width)
            offered = np.full(len(rewards), self.n_arms) if sizes is None else sizes[first : first + width]
            is_observed = np.count_nonzero(~np.isnan(rewards), axis=1) == offered
            changes = np.flatnonzero(np.diff(offered) | (is_observed[1:] != is_observed[:-1])) + 1
            edges = [0, *changes.tolist(), len(rewards)]
            for start, stop in pairwise(edges):
                span, n_arms = slice(first + start, first + stop), int(offered[start])
                found = contexts[span] if not buffer.size else contexts.gather(span, n_arms, buffer)
                values = np.ascontiguousarray(rewards[start:stop, :n_arms])
                yield Block(span, found, values, bool(is_observed[start]))

    def reward_rows(self, start: int, stop: int) -> Floats:
        """Return the rewards of rounds ``start`` to ``stop`` − 1, (rounds, k): NaN if not observed, or not an arm."""
        return self._rows(self.rewards, start, stop)

    def _rows(self, values: NDArray[Any], start: int, stop: int) -> Floats:
        part = np.asarray(values[start:stop], np.float64)
        if part.ndim == 1 and self.observed is not None:
            rows = np.full((len(part), self.n_arms), np.nan)
            rows[np.arange(len(part)), self.observed[start:stop]] = part
            return rows
        if self.sizes is None:
            return part
        return np.where(np.arange(self.n_arms) < self.sizes[start:stop, None], part, np.nan)

    def reward_limits(self) -> tuple[float, float]:
        """Return the smallest and the largest observed reward; NaN if there is none."""
        parts: Iterable[NDArray[Any]] = [self.rewards] if self.rewards.size else []
        if self.rewards.ndim == 2 and self.sizes is not None:
            parts = (self.reward_rows(start, stop) for start, stop in self._spans())
        low = high = float("nan")
        for rows in parts:
            lowest, highest = float(rows.min()), float(rows.max())
            if math.isnan(lowest):
                lowest, highest = float(np.fmin.reduce(rows, None)), float(np.fmax.reduce(rows, None))
            low, high = (lowest, highest) if math.isnan(low) else (min(low, lowest), max(high, highest))
        return low, high

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Yield the limits of parts of the rounds whose values take at most about 1 MiB."""
        width = max(1, min(CHUNK, BUFFER_NUMBERS // self.n_arms))
        return ((start, start + width) for start in range(0, len(self), width))

    def noise(self) -> float:
        """Return the root mean square of the observed rewards minus ``means``; NaN if there is no such difference."""
        if self.means is None:
            return float("nan")
        total, count = 0.0, 0
        for start, stop in self._spans():
            errors = self.reward_rows(start, stop) - self._rows(self.means, start, stop)
            known = ~np.isnan(errors)
            total, count = total + float(np.sum(errors[known] ** 2)), count + int(known.sum())
        return float(np.sqrt(total / count)) if count else float("nan")

    def check_chosen(self, chosen: Any) -> Ints:
        """Return ``chosen`` as an array (T,) of arm indices, or raise a ValueError that names the first invalid arm."""
        return self._check_positions("chosen", chosen)

    def _check_positions(self, name: str, values: Any) -> Ints:
        arms = np.asarray(values)
        if arms.shape != self.users.shape or (arms.size and arms.dtype.kind not in "iu"):
            raise ValueError(
                f"{name} must have one arm index (integer) for each of {len(self)} rounds, not {arms.dtype} of shape "
                f"{arms.shape}"
            )
        sizes = np.asarray(self.n_arms if self.sizes is None else self.sizes)
        wrong = np.flatnonzero((arms < 0) | (arms >= sizes))
        if wrong.size:
            last = int(np.broadcast_to(sizes, arms.shape)[wrong[0]]) - 1
            raise ValueError(f"{name} must be from 0 to {last}, but {name}[{wrong[0]}] is {arms[wrong[0]]}")
        return arms.astype(np.int64)

    def reward(self, t: int, arm: int) -> float:
        """Return the reward of an arm in round ``t``; NaN if it was not observed."""
        if self.observed is None:
            return float(self.rewards[t, arm])
        return float(self.rewards[t]) if arm == self.observed[t] else float("nan")

    def earned(self, chosen: Any) -> Floats:
        """Return the reward of the chosen arm in each round, (T,); NaN if it was not observed."""
        arms = self.check_chosen(chosen)
        if self.observed is not None:
            return np.where(arms == self.observed, self.rewards, np.nan)
        return np.take_along_axis(self.rewards, arms[:, None], axis=1)[:, 0].astype(np.float64)

    def regret(self, chosen: Any) -> Floats:
        """Return the regret of each round: the expected reward of the best arm minus that of the chosen arm, (T,).

        If ``means`` is None, ``rewards`` are used in place of the expected rewards. The regret is NaN unless the values
        of all arms of the round are known.
        """
        arms = self.check_chosen(chosen)
        value = self.rewards if self.means is None else self.means
        lost = np.empty(len(self))
        for start, stop in self._spans():
            rows, part = self._rows(value, start, stop), arms[start:stop]
            best = np.fmax.reduce(rows, axis=1)
            offered = self.n_arms if self.sizes is None else self.sizes[start:stop]
            is_known = np.count_nonzero(~np.isnan(rows), axis=1) == offered
            lost[start:stop] = np.where(is_known, best - rows[np.arange(len(rows)), part], np.nan)
        return lost

    def names(self, chosen: Any) -> dict[str, list[Any]]:
        """Return the names of the user and the chosen arm of each round, under "user" and "arm", if they are known."""
        arms, contexts = self.check_chosen(chosen), self.contexts
        if isinstance(contexts, ItemContexts):
            arms = contexts.arms[np.arange(len(self)), arms]
        named = (("user", self.user_ids, self.users), ("arm", self.arm_ids, arms))
        return {name: [ids[index] for index in indices.tolist()] for name, ids, indices in named if ids is not None}


def _check_users(users: Any) -> Ints:
    users = np.asarray(users)
    if users.ndim != 1 or (users.size and users.dtype.kind not in "iu"):
        raise ValueError(f"users must be an array of one integer per round, not {users.dtype} of shape {users.shape}")
    users = users.astype(np.int64)
    if users.size and users.min() < 0:
        raise ValueError(f"users must not be negative, but users[{users.argmin()}] is {users.min()}")
    checked: Ints = users
    return checked


def _check_values(name: str, values: Any, shape: tuple[int, ...], kept: bool) -> NDArray[Any]:
    """Return rewards or means, or raise a ValueError if they are invalid. ``kept`` keeps the data type."""
    array = np.asarray(values) if kept else values
    if kept and array.shape == shape and (array.dtype.kind in "biu" or array.dtype == np.float32):
        low, high = (np.fmin.reduce(array, axis=None), np.fmax.reduce(array, axis=None)) if array.size else (0, 0)
        if np.isfinite([low, high]).all() or np.isnan([low, high]).all():
            return array
    return check_array(name, values, shape, MAX_REWARD, allow_nan=True)
