"""Environment of fixed rounds, for example rounds of another library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from locb.common.arrays import Ints
from locb.common.rounds import Rounds
from locb.common.validation import ParameterError
from locb.environments.base import BLOCK, Environment


class RecordedRounds(Environment):
    """Environment that always gives the same rounds, in the same order. Random seeds have no effect.

    ``locb.compare`` therefore runs one repeat, without confidence intervals.

    Parameters
    ----------
    recorded : Rounds
        The rounds, for example with a catalogue of items and with missing rewards: see :meth:`locb.Rounds.of_items`.
    n_users : int, optional
        Number of users. The default is the largest user of the rounds plus 1.
    clusters : sequence of arrays of int, default ()
        The true clusters, if they are known.

    Examples
    --------
    >>> env = RecordedRounds(Rounds(users=[0, 1], contexts=[[[1, 0], [0, 1]]] * 2, rewards=[[1, 0], [0, 1]]))
    >>> env, len(env.rounds(2))
    (RecordedRounds(2 users, 2 arms per round, 2 features), 2)
    """

    max_rounds: int
    fixed_rounds = True

    def __init__(self, recorded: Rounds, *, n_users: int | None = None, clusters: Sequence[Ints] = ()) -> None:
        least = int(recorded.users.max()) + 1 if len(recorded) else 1
        if n_users is not None and n_users < least:
            raise ParameterError("n_users", f" must be at least {least}, the largest user plus 1, not {n_users}")
        self.recorded, self.max_rounds = recorded, len(recorded)
        self.n_users, self.n_arms, self.dim = n_users or least, recorded.n_arms, recorded.dim
        self._clusters = [np.asarray(cluster, dtype=np.int64) for cluster in clusters]

    def draw(self, rng: np.random.Generator, count: int) -> Rounds:
        """Return the first ``count`` rounds. ``rng`` is not used."""
        return self.draw_at(rng, count, 0)

    def draw_at(self, rng: np.random.Generator, count: int, start: int) -> Rounds:
        """Return rounds ``start`` to ``start + count − 1``, or fewer at the end. ``rng`` is not used."""
        del rng
        return self.recorded.slice(start, min(start + count, len(self.recorded)))

    def true_clusters(self) -> list[Ints]:
        """Return the clusters that were given."""
        return self._clusters

    def stream(self, count: int, *, seed: int = 0) -> Iterator[Rounds]:
        """Yield the first ``count`` rounds in blocks. Raise a ValueError if there are fewer."""
        rounds = self.rounds(count, seed=seed)
        return (rounds.slice(start, start + BLOCK) for start in range(0, count, BLOCK))

    def rounds(self, count: int, *, seed: int = 0) -> Rounds:
        """Return the first ``count`` rounds, without a copy. Raise a ValueError if there are fewer."""
        del seed
        if not 0 <= count <= self.max_rounds:
            limit = f"{self.max_rounds}, the number of recorded rounds"
            raise ParameterError("count", f" must be from 0 to {limit}, not {count}")
        return self.recorded.slice(0, count)
