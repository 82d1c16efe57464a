"""Inputs of ``locb.compare``: names, classes, objects, factories and files; grids of parameters; folders."""

import inspect
import json
import re
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from commandline import call
from locb.experiments.jobs import Ledger

SIZE: dict[str, Any] = {"rounds": 200, "repeats": 2, "jobs": 1}


class Site(locb.Environment):
    """Environment whose expected rewards grow with the first feature."""

    n_users, dim, n_arms = 6, 3, 2

    def __init__(self, rate=0.5):
        self.rate = rate

    def draw(self, rng, count):
        users = rng.integers(self.n_users, size=count)
        contexts = rng.random((count, self.n_arms, self.dim))
        means = self.rate * contexts[:, :, 0]
        return locb.Rounds(users, contexts, (rng.random(means.shape) < means).astype(float), means)

    def true_clusters(self):
        return []


class First(locb.Policy):
    """Policy that always chooses the arm ``arm``."""

    def __init__(self, *, n_users: int, dim: int, arm: int = 0) -> None:
        super().__init__(n_users=n_users, dim=dim)
        self.arm = arm

    def recommend(self, user, contexts):
        return self.arm

    def update(self, user, context, reward):
        pass


def regret(env: locb.Environment, policy: locb.Policy, seed: int) -> float:
    """Return the regret of a run without ``locb.compare``."""
    return float(locb.simulate(policy, env, rounds=SIZE["rounds"], seed=seed).regret[-1])


def test_every_kind_of_environment() -> None:
    fixed = locb.Synthetic(n_users=6, n_clusters=2, seed=9)
    environments = {
        "object": fixed,
        "class": Site,
        "factory": partial(locb.Synthetic, n_users=6, n_clusters=2),
        "function": lambda seed: Site(rate=0.1 * (seed + 1)),
        "settings": {"n_users": 6, "n_clusters": 2},
    }
    compared = locb.compare(environments, "linucb-one", seed=3, **SIZE)
    expected = {
        "object": lambda seed: fixed,
        "class": lambda seed: Site(),
        "factory": lambda seed: locb.Synthetic(n_users=6, n_clusters=2, seed=seed),
        "function": lambda seed: Site(rate=0.1 * (seed + 1)),
        "settings": lambda seed: locb.Synthetic(n_users=6, n_clusters=2, seed=seed),
    }
    assert [result.environment for result in compared.results] == list(expected)
    for result in compared.results:
        for repeat, seed in enumerate([3, 4]):
            env = expected[result.environment](seed)
            policy = locb.LinUCB(n_users=6, dim=env.dim, shared=True, seed=seed)
            assert result.final_regret[repeat] == regret(env, policy, seed)
    assert list(compared.parts) == list(expected)
    assert compared.parts["class"].results == [compared.results[1]]
    assert compared.settings["environment"]["settings"] == {"n_users": 6, "n_clusters": 2}


def test_every_kind_of_policy() -> None:
    env = locb.Synthetic(n_users=8, n_clusters=2, seed=9)
    trained = locb.LinUCB(n_users=8, dim=env.dim, alpha=0.3)
    trained.play(env.rounds(50))
    policies = ["club", locb.LinUCB, trained, partial(locb.LinUCB, alpha=0.1), First, "linucb-one"]
    compared = locb.compare([env], policies, **SIZE)
    names = ["club", "LinUCB", "LinUCB(alpha=0.3)", "LinUCB(alpha=0.1)", "First", "linucb-one"]
    assert [result.policy for result in compared.results] == names
    assert [result.alpha for result in compared.results] == [1.0, 1.0, 0.3, 0.1, None, 1.0]
    size = {"n_users": 8, "dim": env.dim}
    for repeat in range(2):
        fresh = [
            locb.CLUB(**size, seed=repeat),
            locb.LinUCB(**size),
            locb.LinUCB(**size, alpha=0.3),  # an untrained copy of the object
            locb.LinUCB(**size, alpha=0.1),
            First(**size),
            locb.LinUCB(**size, shared=True),
        ]
        for result, policy in zip(compared.results, fresh, strict=True):
            assert result.final_regret[repeat] == regret(env, policy, repeat)
    assert trained.served.sum() == 50


def test_grid_runs_every_combination() -> None:
    env = locb.Synthetic(n_users=8, n_clusters=2, seed=9)
    grid = {"alpha": np.array([0.1, 1.0]), "locb": {"gamma": [0.1, 0.4]}, "arm": [1]}
    compared = locb.compare(env, ["locb", "linucb-ind", First], grid=grid, n_seeds=4, **SIZE)
    found = {(result.policy, tuple(result.parameters.items())) for result in compared.results}
    combinations = {("locb", (("alpha", a), ("gamma", g))) for a, g in product((0.1, 1.0), (0.1, 0.4))}
    assert found == combinations | {("linucb-ind", (("alpha", a),)) for a in (0.1, 1.0)} | {("First", (("arm", 1),))}
    for result in compared.results[:4]:
        policy = locb.LOCB(n_users=8, dim=env.dim, n_seeds=4, seed=1, **result.parameters)
        assert result.final_regret[1] == regret(env, policy, 1)
    assert compared.results[-1].final_regret[0] == regret(env, First(n_users=8, dim=env.dim, arm=1), 0)
    assert compared.varied_parameters == ["alpha", "gamma"]
    finals = [float(result.final_regret.mean()) for result in compared.results]
    assert compared.best() is compared.results[int(np.argmin(finals))]
    assert compared.best("locb") is compared.results[int(np.argmin(finals[:4]))]
    assert compared.best("First").label(["arm"]) == "First (arm = 1)"


def test_frames_have_every_number() -> None:
    environments = {"one": Site, "two": partial(Site, rate=0.9)}
    compared = locb.compare(environments, ["linucb-one", First], grid={"alpha": [0.1, 1.0]}, **SIZE)
    frame = compared.to_frame()
    assert frame.height == 2 * 3 * 2
    for result in compared.results:
        rows = frame.filter((frame["environment"] == result.environment) & (frame["policy"] == result.policy))
        rows = rows.filter(rows["alpha"].eq_missing(result.alpha))
        assert rows["regret"].to_list() == result.final_regret.tolist()
        assert rows["seed"].to_list() == compared.seeds
    curves = compared.to_frame(curves=True)
    assert curves.height == 2 * 3 * 2 * len(compared.checkpoints)
    assert curves["regret"].to_list()[: len(compared.checkpoints)] == compared.results[0].regret[0].tolist()
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: run pip install pandas")
    assert isinstance(compared.to_pandas(), pandas.DataFrame)
    assert compared.to_pandas()["regret"].tolist() == frame["regret"].to_list()
    with pytest.raises(ValueError, match="library must be one of 'polars', 'pandas', not 'arrow'"):
        compared.to_frame("arrow")
    with pytest.raises(ValueError, match="environment is required: choose from one, two"):
        compared.best()
    assert compared.best("First", environment="two") is compared.results[5]
    assert compared.verdict().startswith("one: ")


def test_folder_keeps_runs_until_code_or_parameters_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    monkeypatch.setattr(Ledger, "put", lambda *arguments, put=Ledger.put: (written.append(1), put(*arguments)))

    def runs(environment: Any, *policies: Any, **more: Any) -> int:
        written.clear()
        chosen = policies[0] if isinstance(policies[0], dict) else policies
        locb.compare(environment, chosen, folder=tmp_path / "runs", **SIZE, **more)
        return len(written)

    env = locb.Synthetic(n_users=6, n_clusters=2, seed=9)
    assert runs(env, "club", First) == 4
    assert runs(env, "club", First) == 0
    assert runs(env, "club", First, "linucb-one") == 2  # further policies: only their runs are new
    assert runs(env, "club", grid={"alpha": [0.5, 1.0]}) == 2
    assert runs(locb.Synthetic(n_users=6, n_clusters=2, seed=10), "club") == 2  # other rounds
    arm = 0
    assert runs(env, {"chosen": lambda n_users, dim: First(n_users=n_users, dim=dim, arm=arm)}) == 2
    assert runs(env, {"chosen": lambda n_users, dim: First(n_users=n_users, dim=dim, arm=arm)}) == 0
    arm = 1  # a value that the function contains
    assert runs(env, {"chosen": lambda n_users, dim: First(n_users=n_users, dim=dim, arm=arm)}) == 2


def test_environment_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "site.py").write_text(f"import locb\n\n{inspect.getsource(Site)}")
    compared = locb.compare(f"{tmp_path / 'site.py'}:Site", ["linucb-one", "club"], **SIZE | {"jobs": 2})
    assert [result.environment for result in compared.results] == ["Site", "Site"]
    for repeat in range(2):
        policy = locb.CLUB(n_users=6, dim=3, seed=repeat)
        assert compared.results[1].final_regret[repeat] == regret(Site(), policy, repeat)
    grid = ["--policies", "club", "--grid", "alpha=0.1,1.0", "club.alpha2=0.5,1"]
    size = ["--rounds", "200", "--repeats", "2", "--jobs", "1", "--output", "out"]
    done = call("compare", "--environment", "site.py:Site", *grid, *size, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ *club +([\d.]+) +([\d.]+) ", done.stdout, re.MULTILINE)
    assert sorted(rows) == [("0.1", "0.5"), ("0.1", "1"), ("1", "0.5"), ("1", "1")]
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    sets = [{"alpha": alpha, "alpha2": alpha2} for alpha, alpha2 in product((0.1, 1.0), (0.5, 1))]
    assert [result["parameters"] for result in record["results"]] == sets
    assert {result["environment"] for result in record["results"]} == {"Site"}
    page = (tmp_path / "out" / "report.html").read_text().replace(" ", "")
    assert '"parameters":{"alpha":[0.1,1.0],"alpha2":[0.5,1]}' in page


class NeedsSize(locb.Synthetic):
    def __init__(self, size: int) -> None:
        super().__init__(n_users=size)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere", ["club"]), "environments: unknown environment 'nowhere'; choose a scenario"),
        (([], ["club"]), "environments must have at least one element, not 0"),
        ((7, ["club"]), "environments must be environments or names, not 7"),
        ((NeedsSize, ["club"]), "needs the arguments size; set them with functools.partial"),
        ((lambda seed: Site(), ["club"]), "a lambda has no name; use a dictionary"),
        (({"site": lambda: 3}, ["club"]), "environments: site gives 3, not a locb.Environment"),
        (([Site, Site], ["club"]), "environments must have distinct names, not Site, Site"),
        ((Site, [Site]), "policies must be names, policy classes, policies or functions .* not <class"),
        ((Site, [locb.LinUCB(n_users=7, dim=3)]), r"n_users and dim of LinUCB are \(7, 3\), but .* \(6, 3\)"),
        ((Site, [First(n_users=6, dim=3)]), "First does not record arm: .* or give the class"),
        (
            (Site, ["club"], {"grid": {"gamma": [0.1]}}),
            r"has the parameter 'gamma'; choose from alpha, alpha2, ",
        ),
        (
            (Site, ["club"], {"grid": {"locb": {"gamma": [0.1]}}}),
            "policy 'locb' is not in the comparison; choose from club",
        ),
        ((Site, ["club"], {"grid": {"alpha": 0.1}}), "grid must have a list of values for alpha, not 0.1"),
        ((Site, ["club"], {"grid": {"alpha": [1, 1]}}), "grid must have distinct values for alpha, not 1, 1"),
        ((Site, ["club"], {"grid": {"seed": [1]}}), "grid cannot have seed, which the comparison sets"),
        ((Site, ["club"], {"grid": {"alpha": [-1]}}), "alpha must be at least 0, not -1"),
        ((Site, ["club"], {"grid": {"alpha": [1]}, "alphas": [1]}), "alphas is an alternative to alpha in the grid"),
        ((Site, ["club"], {"environment": {}}), "environment is an alternative to environments"),
        ((Site, ["club"], {"on": "slurm"}), "on must be dask, ray, dask://HOST:PORT or ray://HOST:PORT, not 'slurm'"),
    ],
)
def test_invalid_inputs(arguments: tuple[Any, ...], message: str) -> None:
    *given, more = arguments if isinstance(arguments[-1], dict) else (*arguments, {})
    with pytest.raises(ValueError, match=message):
        locb.compare(*given, **more, **SIZE)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (["alpha"], "locb: --grid must be name=value,value,…, such as alpha=0.1,0.3,1, not 'alpha'"),
        (["alpha=1", "alpha=2"], "locb: --grid: alpha is given twice; write all its values in one list"),
        (["alpha=x"], "locb: --alphas must be a number, not 'x'"),
    ],
)
def test_invalid_grid_on_the_command_line(grid: list[str], message: str, tmp_path: Path) -> None:
    done = call("compare", "--grid", *grid, "--policies", "club", cwd=tmp_path)
    assert (done.returncode, done.stderr.strip()) == (2, message)
    assert list(tmp_path.iterdir()) == []


def test_true_clusters_are_optional() -> None:
    class Unknown(Site):
        true_clusters = locb.Environment.true_clusters

    class Nothing(Site):
        def true_clusters(self):
            return None

    assert Unknown().true_clusters() == []
    for environment in (Unknown, Nothing):
        compared = locb.compare(environment, ["locb", "linucb-one"], **SIZE)
        assert np.isnan(compared.best("locb").f1).all()
        assert compared.user_map is None


def test_wrong_type_of_rounds_is_named() -> None:
    class Wrong(Site):
        def draw(self, rng, count):
            return np.zeros(3), np.zeros(3)

    class WrongAt(Wrong):
        def draw_at(self, rng, count, start):
            return []

    with pytest.raises(TypeError, match="^draw of Wrong must return locb.Rounds, not tuple$"):
        Wrong().rounds(3)
    with pytest.raises(TypeError, match="^draw_at of WrongAt must return locb.Rounds, not list$"):
        locb.simulate(locb.LinUCB(n_users=6, dim=3), WrongAt(), rounds=3)


def test_grid_of_one_policy_is_compared_and_its_edges_are_noted() -> None:
    env = locb.Synthetic(n_users=6, n_clusters=2, seed=9)
    compared = locb.compare(env, "linucb-one", grid={"alpha": [0.3, 1.0, 3.0]}, **SIZE)
    means = {result.parameters["alpha"]: result.final_regret.mean() for result in compared.results}
    first, second = sorted(means, key=lambda alpha: means[alpha])[:2]
    assert compared.verdict().startswith(f"linucb-one (α = {first:g}) has the lowest regret, ")
    assert f" below linucb-one (α = {second:g})" in compared.verdict()
    kinds = {0.3: "smallest", 3.0: "largest"}
    assert first in kinds, "the best value must be at the edge for this test"
    edge = f"alpha = {first:g} of linucb-one ({kinds[first]})"
    assert compared.notes == [f"The best value is at the edge of the grid for {edge}: values beyond it may be better."]
    values = [first / 4, first / 2, first, 2 * first, 4 * first]
    wider = locb.compare(env, "linucb-one", grid={"alpha": values}, **SIZE)
    assert bool(wider.notes) == (wider.best().parameters["alpha"] in (values[0], values[-1]))
    two = locb.compare(env, "linucb-one", grid={"alpha": [0.1, 1.0]}, **SIZE)
    assert two.notes == []
