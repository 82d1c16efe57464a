"""Rounds: who came, what could be shown, and what each choice would have earned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints

MAX_CONTEXT = 1e6  # beyond this a rank-one step loses the digits that matter
MAX_REWARD = 1e100  # beyond this a square may overflow


def check_array(
    name: str, values: Any, shape: tuple[int | None, ...], largest: float = MAX_CONTEXT, because: str = ""
) -> Floats:
    """``values`` as floats of that shape (None: any length), or a ValueError that names the culprit."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"they are {array.dtype}")
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    fits = array.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, array.shape, strict=True))
    if not fits:
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise ValueError(f"{name} must have shape ({wanted}){because}, not {array.shape}")
    if array.size and not (array.min() >= -largest and array.max() <= largest):  # NaN fails both
        place = tuple(int(i) for i in np.argwhere(~(np.abs(array) <= largest))[0])
        raise ValueError(
            f"{name} must be finite and at most {largest:g} in size, but {name}{list(place)} is {array[place]}"
        )
    # Kernels are compiled for plain arrays; a read-only or strided one would be compiled for again.
    return array if array.flags.carray else np.array(array, order="C")


@dataclass(frozen=True)
class Rounds:
    """A batch of rounds. All arms' rewards are given, so that every policy can play the same batch.

    Arrays that are already as the kernels want them are not copied: do not change them afterwards.

    Parameters
    ----------
    users : (T,) ints
        Who is served.
    contexts : (T, k, d) floats
        The arms' features.
    rewards : (T, k) floats
        What each arm would earn.
    means : (T, k) floats, optional
        The expected rewards, where they are known; regret is measured by them, else by the rewards.

    Examples
    --------
    >>> rounds = Rounds(users=[0, 1], contexts=[[[1, 0], [0, 1]]] * 2, rewards=[[1, 0], [0, 1]])
    >>> len(rounds), rounds.n_arms, rounds.dim
    (2, 2, 2)
    >>> rounds.regret([0, 0]).tolist()
    [0.0, 1.0]
    """

    users: Ints
    contexts: Floats
    rewards: Floats
    means: Floats | None = None

    def __post_init__(self) -> None:
        """Check shapes and values once, so that no policy has to."""
        users = np.asarray(self.users)
        if users.ndim != 1 or (users.size and users.dtype.kind not in "iu"):
            raise ValueError(f"users must be one whole number a round, not {users.dtype} of shape {users.shape}")
        users = users.astype(np.int64)
        if users.size and users.min() < 0:
            raise ValueError(f"users must not be negative, but users[{users.argmin()}] is {users.min()}")
        of_users = f" as users has length {users.size}"
        contexts = check_array("contexts", self.contexts, (users.size, None, None), because=of_users)
        if contexts.shape[1] == 0 or contexts.shape[2] == 0:
            raise ValueError(f"contexts must have at least one arm and one feature, not shape {contexts.shape}")
        shape = (users.size, contexts.shape[1])
        object.__setattr__(self, "users", users)
        object.__setattr__(self, "contexts", contexts)
        object.__setattr__(self, "rewards", check_array("rewards", self.rewards, shape, MAX_REWARD))
        if self.means is not None:
            object.__setattr__(self, "means", check_array("means", self.means, shape, MAX_REWARD))

    def __len__(self) -> int:
        return int(self.users.size)

    @property
    def n_arms(self) -> int:
        """Arms a round."""
        return int(self.contexts.shape[1])

    @property
    def dim(self) -> int:
        """Features an arm."""
        return int(self.contexts.shape[2])

    def part(self, start: int, stop: int) -> Rounds:
        """The rounds from ``start`` on, up to and without ``stop``."""
        if start == 0 and stop >= len(self):
            return self
        means = None if self.means is None else self.means[start:stop]
        return Rounds(self.users[start:stop], self.contexts[start:stop], self.rewards[start:stop], means)

    def check_chosen(self, chosen: Any) -> Ints:
        """``chosen`` as one arm a round, or a ValueError that names the round."""
        arms = np.asarray(chosen)
        if arms.shape != self.users.shape or (arms.size and arms.dtype.kind not in "iu"):
            raise ValueError(f"chosen must be one arm for each of {len(self)} rounds, not {arms.dtype} of {arms.shape}")
        wrong = np.flatnonzero((arms < 0) | (arms >= self.n_arms))
        if wrong.size:
            raise ValueError(f"chosen must be from 0 to {self.n_arms - 1}, but chosen[{wrong[0]}] is {arms[wrong[0]]}")
        return arms.astype(np.int64)

    def earned(self, chosen: Any) -> Floats:
        """The rewards of the chosen arms: (T,)."""
        arms = self.check_chosen(chosen)
        taken: Floats = np.take_along_axis(self.rewards, arms[:, None], axis=1)[:, 0]
        return taken

    def regret(self, chosen: Any) -> Floats:
        """What each round lost against its best arm: (T,)."""
        arms = self.check_chosen(chosen)
        value = self.rewards if self.means is None else self.means
        lost: Floats = value.max(axis=1) - np.take_along_axis(value, arms[:, None], axis=1)[:, 0]
        return lost
