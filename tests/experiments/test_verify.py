"""Checks of the theorems: coverage and bounds against their formulas, the gap in the proof, and the command."""

import math
from pathlib import Path

import numpy as np
import pytest

import locb
import naive
from locb.evaluation.findings import FAILS, HOLDS, NOT_COUNTED, UNDECIDED, Claim
from locb.evaluation.theorem_bounds import min_rounds_per_user, regret_bound, termination_bound
from locb.experiments.verify import Verification, correctness, cost, coverage, safety, termination
from locb.kernels.confidence_radii import RADII
from locb.kernels.radius_coverage import measure_coverage
from locb.parallel.workers import Workers
from locb.policies.linucb import initial_estimates


@pytest.mark.interpreted
def test_the_audit_finds_the_largest_error_in_radii() -> None:
    n, d, delta, smallest = 3, 3, 0.2, 0.9
    rng = np.random.default_rng(5)
    theta = rng.standard_normal((n, d)) / 3
    sigmas = np.array([0.5, 1.0, 0.5, 0.3, 0.4])
    users = rng.integers(n, size=120)
    contexts = rng.standard_normal((120, d))
    rewards = np.einsum("td,td->t", contexts, theta[users]) + rng.standard_normal(120)
    estimates, log_det = initial_estimates(n, d), np.zeros(n)
    noise_sums, served, worst = np.zeros((n, d)), np.zeros(n, np.int64), np.zeros(5)
    for first in (0, 50):
        part = slice(first, first + 50 if first == 0 else 120)
        measure_coverage(
            estimates, log_det, noise_sums, served, theta, first, users[part], contexts[part], rewards[part],
            sigmas, delta, smallest, worst,
        )  # fmt: skip
    everyone = naive.Users(n, d)
    expected = dict.fromkeys(coverage.BOUNDS, 0.0)
    directions = rng.standard_normal((20_000, d))  # the largest error of the interval is approached, not exceeded
    for t, (i, x, r) in enumerate(zip(users.tolist(), contexts, rewards, strict=True), start=1):
        everyone.learn(i, x, r)
        for j in range(n):
            if everyone.m[j] == 0:
                continue
            for name, kind in RADII.items():
                radius = naive.radius(name, everyone.m[j], everyone.A[j], t, n, d, sigmas[kind], delta, smallest)
                error = float(np.linalg.norm(everyone.theta[j] - theta[j]))
                expected[name] = max(expected[name], error / radius)
            half = 0.4 * math.sqrt(np.linalg.slogdet(everyone.A[j])[1] + 2 * math.log(n / delta)) + 1
            deviation = np.sqrt(np.einsum("ta,ab,tb->t", directions, np.linalg.inv(everyone.A[j]), directions))
            errors = np.abs(directions @ (everyone.theta[j] - theta[j])) / (half * deviation)
            expected["reward interval"] = max(expected["reward interval"], float(errors.max()))
    assert worst[:4] == pytest.approx(list(expected.values())[:4], rel=1e-9)
    assert expected["reward interval"] <= worst[4] == pytest.approx(expected["reward interval"], rel=1e-2)


def test_lemma_a1() -> None:
    """A t with a t + b ≤ log t is below (2/a) (log(1/a) − b)."""
    rng = np.random.default_rng(2)
    a, t = 10.0 ** rng.uniform(-6, 1, 100_000), 10.0 ** rng.uniform(-2, 8, 100_000)
    b = np.log(t) - a * t - np.abs(rng.standard_normal(100_000)) * rng.integers(2, size=100_000)  # half with equality
    assert (t < 2.0 / a * (np.log(1.0 / a) - b)).all()


def test_theory_radius_shrinks_after_the_stated_rounds() -> None:
    constant = coverage.rounds_before_shrinking(4, 6, 0.1)
    radius = [naive.radius("theory", m, np.eye(6), 10, 4, 6, 0.5, 0.1, 0.1) for m in (0, constant, constant + 1)]
    assert radius[0] == radius[1] > radius[2]


def test_theorem_2_is_the_papers_formula() -> None:
    n, d, gamma, sigma, delta, smallest = 80, 5, 0.3, 0.7, 0.05, 0.2
    c = smallest * gamma**2 / (16**3 * sigma**2)
    bound = 2 * n * d / c * math.log(n * d / c)
    bound += 2 * n / c * (math.log(2 ** (d + 1) * n / delta) - (gamma**2 - 256) / (512 * sigma**2)) + n
    found = termination_bound(n, d, gamma=gamma, sigma=sigma, delta=delta, min_eigenvalue=smallest)
    assert found == pytest.approx(bound, rel=1e-12)
    inner = math.log(2 * n * d / (delta / n))
    needed = 2 * 32**2 / smallest**2 * inner * math.log(32**2 / smallest**2 * inner)
    assert min_rounds_per_user(n, d, delta, smallest) == pytest.approx(needed, rel=1e-12)


@pytest.mark.parametrize("rounds", [50_000, 10**12])  # before and after all clusters are final
def test_regret_bound_is_the_sum_of_its_three_terms(rounds: int) -> None:
    n, d, gamma, sigma, delta, smallest = 80, 5, 0.3, 0.7, 0.05, 0.2
    more = {"gamma": gamma, "sigma": sigma, "delta": delta, "min_eigenvalue": smallest}
    end = termination_bound(n, d, **more)
    alpha = sigma * math.sqrt(d * math.log((1 + rounds / n) * n / delta)) + 1
    bonuses = 2 * math.sqrt(n * rounds) * math.sqrt(2 * d * math.log(1 + rounds / (d * n))) * alpha
    radius = sigma * math.sqrt(2 * d * math.log(rounds) + 2 * math.log(2 * n / delta)) + 1
    rest = 8 * radius * rounds if rounds < end else 8 * radius * end + 2 * gamma * (rounds - end)
    assert regret_bound(rounds, n, d, **more) == pytest.approx(bonuses + rest, rel=1e-12)


def test_regret_bound_grows_slower_than_the_rounds_after_all_clusters_are_final() -> None:
    def bound(rounds: int, gamma: float = 0.2) -> float:
        return regret_bound(rounds, 100, 6, gamma=gamma, min_eigenvalue=0.1)

    assert bound(50_000) > 50_000  # not informative yet
    end = termination_bound(100, 6, gamma=0.2, min_eigenvalue=0.1)
    late = int(1e6 * end)
    assert bound(late) == pytest.approx(2 * 0.2 * late, rel=0.05)  # only the term of 2γ per round remains
    assert bound(2 * late) / bound(late) < 2.0


def test_sequential_arrivals_show_the_gap_in_the_proof() -> None:
    environment = {"n_users": 6, "n_clusters": 3, "n_arms": 4, "raw_dim": 3}
    play = correctness.play_sequential_arrivals
    published = [play(environment=environment, seed=seed, gamma=1.0, stop="published") for seed in range(2)]
    corrected = [play(environment=environment, seed=seed, gamma=1.0, stop="radius") for seed in range(2)]
    assert sum(outcome["wrong"] for outcome in published) > 0
    assert sum(outcome["wrong"] for outcome in corrected) == 0
    for outcome in published + corrected:
        assert outcome["clusters"] == 6
        assert outcome["not_final"] == outcome["violated_certificates"] == 0


def test_coverage_of_every_environment() -> None:
    found = coverage.measure_errors(environment={"n_users": 5, "n_clusters": 2}, seed=3, environments=2, rounds=3000)
    worst = np.array(found["worst"])
    assert worst.shape == (2, 5)
    assert (worst[:, RADII["ellipsoid"]] < 1.0).all()
    assert (worst[:, coverage.BOUNDS["reward interval"]] < 1.0).all()
    assert (worst[:, RADII["regret"]] > 1.0).all()
    assert found["rounds"] == 6000
    env = locb.Synthetic(raw_dim=4)
    second_moment = np.einsum("tka,tkb->ab", *[env.rounds(20_000).contexts] * 2) / 200_000
    assert coverage.smallest_eigenvalue(env) == pytest.approx(np.linalg.eigvalsh(second_moment)[0], rel=0.02)


@pytest.mark.interpreted
def test_the_audit_of_the_safety_screen_follows_the_formulas_of_its_theorem() -> None:
    n, d, sigma, norm_bound = 3, 2, 0.3, 1.2
    rng = np.random.default_rng(8)
    theta, users = rng.standard_normal((n, d)) / 2, rng.integers(2, size=60)  # one user has no rounds
    contexts = rng.standard_normal((60, d)) / 2
    rewards = np.einsum("td,td->t", contexts, theta[users]) + sigma * rng.standard_normal(60)
    regret = rng.random(60) * np.where(users == 0, 0.1, 10.0)
    everyone, lost = naive.Users(n, d), np.zeros(n)
    below, error, share, bounds = 0, 0.0, 0.0, np.zeros(n)
    for i, x, r, gap in zip(users.tolist(), contexts, rewards, regret, strict=True):
        risk = 6 * safety.DELTA / (math.pi * (i + 1)) ** 2

        def alpha(i: int = i, risk: float = risk) -> float:
            return sigma * math.sqrt(2 * math.log(1 / risk) + np.linalg.slogdet(everyone.A[i])[1]) + norm_bound

        width = alpha() * math.sqrt(x @ everyone.inverse[i] @ x)
        error = max(error, abs((everyone.theta[i] - theta[i]) @ x) / width)
        share = max(share, gap / (4 * width))
        everyone.learn(i, x, r)
        lost[i] += gap
        bounds[i] = 4 * alpha() * math.sqrt(2 * everyone.m[i] * np.linalg.slogdet(everyone.A[i])[1])
        below += lost[i] <= bounds[i]
    found = safety.audit_regret(users, contexts, rewards, regret, theta, sigma, norm_bound)
    assert 0 < below < 60  # the regret of one user is too large
    assert found == {
        "bound": pytest.approx(bounds.sum(), rel=1e-9),
        "below": below,
        "largest_error": pytest.approx(error, rel=1e-9),
        "largest_regret": pytest.approx(share, rel=1e-9),
    }
    fixed = safety.audit_regret(users, contexts, rewards, regret, theta, sigma, norm_bound, fixed=5.0)
    log_dets = [np.linalg.slogdet(everyone.A[i])[1] for i in range(n)]
    assert fixed["bound"] == pytest.approx((20.0 * np.sqrt(2.0 * everyone.m * log_dets)).sum(), rel=1e-9)


def test_claims_about_the_safety_screen_can_fail() -> None:
    right = {"rounds": 10, "regret": 2.0, "possible": 9.0, "replaced": 0.1}
    audit = {"bound": 8.0, "below": 10, "largest_error": 0.9, "largest_regret": 0.2}
    jobs = [job for job in safety.plan(10, 2, 0) if job.data == "groups"]

    def claims(**change: float) -> list[Claim]:
        return safety.summarize([(job, right | audit | change) for job in jobs])[1]

    assert [claim.verdict for claim in claims()] == [HOLDS, HOLDS, UNDECIDED, HOLDS]
    for change in ({"bound": 9.5}, {"regret": 0.007}):  # above the possible regret; 1,143 times the regret
        vacuous = claims(**change)[0]
        assert vacuous.verdict == NOT_COUNTED
        assert "the bound holds, but is not informative" in vacuous.vacuous
        assert claims(**change, below=9)[0].verdict == FAILS
    assert claims(below=9)[0].verdict == FAILS
    labels = [(job, right | audit | {"regret": 8.0 if job.settings["label"] == safety.WRONG else 2.0}) for job in jobs]
    gain = safety.summarize(labels)[1][2]
    assert gain.verdict == HOLDS
    assert ": 4.0 (geometric mean" in gain.criteria[0].detail
    assert claims(largest_error=1.1)[3].verdict == claims(largest_regret=1.1)[3].verdict == FAILS


def test_cost_is_the_number_of_terms_of_the_bonus() -> None:
    environment = {"n_users": 12, "n_clusters": 3, "noise": 0.05}
    found = cost.count_terms(environment=environment, seed=3, rounds=2_400)
    env = locb.Synthetic(**environment, seed=3)
    policy = locb.LOCB(n_users=12, dim=env.dim, n_seeds=12, seed=3)
    policy.play(env.rounds(2_400, seed=3))
    terms = [sum(len(cluster) for cluster in policy.clusters() if user in cluster) for user in range(12)]
    assert len(set(terms)) > 1
    assert found == {"terms": pytest.approx(np.mean(np.maximum(terms, 1))), "rounds": 2_400}


def test_claim_about_the_cost_depends_on_its_growth() -> None:
    jobs = cost.plan((50, 100, 200), 3, 0)

    def verdict(power: float) -> str:
        outcomes = [
            (job, {"terms": (1 + 0.01 * job.seed) * job.environment["n_users"] ** (power + 0.001 * job.seed)})
            for job in jobs
        ]
        _, (claim,) = cost.summarize(outcomes)
        return claim.verdict

    assert verdict(1.0) == FAILS
    assert verdict(0.0) == HOLDS


def test_all_checks_at_a_small_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "ENVIRONMENTS", 100)  # fewer cannot decide, after the correction of p-values
    small = Verification(
        coverage_rounds=200,
        theory_rounds=200,
        users=4,
        gammas=(3.0, 2.5),
        repeats=2,
        user_counts=(10, 20),
        rounds=2000,
        safety_rounds=1500,
    )
    with Workers(jobs=2) as workers:
        findings = small.run(small.open_folder(tmp_path), workers)
    names = ["coverage", "correctness", "termination", "growth", "cost", "safety"]
    assert [table.name for table in findings.tables] == names
    assert {claim.section for claim in findings.claims} == set(findings.sections)
    verdict = {(claim.statement, claim.data): claim.verdict for claim in findings.claims}
    covered = {claim.statement.split()[2]: claim.verdict for claim in findings.claims if claim.section == "coverage"}
    assert covered["ellipsoid"] == HOLDS
    assert covered["regret"] == FAILS
    assert covered["theory"] == NOT_COUNTED  # the radius does not shrink in so few rounds
    assert not findings.failed_guarantees()
    assert " rounds in " in findings.notes[0]
    assert verdict["No cluster has a diameter above its certificate.", "all of these runs"] == HOLDS
    bounds = [claim for claim in findings.claims if claim.section == "safety" and claim.guaranteed]
    # After 1,500 rounds, no bound is informative yet. The claim about single rounds is.
    assert [claim.verdict for claim in bounds] == [NOT_COUNTED] * 2 * len(safety.SCENARIOS) + [HOLDS]
    assert all(claim.criteria[0].verdict == HOLDS for claim in bounds)
    screened = findings.tables[5].rows
    assert {(row["scenario"], row["policy"]) for row in screened} == {
        (scenario, policy) for scenario in safety.SCENARIOS for policy in safety.POLICIES
    }
    assert all((row["bound"] is None) == (row["policy"] not in safety.COVERED) for row in screened)
    termination = findings.tables[2].rows
    assert [row["users"] for row in termination] == [10, 20]
    assert all(row["rounds"].mean < row["bound"] for row in termination)


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from locb.cli import app
    from locb.experiments import verify

    small = Verification(
        coverage_rounds=100,
        theory_rounds=100,
        users=4,
        gammas=(6.0, 5.0),
        repeats=2,
        user_counts=(10, 12),
        rounds=1000,
        safety_rounds=600,
    )
    monkeypatch.setattr(verify, "QUICK", small)
    monkeypatch.setattr(coverage, "ENVIRONMENTS", 40)
    monkeypatch.setattr(termination, "GAMMA", 4.0)  # wide clusters become final soon
    monkeypatch.chdir(tmp_path)
    called = CliRunner().invoke(app, ["verify", "--quick", "--jobs", "1"])
    assert called.exit_code == 0, called.output
    assert " rounds in " in called.output
    for name in ("index.html", "tables/coverage.csv", "figures/termination.png", "figures/growth.svg"):
        assert (tmp_path / "runs" / "verify-quick" / name).exists()
    # An ellipsoid radius that does not cover the error violates a guarantee.
    monkeypatch.setitem(coverage.SIGMAS, "ellipsoid", -0.25)
    failed = CliRunner().invoke(app, ["verify", "--quick", "--jobs", "1", "--output", "failed"])
    assert failed.exit_code == 1
    refused = CliRunner().invoke(app, ["verify", "--repeats", "1"])
    assert refused.exit_code == 2
    assert "locb: --repeats must be at least 2, not 1\n" in refused.output
