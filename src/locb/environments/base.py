"""Base class of environments, the sources of bandit rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Ints
from locb.common.rounds import Rounds
from locb.common.validation import ParameterError

BLOCK = 4096  # rounds per block; each block has its own random generator
_SIZES = {"n_users": ("user", ""), "n_arms": ("arm", " per round"), "dim": ("feature", "")}


class Environment(ABC):
    """Source of bandit rounds. A round consists of a user and the arms that are offered to that user.

    A subclass sets the attributes below and implements :meth:`draw`. It overrides :meth:`true_clusters` if the groups
    of similar users are known.

    Attributes
    ----------
    n_users : int
        Number of users.
    dim : int
        Number of features per arm.
    n_arms : int
        Number of arms per round; the largest number, if it is not always the same.
    max_rounds : int or None
        Number of rounds that the environment has; None, the default, if there is no limit.
    fixed_rounds : bool
        Whether all random seeds give the same rounds, so that ``locb.compare`` runs one repeat; False by default.
    """

    n_users: int
    dim: int
    n_arms: int
    max_rounds: int | None = None
    fixed_rounds: bool = False

    def __repr__(self) -> str:
        texts = []
        for attribute, (noun, rest) in _SIZES.items():
            size = getattr(self, attribute, None)
            if size is not None:
                texts.append(f"{size:,} {noun}{'' if size == 1 else 's'}{rest}")
        return f"{type(self).__name__}({', '.join(texts)})"

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int) -> Rounds:
        """Return ``count`` rounds drawn with the random generator ``rng``."""

    def draw_at(self, rng: np.random.Generator, count: int, start: int) -> Rounds:
        """Return rounds ``start`` to ``start + count − 1``, counted from 0 and drawn with ``rng``.

        Override this method in an environment that changes over time. The default ignores ``start`` and calls
        :meth:`draw`.
        """
        del start
        return self.draw(rng, count)

    def true_clusters(self) -> list[Ints]:
        """Return the true clusters, the groups of similar users that a policy should find.

        Each cluster is an array of user indices. The default is an empty list: the clusters are unknown, and ``F1``
        scores are not available.
        """
        return []

    def stream(self, count: int, *, seed: int = 0) -> Iterator[Rounds]:
        """Yield the rounds of ``rounds(count, seed=seed)`` in blocks of at most 4,096 rounds.

        Memory use does not depend on ``count``.

        Parameters
        ----------
        count : int
            Number of rounds, at least 0.
        seed : int, default 0
            Random seed of the rounds, at least 0.
        """
        if count < 0:
            raise ParameterError("count", f" must be at least 0, not {count}")
        if self.max_rounds is not None and count > self.max_rounds:
            limit = f"{self.max_rounds}, the number of recorded rounds"
            raise ParameterError("count", f" must be from 0 to {limit}, not {count}")
        if seed < 0:
            raise ParameterError("seed", f" must be at least 0, not {seed}")
        for block, start in enumerate(range(0, count, BLOCK)):
            rng = np.random.default_rng([seed, block])
            rounds = self.draw_at(rng, BLOCK, start)
            if not isinstance(rounds, Rounds):
                name = f"{'draw' if type(self).draw_at is Environment.draw_at else 'draw_at'} of {type(self).__name__}"
                raise TypeError(f"{name} must return locb.Rounds, not {type(rounds).__name__}")
            yield rounds.slice(0, count - start)

    def rounds(self, count: int, *, seed: int = 0) -> Rounds:
        """Return ``count`` rounds.

        The same random seed gives the same rounds. A larger ``count`` gives the same rounds, followed by more rounds.

        Parameters
        ----------
        count : int
            Number of rounds, at least 0.
        seed : int, default 0
            Random seed of the rounds, at least 0.
        """
        arrays: dict[str, NDArray[Any]] = {}
        blocks, done = self.stream(max(count, 1) if count >= 0 else count, seed=seed), 0
        first = next(blocks)
        for block in chain([first], blocks):
            _check_same_items(first, block)
            for name, values in block.arrays().items():
                # Concatenating the blocks would take twice the memory of the rounds.
                array = arrays.setdefault(name, np.empty((max(count, 1), *values.shape[1:]), values.dtype))
                if values.shape[1:] != array.shape[1:]:
                    raise ValueError(f"all rounds must have {name} of shape {array.shape[1:]}, not {values.shape[1:]}")
                array[done : done + len(block)] = values
            done += len(block)
        return first.with_arrays({name: array[:count] for name, array in arrays.items()})


def _check_same_items(first: Rounds, block: Rounds) -> None:
    """Raise a ValueError unless two blocks of rounds have the same items, or no catalogue."""
    one, other = (getattr(rounds.contexts, "items", None) for rounds in (first, block))
    if one is not other and not (one is not None and other is not None and np.array_equal(one, other)):
        raise ValueError("all rounds of an environment must have the same catalogue of items")
