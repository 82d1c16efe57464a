"""A log of what was shown, played with one arm a round, is learned as it was the first time, to the last bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from policies.helpers import KINDS, make, world


def check(stepped: Any, replayed: Any, log: locb.Rounds, folder: Path) -> None:
    """Learn the first arms one by one, and by ``play``; users join on the way."""
    half = len(log) // 2
    for first, last in ((0, half), (half, len(log))):
        for t in range(first, last):
            stepped.update(int(log.users[t]), log.contexts[t, 0], float(log.rewards[t, 0]))
        part = slice(first, last)
        chosen = replayed.play(locb.Rounds(log.users[part], log.contexts[part, :1], log.rewards[part, :1]))
        assert not chosen.any()
        stepped.add_users(3)
        replayed.add_users(3)
    stepped.save(folder / "stepped")
    replayed.save(folder / "replayed")
    assert (folder / "stepped").read_bytes() == (folder / "replayed").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ties", ["first", "random"])
def test_play_of_one_arm_is_update(kind: str, ties: str, tmp_path: Path) -> None:
    check(make(kind, 0, ties=ties), make(kind, 0, ties=ties), world(300), tmp_path)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("linucb")])
@pytest.mark.parametrize("dim", [2, 9])  # sums of two features are not made of whole vectors, those of nine in part
def test_that_holds_for_many_users_too(kind: str, dim: int, tmp_path: Path) -> None:
    """With 300 users LOCB bounds sets by their departures, and sums are added up anew now and then."""
    rng = np.random.default_rng(dim)
    x = rng.standard_normal((1_000, 1, dim))
    rewards = np.sign(x[:, :, 0]) + 0.1 * rng.standard_normal((1_000, 1))
    log = locb.Rounds(rng.integers(300, size=1_000), x, rewards)
    name = kind.split("-")[0]
    one, other = (locb.make_policy(name, n_users=300, dim=dim, **KINDS[kind]) for _ in range(2))
    check(one, other, log, tmp_path)
