"""Replaying recorded rounds with ``play``, one arm per round, gives the same policy as ``update``, bit for bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from policies.helpers import KINDS, make, make_rounds, name_of

pytestmark = pytest.mark.filterwarnings("ignore::locb.RewardScaleWarning")  # the scale of the rewards is arbitrary


def check(stepped: Any, replayed: Any, log: locb.Rounds, folder: Path) -> None:
    """Check that ``update`` and ``play`` learn the same from the first arm of each round; add users halfway."""
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
def test_play_with_one_arm_equals_update(kind: str, ties: str, tmp_path: Path) -> None:
    check(make(kind, 0, ties=ties), make(kind, 0, ties=ties), make_rounds(300), tmp_path)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("linucb")])
@pytest.mark.parametrize(
    "dim", [2, 9]
)  # 2 features are fewer than a SIMD vector holds, and 9 are not a multiple of that number
def test_play_with_one_arm_equals_update_for_many_users(kind: str, dim: int, tmp_path: Path) -> None:
    """With 300 users, LOCB uses drift bounds, and sums of clusters are recomputed periodically."""
    rng = np.random.default_rng(dim)
    x = rng.standard_normal((1_000, 1, dim))
    rewards = np.sign(x[:, :, 0]) + 0.1 * rng.standard_normal((1_000, 1))
    log = locb.Rounds(rng.integers(300, size=1_000), x, rewards)
    stepped, replayed = (locb.make_policy(name_of(kind), n_users=300, dim=dim, **KINDS[kind]) for _ in range(2))
    check(stepped, replayed, log, tmp_path)
