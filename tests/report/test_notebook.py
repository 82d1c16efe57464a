"""What a notebook shows: short texts, HTML, charts, data frames and progress bars."""

import os
import pty
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import locb
from locb.evaluation.results import PolicyResult
from locb.report.terminal import progress_bar
from locb.report.terminal.progress_bar import ProgressBar

N = 24
IDS = [f"user-{index}" for index in range(N)]


@pytest.fixture(scope="module")
def env() -> locb.Synthetic:
    return locb.Synthetic(n_users=N, n_clusters=2, n_arms=4, seed=7)


@pytest.fixture(scope="module")
def run(env: locb.Synthetic) -> locb.Run:
    policy = locb.LOCB(n_users=N, dim=env.dim, seeds=list(range(8)), gamma=0.5)
    return locb.simulate(policy, env, rounds=3_000, seed=1)


@pytest.fixture(scope="module")
def comparison(env: locb.Synthetic) -> locb.Comparison:
    environments = {"<one>": env, "two": {"n_users": 6, "n_clusters": 2}}
    return locb.compare(environments, ["linucb-one", "club"], rounds=300, repeats=2, jobs=1)


def data_of(chart: Any) -> list[dict[str, Any]]:
    """Return the rows of a chart with one set of data."""
    (rows,) = chart.to_dict()["datasets"].values()
    return rows


def test_texts_are_short(env: locb.Synthetic, run: locb.Run, comparison: locb.Comparison) -> None:
    policy, rounds = run.policy, env.rounds(50)
    explained = policy.explain(3, rounds.contexts[0])
    results = [env, run, comparison, *comparison.results, *comparison.parts.values(), policy, policy.estimate(3)]
    for value in [*results, rounds, explained, *policy.clusters(), comparison.results[1].cluster_history]:
        assert len(repr(value)) <= 120, repr(value)
        assert "object at" not in repr(value)
    assert repr(policy) == f"LOCB(n_users={N}, dim=6, gamma=0.5, seeds=[0, 1, 2, 3, ...])"
    assert repr(env) == f"Synthetic({N} users, 4 arms per round, 6 features)"
    one = locb.Cluster(seed=None, members=np.array([3]))
    assert repr(one) == "Cluster(1 user, still changing)"
    single = locb.RecordedRounds(locb.Rounds([0], [[[1.0]]], [[1.0]]))
    assert repr(single) == "RecordedRounds(1 user, 1 arm per round, 1 feature)"
    assert repr(rounds) == "Rounds(50 rounds, 4 arms, 6 features, with expected rewards)"
    assert f"regret {run.regret[-1]:,.1f}, reward per round {run.rewards.mean():.4f}" in repr(run)
    assert repr(comparison) == "Comparison(2 environments: 2 policies, 4 results, 2 × 300 rounds)"
    best = comparison.parts["two"].best().policy
    assert repr(comparison.parts["two"]).endswith(f"2 × 300 rounds; lowest regret: {best})")
    (cluster, *_) = policy.clusters()
    assert repr(cluster).startswith(f"Cluster({len(cluster)} users around user 0, ")


def test_printed_comparison_has_one_line_per_policy(comparison: locb.Comparison) -> None:
    text = str(comparison)
    for name, part in comparison.parts.items():
        printed = str(part)
        assert f"{name}\n{printed}" in text
        title, headings, *lines = printed.splitlines()
        assert title == "300 rounds, 2 repeats: mean ± 95% CI"
        assert headings.split() == ["policy", "alpha", "regret", "reward", "clusters", "F1", "µs/round"]
        ranked = sorted(part.results, key=lambda result: result.final_regret.mean())
        assert [line.split()[0] for line in lines[:2]] == [result.policy for result in ranked]
        for line, result in zip(lines, ranked, strict=False):
            assert f" {result.final_regret.mean():,.0f} ± " in line
        assert lines[2] == part.verdict()
        assert lines[3:] == part.notes
    assert all(f"    {name} : " in str(PolicyResult.__doc__) for name in vars(comparison.results[0]))


def test_html_has_the_numbers_and_is_escaped(run: locb.Run, comparison: locb.Comparison) -> None:
    assert f"<td>{run.regret[-1]:,.1f}</td>" in run._repr_html_()
    page = comparison._repr_html_()
    assert "<one>" not in page
    assert "&lt;one&gt;" in page
    for part in comparison.parts.values():
        assert part.verdict() in page
        for result in part.results:
            assert f"<td>{result.reward.mean():.4f}</td>" in page
    page = run.policy._repr_html_()
    assert "<td>3,000 (" in page
    assert "<td><b>gamma</b></td><td>0.5</td>" in page
    assert "<td>alpha</td><td>1</td>" in page
    sizes = sorted({cluster.members.tobytes(): len(cluster) for cluster in run.policy.clusters()}.values())
    shown = re.findall(r"<tr><td>(\d+)</td><td>(\d+)</td>", page)
    assert [int(size) for _, size in shown] == sizes[::-1]


def test_policy_without_estimates_and_groups() -> None:
    class First(locb.Policy):
        def recommend(self, user, contexts):
            return 0

        def update(self, user, context, reward):
            pass

    policy = First(n_users=3, dim=2)
    assert "<th>groups</th><td>none</td>" in policy._repr_html_()
    assert policy.groups_frame().height == 0
    assert data_of(policy.plot_groups()) == []
    with pytest.raises(ValueError, match="First has no estimates of users, which plot_users needs"):
        policy.plot_users()


def test_chart_of_a_run_shows_its_regret(run: locb.Run) -> None:
    rows = data_of(run.plot_regret())
    assert len(rows) == 500
    assert rows[-1] == {"policy": "LOCB", "round": 3_000, "regret": float(run.regret[-1])}
    assert all(row["regret"] == run.regret[row["round"] - 1] for row in rows)
    assert len((run.plot_regret() + run.plot_regret()).to_dict()["layer"]) == 2


def test_charts_of_a_policy_show_its_users_and_groups(run: locb.Run) -> None:
    rows = data_of(run.policy.plot_users(IDS))
    assert [row["user"] for row in rows] == IDS
    assert [row["rounds"] for row in rows] == run.policy.served.tolist()
    members = {f"around user {IDS[cluster.seed]}": cluster.members for cluster in run.policy.clusters()}
    for user, row in enumerate(rows):
        containing = run.policy.clusters_of(user)
        assert (row["group"] == "no group") == (not containing)
        assert row["group"] not in members or user in members[row["group"]]
    bars = data_of(run.policy.plot_groups(IDS))
    assert [bar["users"] for bar in bars] == sorted((bar["users"] for bar in bars), reverse=True)
    assert {bar["group"]: bar["users"] for bar in bars}.items() <= {
        name: len(found) for name, found in members.items()
    }.items()
    with pytest.raises(ValueError, match=f"ids must have one id for each of {N} users, not 3"):
        run.policy.plot_users(["a", "b", "c"])


def test_map_of_a_recommender_shows_its_users_only() -> None:
    recommender = locb.Recommender("eloc", arms={"a": [1.0, 0.0], "b": [0.0, 1.0]})
    for user in ("ann", "ben", "cleo"):
        recommender.reward(recommender.recommend(user).decision_id, 1.0)
    assert len(recommender.user_ids) > 3  # indices that wait for new users
    rows = data_of(recommender.policy.plot_users(recommender.user_ids))
    assert [(row["user"], row["rounds"]) for row in rows] == [("ann", 1), ("ben", 1), ("cleo", 1)]


def test_chart_of_an_evaluation_shows_differences_or_values(env: locb.Synthetic) -> None:
    rounds = env.rounds(400, seed=1)
    log = locb.Log.from_rounds(rounds, np.arange(400) % 4, np.full(400, 0.25))
    evaluation = locb.evaluate(log, {"random": "random"})
    (decides, *_) = evaluation.plot().to_dict()["datasets"]["rows"]
    first = evaluation["random"].values[0]
    assert first.difference is not None
    assert decides["value"] == first.difference.value
    assert (decides["low"], decides["high"]) == (first.difference.low, first.difference.high)
    assert decides["label"] == f"random, {first.estimator}"
    logged = locb.evaluate(log, {})
    assert [row["value"] for row in logged.plot().to_dict()["datasets"]["rows"]] == [log.rewards.mean()]


def test_chart_of_several_environments_keeps_their_lines_apart(comparison: locb.Comparison) -> None:
    spec = comparison.plot().to_dict()
    names = [parameter["name"] for parameter in spec["params"]]
    assert len(set(names)) == len(names) == 2  # Vega-Lite would draw the same lines twice
    views = [parameter["views"] for parameter in spec["params"]]
    assert set(views[0]).isdisjoint(views[1])


def test_frames_of_a_policy_have_the_ids_of_the_user(env: locb.Synthetic, run: locb.Run) -> None:
    policy = run.policy
    frame = policy.users_frame(IDS)
    assert frame["user"].to_list() == policy.users_frame(np.array(IDS))["user"].to_list() == IDS
    assert frame["served"].to_list() == policy.served.tolist()
    assert np.array_equal(frame[[f"theta_{j}" for j in range(policy.dim)]].to_numpy(), policy.theta)
    assert frame["clusters"].to_list() == [len(policy.clusters_of(user)) for user in range(N)]
    groups = policy.groups_frame(IDS)
    for number, cluster in enumerate(policy.clusters()):
        rows = groups.filter(groups["cluster"] == number)
        assert rows["user"].to_list() == [IDS[user] for user in cluster.members]
        assert set(rows["seed"]) == {IDS[cluster.seed]}
    similar = policy.similar_users(2, 5)
    assert policy.similar_users_frame(2, 5, IDS).rows() == [(IDS[s.user], s.distance, s.radius) for s in similar]
    explained = policy.explain(2, env.rounds(1).contexts[0])
    arms = explained.to_frame(["a", "b", "c", "d"])
    assert arms["score"].to_list() == (explained.estimate + explained.bonus).tolist()
    assert arms.filter(arms["chosen"])["arm"].to_list() == ["abcd"[explained.arm]]
    sources = explained.sources_frame(IDS)
    assert sources["observations"].to_list() == [source.observations for source in explained.sources]
    assert sources["seed"].to_list() == [
        None if source.seed is None else IDS[source.seed] for source in explained.sources
    ]
    assert run.to_frame()["regret"].to_list() == run.regret.tolist()
    with pytest.raises(ValueError, match="arms must have one id for each of 4 arms, not 1"):
        explained.to_frame(["a"])


SLOW = """
import sys
import time
from locb.report.terminal import progress_bar
progress_bar.DELAY_SECONDS = 0.0
with progress_bar.ProgressBar() as bar:
    report = bar.stage("Compiling")
    while sys.stderr.isatty() and bar._display is None:
        time.sleep(0.01)
    for stage in ("Compiling", "Running"):
        bar.stage(stage)(1, 4)
        if bar._display is not None:
            bar._display._bar.refresh()
print("end", bar._display is not None)
"""


def test_timer_is_cancelled_if_the_block_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_bar, "DELAY_SECONDS", 3600.0)
    bar = ProgressBar(True)
    with pytest.raises(ValueError, match="preparation failed"), bar:
        raise ValueError("preparation failed")
    assert bar._timer is not None
    bar._timer.join(10.0)
    assert not bar._timer.is_alive()
    assert bar._display is None


def test_terminal_shows_stages_and_a_file_does_not() -> None:
    master, slave = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run([sys.executable, "-c", SLOW], stderr=slave, stdout=subprocess.PIPE, env=environment)
    os.close(slave)
    shown = b""
    try:
        while part := os.read(master, 65_536):
            shown += part
    except OSError:  # the other end is closed, and everything has been read
        pass
    os.close(master)
    assert (done.returncode, done.stdout) == (0, b"end True\n")
    for text in (b"Compiling", b"Running", b"25%"):
        assert text in shown
    piped = subprocess.run([sys.executable, "-c", SLOW], capture_output=True)
    assert (piped.stdout, piped.stderr) == (b"end False\n", b"")


def test_function_receives_progress_of_reported_stages_only() -> None:
    received: list[tuple[float, float]] = []
    with ProgressBar(lambda done, total: received.append((done, total))) as bar:
        bar.stage("Compiling", reported=False)(1, 1)
        bar.stage("Running")(2, 3)
    assert received == [(2, 3)]
    assert not progress_bar.is_notebook()
