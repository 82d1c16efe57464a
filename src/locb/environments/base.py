"""What every environment is: a source of rounds in which somebody comes and arms are offered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from locb.arrays import Ints
from locb.rounds import Rounds

BLOCK = 4096  # rounds are drawn in blocks of this many, each from a generator of its own


class Environment(ABC):
    """A world to play in. A subclass sets ``n_users``, ``dim``, ``n_arms`` and draws one block of rounds."""

    n_users: int
    dim: int
    n_arms: int

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int) -> Rounds:
        """``count`` rounds from this generator."""

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
            rounds = self.draw(rng, BLOCK)
            left = count - start
            yield rounds if left >= BLOCK else first_rounds(rounds, left)

    def rounds(self, count: int, *, seed: int = 0) -> Rounds:
        """``count`` rounds. The same seed gives the same rounds to everyone, and more of them begin with the fewer."""
        blocks = list(self.stream(count, seed=seed))
        if not blocks:
            return first_rounds(self.draw(np.random.default_rng(seed), 1), 0)
        means = [block.means for block in blocks if block.means is not None]
        return Rounds(
            users=np.concatenate([block.users for block in blocks]),
            contexts=np.concatenate([block.contexts for block in blocks]),
            rewards=np.concatenate([block.rewards for block in blocks]),
            means=np.concatenate(means) if means else None,
        )


def first_rounds(rounds: Rounds, count: int) -> Rounds:
    """The first few of some rounds."""
    means = None if rounds.means is None else rounds.means[:count]
    return Rounds(rounds.users[:count], rounds.contexts[:count], rounds.rewards[:count], means)
