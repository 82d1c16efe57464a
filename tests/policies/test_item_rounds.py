"""``policy.play`` of rounds with a catalogue, unequal numbers of arms, or missing rewards."""

from typing import Any

import numpy as np
import pytest

import locb
from locb.common import rounds as rounds_module

N_USERS, DIM, ITEMS, ARMS, ROUNDS = 12, 3, 9, 4, 150
POLICIES = sorted(locb.POLICIES)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds_module, "BUFFER_NUMBERS", 7 * ARMS * DIM)  # 7 rounds per block


def make(name: str) -> Any:
    return locb.make_policy(name, n_users=N_USERS, dim=DIM, seed=3)


def draw() -> tuple[Any, Any, Any, Any]:
    """Return users, items, arms and rewards of random rounds."""
    rng = np.random.default_rng(5)
    items, users = rng.normal(size=(ITEMS, DIM)), rng.integers(N_USERS, size=ROUNDS)
    arms = np.array([rng.permutation(ITEMS)[:ARMS] for _ in range(ROUNDS)])
    return users, items, arms, rng.random((ROUNDS, ARMS))


def content(policy: Any) -> list[bytes]:
    return [array.tobytes() for array in policy._state]


def check(name: str, rounds: locb.Rounds, offers: list[Any], rewards: Any) -> None:
    """Compare ``play`` with ``recommend`` and ``update`` of each round with its own arms; NaN is not learned."""
    played, stepped = make(name), make(name)
    chosen = played.play(rounds).tolist()
    learned = 0
    for t, user in enumerate(rounds.users.tolist()):
        arm = stepped.recommend(user, offers[t])
        assert chosen[t] == arm, f"round {t}"
        if not np.isnan(rewards[t][arm]):
            stepped.update(user, offers[t][arm], float(rewards[t][arm]))
            learned += 1
    assert content(played) == content(stepped)
    assert played.served.sum() == learned


@pytest.mark.parametrize("name", POLICIES)
def test_items_are_played_like_an_array_of_all_contexts(name: str) -> None:
    users, items, arms, rewards = draw()
    dense, shared = make(name), make(name)
    expected = dense.play(locb.Rounds(users, items[arms], rewards))
    rounds = locb.Rounds.of_items(users, items, rewards, arms=arms.astype(np.uint8))
    assert shared.play(rounds).tolist() == expected.tolist()
    assert content(shared) == content(dense)


@pytest.mark.parametrize("name", POLICIES)
def test_unequal_numbers_of_arms(name: str) -> None:
    users, items, arms, rewards = draw()
    sizes = np.repeat(np.random.default_rng(6).integers(1, ARMS + 1, size=ROUNDS // 3), 3)
    absent = np.arange(ARMS) >= sizes[:, None]
    arms[absent], rewards[absent] = -1, 1e6  # a reward that would be noticed
    offers = [items[arms[t, : sizes[t]]] for t in range(ROUNDS)]
    check(name, locb.Rounds.of_items(users, items, rewards, arms=arms), offers, rewards)


@pytest.mark.parametrize("name", POLICIES)
def test_missing_rewards_are_not_learned(name: str) -> None:
    users, items, arms, rewards = draw()
    missing = np.random.default_rng(7).random((ROUNDS, ARMS)) < 0.5
    missing[:40] = False
    rewards[missing] = np.nan
    check(name, locb.Rounds.of_items(users, items, rewards, arms=arms), list(items[arms]), rewards)


def test_missing_rewards_without_a_catalogue() -> None:
    users, items, arms, rewards = draw()
    rewards[::3] = np.nan
    check("locb", locb.Rounds(users, items[arms], rewards), list(items[arms]), rewards)


def test_one_observed_reward_per_round() -> None:
    users, items, arms, rewards = draw()
    observed = np.random.default_rng(8).integers(ARMS, size=ROUNDS)
    known = np.where(np.arange(ARMS) == observed[:, None], rewards, np.nan)
    chosen_rewards = rewards[np.arange(ROUNDS), observed]
    rounds = locb.Rounds.of_items(users, items, chosen_rewards, arms=arms, observed=observed)
    check("linucb-ind", rounds, list(items[arms]), known)


def test_policy_in_python() -> None:
    class Largest(locb.Policy):
        def __init__(self, *, n_users: int, dim: int) -> None:
            super().__init__(n_users=n_users, dim=dim)
            self.learned: list[tuple[int, list[float], float]] = []

        def recommend(self, user: int, contexts: Any) -> int:
            return int(np.argmax(contexts[:, 0]))

        def update(self, user: int, context: Any, reward: float) -> None:
            self.learned.append((user, context.tolist(), reward))

    policy = Largest(n_users=2, dim=1)
    items, arms, rewards = [[1.0], [5.0], [3.0]], [[0, 2], [0, -1], [1, 2]], [[7.0, 8.0], [9.0, 1.0], [np.nan, 2.0]]
    chosen = policy.play(locb.Rounds.of_items([0, 1, 0], items, rewards, arms=arms))
    assert chosen.tolist() == [1, 0, 0]
    assert policy.learned == [(0, [3.0], 8.0), (1, [1.0], 9.0)]


def test_scale_of_rewards_is_checked_before_a_round_is_played() -> None:
    users, items, arms, rewards = draw()
    rewards[100, 2], rewards[3, 1] = 1e50, np.nan
    policy = locb.LinUCB(n_users=N_USERS, dim=DIM, dtype="float32")
    with pytest.raises(
        ValueError, match=r"rewards must be finite and at most 1e\+30 .*, but rewards\[100, 2\] is 1e\+50"
    ):
        policy.play(locb.Rounds.of_items(users, items, rewards, arms=arms))
    assert policy.served.sum() == 0
    rewards[100, 2] = 40.0
    with pytest.warns(locb.RewardScaleWarning, match="rewards from 0.* to 40 are not in"):
        locb.LinUCB(n_users=N_USERS, dim=DIM).play(locb.Rounds.of_items(users, items, rewards, arms=arms))
