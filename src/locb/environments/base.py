"""What every environment is: a source of rounds in which somebody comes and arms are offered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Ints
from locb.common.rounds import Rounds

BLOCK = 4096  # rounds are drawn in blocks of this many, each from a generator of its own


class Environment(ABC):
    """A world to play in. A subclass sets ``n_users``, ``dim``, ``n_arms`` and draws one block of rounds."""

    n_users: int
    dim: int
    n_arms: int

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int) -> Rounds:
        """``count`` rounds from this generator."""

    def draw_at(self, rng: np.random.Generator, count: int, start: int) -> Rounds:
        """``count`` rounds from this generator, after ``start`` others: for a world that changes as rounds go by."""
        del start  # most worlds do not change
        return self.draw(rng, count)

    @abstractmethod
    def true_clusters(self) -> list[Ints]:
        """The groups of users that are really alike."""

    def stream(self, count: int, *, seed: int = 0) -> Iterator[Rounds]:
        """The rounds of ``rounds(count, seed=seed)``, a block at a time: memory does not grow with ``count``."""
        if count < 0:
            raise ValueError(f"count must not be negative, not {count}")
        if seed < 0:
            raise ValueError(f"seed must not be negative, not {seed}")
        for block, start in enumerate(range(0, count, BLOCK)):
            rng = np.random.default_rng([seed, block])
            rounds = self.draw_at(rng, BLOCK, start)
            left = count - start
            yield rounds.slice(0, left)

    def rounds(self, count: int, *, seed: int = 0) -> Rounds:
        """``count`` rounds. The same seed gives the same rounds to everyone, and more of them begin with the fewer."""
        parts: dict[str, NDArray[Any]] = {}
        done = 0
        for block in self.stream(max(count, 1) if count >= 0 else count, seed=seed):
            for name in ("users", "contexts", "rewards", "means"):
                values = getattr(block, name)
                if values is not None:
                    # One array from the start: blocks are freed as they come, so memory holds the rounds once.
                    whole = parts.setdefault(name, np.empty((max(count, 1), *values.shape[1:]), values.dtype))
                    whole[done : done + len(block)] = values
            done += len(block)
        return Rounds(**{name: whole[:count] for name, whole in parts.items()})
