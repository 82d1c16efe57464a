"""``user_batch`` and ``group_summary``: the same results as the methods for single users."""

from typing import Any

import numpy as np
import pytest

import locb
from locb.policies.base.policy import Policy
from locb.policies.base.user_batch import OverlappingGroups, Partition
from policies.helpers import DIM, KINDS, Popular, make, make_rounds


def groups_of(user_batch: Any, group_summary: Any, row: int) -> list[int]:
    """Return the indices of the clusters in ``group_summary`` that contain the user in row ``row``."""
    selected = user_batch.groups.take(np.array([row]))
    ((_, inside),) = selected.blocks(group_summary.names)
    return np.flatnonzero(inside[0]).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_user_batch_matches_single_users(kind: str) -> None:
    policy = make(kind, 200)
    policy.add_users(3)
    policy.play(make_rounds(100, seed=2))
    users = np.random.default_rng(0).permutation(policy.n_users)
    group_summary, user_batch, clusters = policy.group_summary(), policy.user_batch(users), policy.clusters()
    generic = Policy.user_batch(policy, users)
    assert np.array_equal(generic.theta, user_batch.theta)
    assert np.array_equal(generic.served, user_batch.served)
    listed = [
        k
        for k in range(len(group_summary.names))
        if user_batch.groups.sums(group_summary.names[[k]], np.ones((len(users), 1)))[0]
    ]
    assert [group_summary.seeds[k] for k in listed] == [
        -1 if cluster.seed is None else cluster.seed for cluster in clusters
    ]
    assert [group_summary.returned[k] for k in listed] == [cluster.returned_at is not None for cluster in clusters]
    assert (group_summary.theta is None) == (not kind.startswith("locb"))
    if group_summary.theta is not None:
        np.testing.assert_allclose(
            group_summary.theta, user_batch.groups.sums(group_summary.names, user_batch.theta), atol=1e-5
        )
    for row, user in enumerate(users.tolist()):
        assert groups_of(user_batch, group_summary, row) == [
            k for k, cluster in zip(listed, clusters, strict=True) if user in cluster
        ]
        assert np.array_equal(user_batch.theta[row], policy.estimate(user).theta)
        assert user_batch.served[row] == policy.served[user]
    values = np.random.default_rng(1).normal(size=(len(users), 2))
    for sums, cluster in zip(user_batch.groups.sums(group_summary.names[listed], values), clusters, strict=True):
        np.testing.assert_allclose(sums, values[np.isin(users, cluster.members)].sum(axis=0), atol=1e-12)
    assert user_batch.groups.counts(group_summary.names).tolist() == [
        len(policy.clusters_of(user)) for user in users.tolist()
    ]


@pytest.mark.parametrize("kind", ["locb", "club", "eloc"])
def test_concatenated_batches(kind: str) -> None:
    policy = make(kind)
    names = policy.group_summary().names
    users = np.arange(policy.n_users)
    complete = policy.user_batch(users).groups
    parts = [policy.user_batch(part).groups for part in (users[:5], users[5:])]
    joined = type(complete).concatenate(parts)
    for (_, expected), (_, found) in zip(complete.blocks(names), joined.blocks(names), strict=True):
        assert np.array_equal(found, expected)


def test_blocks_cover_all_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locb.policies.base.user_batch.BLOCK", 3)
    inside = np.random.default_rng(0).random((200, 70)) < 0.4
    groups = OverlappingGroups.from_matrix(inside)
    assert np.array_equal(np.concatenate([block for _, block in groups.blocks(np.arange(70))]), inside)
    assert groups.sums(np.arange(70), np.ones((200, 1))).ravel().tolist() == inside.sum(axis=0).tolist()
    assert groups.counts(np.array([3, 66])).tolist() == inside[:, [3, 66]].sum(axis=1).tolist()
    names = np.random.default_rng(0).integers(0, 90, 200)
    selected = np.array([4, 89, 17])
    partition = Partition(names)
    assert np.array_equal(
        np.concatenate([block for _, block in partition.blocks(selected)]), names[:, None] == selected
    )
    assert partition.sums(selected, np.ones((200, 1))).ravel().tolist() == [
        int((names == name).sum()) for name in selected
    ]
    assert partition.counts(selected).tolist() == np.isin(names, selected).tolist()
    assert partition.sums(np.empty(0, np.int64), np.ones((200, 1))).shape == (0, 1)


def test_user_batch_of_a_custom_policy() -> None:
    class Halves(Popular):
        def clusters(self) -> list[locb.Cluster]:
            return [locb.Cluster(None, np.arange(0, 5, 2)), locb.Cluster(1, np.arange(1, 5, 2), returned_at=5)]

    policy = Halves(n_users=5, dim=2)
    group_summary, user_batch = policy.group_summary(), policy.user_batch(np.array([3, 0]))
    assert group_summary.seeds.tolist() == [-1, 1]
    assert group_summary.returned.tolist() == [False, True]
    assert group_summary.progress[1] == 1.0
    assert np.isnan(group_summary.progress[0])
    assert [groups_of(user_batch, group_summary, row) for row in (0, 1)] == [[1], [0]]
    assert np.isnan(user_batch.theta).all()
    assert policy.user_batch(np.empty(0, np.int64)).theta.shape == (0, 2)


@pytest.mark.parametrize("kind", ["locb", "locb-pooled", "locb-certificate"])
def test_progress_follows_the_stop_rule(kind: str) -> None:
    """During a run, the progress of each cluster follows its stop rule, computed here from public properties."""
    policy = make(kind, 0, gamma=5.0 if kind == "locb-certificate" else 0.6)
    parameters, seen = policy._parameters, policy.group_summary().progress.tolist()
    for block in range(60):
        policy.play(make_rounds(40, seed=block))
        for progress, cluster in zip(policy.group_summary().progress.tolist(), policy.clusters(), strict=True):
            seen.append(progress)
            if cluster.returned_at is not None:
                assert progress == 1.0
                continue
            served, radii = policy.served[cluster.members], policy.radii[cluster.members]
            if kind == "locb-certificate":
                gaps = np.linalg.norm(policy.theta[cluster.members] - policy.theta[cluster.seed], axis=1)
                widest = np.sort(gaps + radii)[-2:].sum() if served.min() > 0 else np.inf
                assert progress == pytest.approx(min(1.0, parameters["gamma"] / widest))
            else:
                small = (served > 0) & (radii < parameters["gamma"] * parameters["tau"] / 8)
                assert progress == pytest.approx(small.mean())
                assert progress < 1.0  # a cluster with progress 1 is final
    assert min(seen) == 0.0
    assert max(seen) == 1.0
    assert len(set(seen)) > 5


@pytest.mark.parametrize("kind", ["linucb-ind", "linucb-one", "locb", "club", "sclub", "locb-float32"])
def test_deviation_of_estimates(kind: str) -> None:
    policy = make(kind)
    rounds, chosen = make_rounds(), make(kind, 0).play(make_rounds())
    for user in range(0, policy.n_users, 5):
        is_own = np.full(len(rounds), True) if kind == "linucb-one" else rounds.users == user
        contexts = rounds.contexts[np.arange(len(rounds)), chosen][is_own]
        expected = 0.5 * np.sqrt(np.diag(np.linalg.inv(np.eye(DIM) + contexts.T @ contexts)))
        np.testing.assert_allclose(policy.estimate(user).deviation, expected, rtol=1e-3)


def test_deviation_of_eloc_posteriors() -> None:
    policy = make("eloc")
    estimate = policy.estimate(4)
    assert np.sqrt((estimate.deviation**2).sum()) == pytest.approx(estimate.radius)


def test_summary_in_steps_equals_the_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service computes the summary in steps of a few users, between which it handles requests."""
    policy = make("locb-certificate", 0, gamma=5.0)
    policy.play(make_rounds(600))
    expected = policy.group_summary()
    assert 0.0 < expected.progress.min() < 1.0
    monkeypatch.setattr(type(policy), "user_batch_size", 3)
    steps, count = policy.group_summary_steps(), 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found = end.value
            break
        count += 1
    assert count >= policy.n_users / 3
    for first, second in zip(found, expected, strict=True):
        np.testing.assert_array_equal(first, second)
