"""CLUB and SCLUB with many users: incremental updates give the same clusters and estimates as a full computation."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from locb.kernels.club.components import rebuild_components
from locb.kernels.common.bit_sets import pack_bit_indices, unpack_bits
from locb.kernels.sclub.splitting import has_valid_links
from locb.kernels.sclub.state import N_SLOTS, T
from locb.policies.state.club_graph import build_neighbour_lists, sample_edges

pytestmark = pytest.mark.filterwarnings("ignore::locb.RewardScaleWarning")  # the scale of the rewards is arbitrary

DIM, ARMS = 3, 4


def two_group_rounds(users: Any, rounds: int, seed: int) -> locb.Rounds:
    """Return rounds with ``users`` who have one of two opposite preferences."""
    rng = np.random.default_rng(seed)
    who = rng.choice(users, size=rounds)
    x = rng.standard_normal((rounds, ARMS, DIM))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    means = np.where(who[:, None] % 2 == 0, 1.0, -1.0) * x[:, :, 0]
    return locb.Rounds(who, x, means + 0.1 * rng.standard_normal(means.shape))


def components(edges: Any, n: int) -> list[int]:
    """Return the lowest user of the component of each user, found by spreading labels along ``edges``."""
    labels = np.arange(n)
    while True:
        low = labels[edges].min(axis=1)
        spread = labels.copy()
        for side in (0, 1):
            np.minimum.at(spread, edges[:, side], low)
        if np.array_equal(spread, labels):
            return [int(label) for label in labels]
        labels = spread


def lowest_users(policy: Any) -> list[int]:
    lowest = np.empty(policy.n_users, np.int64)
    for cluster in policy.clusters():
        lowest[cluster.members] = cluster.members[0]
    return [int(user) for user in lowest]


def max_error(policy: Any, labels: Any) -> float:
    """Return the largest difference between stored cluster estimates and estimates from the sums of the users."""
    state, worst = policy._state, 0.0
    rows, columns = np.triu_indices(policy.dim)
    for cluster in policy.clusters():
        total = state.sums[cluster.members].sum(axis=0)
        gram = np.eye(policy.dim)
        gram[rows, columns] += total[policy.dim :]
        gram[columns, rows] = gram[rows, columns]
        inverse = np.linalg.inv(gram)
        exact = np.concatenate([inverse @ total[: policy.dim], inverse[rows, columns]])
        row = labels[cluster.members[0]]
        worst = max(
            worst,
            np.abs(state.cluster_estimates[row] - exact).max(),
            np.abs(state.cluster_sums[row] - total).max(),
        )
    return worst


def test_club_random_graph_of_100_000_users() -> None:
    n = 100_000
    policy = locb.CLUB(n_users=n, dim=DIM, alpha2=0.4, graph="erdos-renyi")
    state = policy._state
    assert state.neighbour_bits.size == 0
    assert len(policy._edges()) == pytest.approx(1.5 * n * np.log(n), rel=0.01)
    policy.play(two_group_rounds(np.arange(0, n, 700), 4_000, seed=1))
    sizes = policy.cluster_sizes()
    assert 20 < len(sizes) < 200
    assert lowest_users(policy) == components(policy._edges(), n)
    assert sizes.tolist() == [len(cluster) for cluster in policy.clusters()]
    assert max_error(policy, state.component) < 1e-8
    before = policy._edges()
    policy.add_users(10)
    after = policy._edges()
    assert np.array_equal(after[: len(before)], before)
    assert (after[len(before) :, 1] >= n).all()
    assert 10 * 20 < len(after) - len(before) < 10 * 50  # each of the 10 users has about 3 log n edges


@pytest.mark.parametrize("graph", ["complete", "erdos-renyi"])
@pytest.mark.parametrize("seed", range(4))
def test_club_components_of_any_size(graph: str, seed: int) -> None:
    """In a tree with few extra edges, cutting an edge often splits the component into two large parts."""
    n, rng = 500, np.random.default_rng(seed)
    parents = [int(rng.integers(max(0, u - 20), u)) for u in range(1, n)]
    pairs = {(parent, u) for u, parent in enumerate(parents, 1)}
    pairs |= {(min(a, b), max(a, b)) for a, b in rng.integers(n, size=(25 * seed, 2)).tolist() if a != b}
    edges = np.array(sorted(pairs, key=lambda pair: pair[::-1]), np.int32)
    policy = locb.CLUB(n_users=n, dim=DIM, alpha2=0.5, graph=graph, seed=seed)
    if graph == "complete":
        both = np.concatenate([edges, edges[:, ::-1]])
        policy._state.neighbour_bits[:] = pack_bit_indices(both[:, 0], both[:, 1], n, n)
    else:
        policy._state = policy._state._replace(**build_neighbour_lists(edges, n))
    rebuild_components(policy._state, DIM)
    assert len(policy.clusters()) == 1
    counts = []
    for block in range(8):
        policy.play(two_group_rounds(n, 500, seed=block))
        if graph == "complete":
            edges = np.argwhere(np.triu(unpack_bits(policy._state.neighbour_bits, n)))
        else:
            edges = policy._edges()
        assert lowest_users(policy) == components(edges, n)
        assert max_error(policy, policy._state.component) < 1e-8
        counts.append(len(policy.clusters()))
    assert counts[0] < counts[2] < counts[-1]
    assert max(policy.cluster_sizes()) > 2


def test_club_edge_probability() -> None:
    n = 60
    chance, counts = 3 * np.log(n) / n, np.zeros((n, n))
    for seed in range(2_000):
        edges = sample_edges(0, n, seed)
        counts[edges[:, 0], edges[:, 1]] += 1
    above = np.triu_indices(n, 1)
    deviation = (counts[above] - 2_000 * chance) / np.sqrt(2_000 * chance * (1 - chance))
    assert counts[np.tril_indices(n)].sum() == 0
    assert np.abs(deviation).max() < 5
    assert abs(deviation.mean()) < 0.1
    assert abs(deviation.std() - 1) < 0.1
    assert len(sample_edges(0, 3, 1)) == 3  # 3 log n / n is above 1, so every pair is an edge
    assert len(sample_edges(0, 1, 1)) == 0


def test_club_graph_size_limit() -> None:
    with pytest.raises(
        ValueError, match=r'with 200000 users needs 4\.7 GiB of memory, but the limit is 4 GiB: use graph="erdos-renyi"'
    ):
        locb.CLUB(n_users=200_000, dim=2)
    with pytest.raises(
        ValueError,
        match="n_users must be smaller, not 100000000: the random graph would have .* but the maximum is 1,073,741,824",
    ):
        locb.CLUB(n_users=10**8, dim=2, graph="erdos-renyi")
    policy = locb.CLUB(n_users=70, dim=2)
    policy.add_users(80)
    assert np.array_equal(unpack_bits(policy._state.neighbour_bits, 192)[:, :150], ~np.eye(150, dtype=bool))
    assert not unpack_bits(policy._state.neighbour_bits, 192)[:, 150:].any()


def test_sclub_clusters_of_20_000_users() -> None:
    n = 20_000
    policy = locb.SCLUB(n_users=n, dim=DIM, alpha_theta=0.2, alpha_p=0.3)
    split, merged, slots = 0, 0, []
    for block in range(12):
        before = len(policy.clusters())
        policy.play(two_group_rounds(np.arange(0, n, 20), 2_000, seed=block))
        after = len(policy.clusters())
        split, merged = split + (after > before), merged + (after < before)
        slots.append(int(policy._state.int_params[N_SLOTS]))
        check_sclub_clusters(policy)
    assert min(split, merged) > 0
    assert max(slots) > 128  # the slots fill at least three blocks of 64
    assert min(slots) < 64
    policy.add_users(50)
    policy.play(two_group_rounds(np.arange(0, n + 50, 50), 500, seed=99))
    check_sclub_clusters(policy)


def check_sclub_clusters(policy: Any) -> None:
    state = policy._state
    assert max_error(policy, state.slot) < 1e-8
    for cluster in policy.clusters():
        c, members = state.slot[cluster.members[0]], cluster.members
        assert state.sizes[c] == len(members)
        assert state.cluster_served[c] == state.served[members].sum()
        assert state.unchecked[c] == (state.checked[members] == 0).sum()
        assert state.served_range[c, 0] <= state.served[members].min()
        assert state.served_range[c, 1] >= state.served[members].max()
    assert has_valid_links(state)
    assert np.array_equal(unpack_bits(state.free_slots, len(state.sizes))[0], state.sizes == 0)
    # Of the checked clusters that are not in the queue, no two are close enough to merge.
    c = np.flatnonzero((state.sizes > 0) & (state.unchecked == 0) & (state.queued == 0))
    theta, mean = state.cluster_estimates[c, : policy.dim], state.cluster_served[c] / state.sizes[c]
    width = np.sqrt((1 + np.log1p(state.cluster_served[c])) / (1 + state.cluster_served[c]))
    t = state.int_params[T]
    reach = 0.1 * (width[:, None] + width)
    is_near = ((theta[:, None] - theta) ** 2).sum(axis=2) < reach**2 - 1e-9
    is_similar = is_near & (np.abs(mean[:, None] - mean) / t < 0.3 * np.sqrt((1 + np.log1p(t)) / (1 + t)))
    assert is_similar.sum() == len(c)  # each cluster is close only to itself


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("club", {"alpha2": 0.1}), ("club", {"alpha2": 0.25, "graph": "erdos-renyi"}), ("sclub", {"alpha_theta": 0.25})],
)
def test_loaded_sums_continue_bit_for_bit(name: str, parameters: dict[str, Any], tmp_path: Path) -> None:
    """With 300 users, sums are updated by subtraction and sometimes recomputed. The file must preserve their bits."""
    policy: Any = locb.make_policy(name, n_users=300, dim=DIM, **parameters)
    counts = []
    for block in range(6):
        policy.play(two_group_rounds(300, 100, seed=block))
        policy.save(tmp_path / "policy.locb")
        loaded: Any = locb.load(tmp_path / "policy.locb")
        more = two_group_rounds(300, 300, seed=100 + block)
        policy.play(more)
        loaded.play(more)
        expected = policy._arrays()
        for key, array in loaded._arrays().items():
            assert np.array_equal(array, expected[key]), key
        counts.append(len(policy.clusters()))
    assert len(set(counts)) > 3
    assert max(counts) > 40
