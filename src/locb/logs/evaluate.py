"""Evaluation of policies on a log: estimates of what they would have earned, compared with a baseline."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from locb.common.validation import ParameterError, check_int
from locb.logs.bootstrap import Interval, mean_limits
from locb.logs.estimators import FixedEstimators
from locb.logs.log import Log
from locb.logs.replay import Terms, learning_curve, replay
from locb.logs.results import UNDECIDED, Evaluation, PolicyEvaluation, PolicyValue, Weights, decide
from locb.logs.saved_replays import SavedReplays
from locb.logs.targets import LOGGED, FixedTarget, LearningTarget, make_target, name_policies

MIN_EFFECTIVE = 30  # effective decisions below which there is no verdict
MAX_SHARE = 0.1  # share of one decision in the sum of weights above which there is a warning
MEAN_WEIGHT_MARGIN = 1.7  # maximum distance of the mean weight from 1, in half widths of its 95% interval
MEAN_WEIGHT_SLACK = 0.01  # distance of the mean weight from 1, or share of unsupported choices, that allows a verdict
UNUSABLE_COLUMN = "column {!r} has no usable propensity: correct the column or the options with which it is read"
NO_PROPENSITIES = (
    "the log has no propensities, so the rewards of other choices cannot be estimated reliably; record the probability "
    "of each chosen arm, or, if all arms were equally probable, set propensity to 'uniform'"
)


def evaluate(
    log: Log,
    policies: Any,
    *,
    baseline: Any = LOGGED,
    learn: bool = True,
    parameters: Mapping[str, Any] | None = None,
    replicates: int = 1000,
    replays: int = 20,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Evaluation:
    """Estimate what policies would have earned on the decisions of a log, and compare them with a baseline.

    Parameters
    ----------
    log : Log
        Decisions with rewards, and with propensities as far as they are known.
    policies : policy, or sequence or mapping of policies
        A policy is the name of a learning policy, such as "eloc"; a :class:`locb.Policy`, of which a copy learns; or a
        fixed policy: "first", "random", "arm:ID", an array with the position of an arm per decision, or a function
        ``f(user, arms, contexts)`` that returns the position of an arm, or the probability of each arm.
    baseline : policy, default "logged"
        Fixed policy with which policies are compared. "logged" is the policy that made the log.
    learn : bool, default True
        Whether a :class:`locb.Policy` learns during the evaluation. If False, it is evaluated as a fixed policy.
    parameters : mapping, optional
        Parameters of the policies that are given by name.
    replicates : int, default 1000
        Number of bootstrap replicates for the intervals of fixed policies, at least 100.
    replays : int, default 20
        Number of bootstrap samples of users, at least 5, in each of which a learning policy learns again.
    seed : int, default 0
        Random seed of the bootstrap, of the replays and of the policies.
    folder : path, optional
        Folder of finished replays of the policies that are given by name. Later calls with the same folder reuse them.
    progress : callable, optional
        Called with the name of a policy and the finished share of its evaluation.

    Returns
    -------
    Evaluation
        Estimates with 95% intervals, diagnostics and verdicts.

    Raises
    ------
    ValueError
        If the log has no rewards, or an argument is invalid.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> arm = rng.integers(2, size=600)
    >>> rows = {"user": rng.integers(40, size=600), "arm": arm, "reward": 1.0 * (rng.random(600) < 0.2 + 0.4 * arm)}
    >>> evaluate(Log.read(rows, propensity="uniform"), ["arm:1"])["arm:1"].verdict
    'better'
    """
    run = _Run(log, learn, dict(parameters or {}), replicates, replays, seed, folder, progress)
    return run.run(name_policies(policies), baseline)


def usable_decisions(log: Log, notes: list[str]) -> Log:
    """Return the decisions with a reward, and with a propensity if some propensities are known.

    The limitations of the log are added to ``notes``.
    """
    if not isinstance(log, Log):
        raise ParameterError("log", f" must be a locb.Log, not {type(log).__name__}")
    notes += log.notes
    rewarded = np.isfinite(log.rewards)
    if not rewarded.any():
        raise ParameterError("reward", " must name the column of rewards: the log has no rewards")
    if not rewarded.all():
        missing = int((~rewarded).sum())
        notes.append(
            f"{missing:,} of {len(log):,} decisions have no reward and are not used; if they earned nothing, set "
            "missing_reward to 0"
        )
    known = np.isfinite(log.propensities)
    if log.has_propensities and not known[rewarded].all():
        missing = int((~known & rewarded).sum())
        notes.append(f"{missing:,} decisions have no propensity and are not used")
        rewarded &= known
    if not log.has_users:
        notes.append("the log has no user ids: intervals assume that decisions are independent")
    return log if rewarded.all() else log.select(rewarded)


def explain_no_propensities(log: Log) -> str:
    """Return why a log without propensities gives no verdict, and what to do."""
    column = (log.columns or {}).get("propensity", "none").removesuffix(" (detected)")
    return NO_PROPENSITIES if column == "none" else UNUSABLE_COLUMN.format(column)


class _Run:
    """State of one evaluation."""

    def __init__(
        self,
        log: Log,
        learn: bool,
        parameters: dict[str, Any],
        replicates: int,
        replays: int,
        seed: int,
        folder: str | os.PathLike[str] | None,
        progress: Callable[[str, float], None] | None,
    ) -> None:
        self.notes: list[str] = []
        self.log = usable_decisions(log, self.notes)
        self.facts = log.summary()
        self.learn, self.parameters, self.seed = learn, parameters, check_int("seed", seed, 0)
        self.progress = progress or (lambda *_: None)
        self.replicates, self.replays = check_int("replicates", replicates, 100), check_int("replays", replays, 5)
        self.saved = None if folder is None else SavedReplays(folder, self.log)
        self.estimators = FixedEstimators(self.log, self.replicates, self.seed)
        self.limits = mean_limits(self.log.rewards)
        self.has_propensities = log.has_propensities
        self.problems = check_choices(self.estimators, self.notes) if self.has_propensities else []
        self.curves: dict[str, list[tuple[int, float]]] = {}

    def run(self, policies: dict[str, Any], baseline: Any) -> Evaluation:
        """Evaluate the baseline, then the policies."""
        base_name, base = self._baseline(baseline)
        # All policies are checked before the first one is evaluated, which can take long.
        targets = {name: self._target(name, policy) for name, policy in policies.items() if name != base_name}
        results = [self._evaluate_baseline(base_name, base)]
        for name, target in targets.items():
            self.progress(name, 0.0)
            if target is None:
                results.append(self._evaluate_logged(name, base_name, base))
            elif isinstance(target, LearningTarget):
                results.append(self._evaluate_learning(target, base_name, base))
            else:
                results.append(self._evaluate_fixed(target, base_name, base))
            self.progress(name, 1.0)
        results = [replace(each, values=[value.clip(*self.limits) for value in each.values]) for each in results]
        settings = {"baseline": base_name, "policies": list(policies), "learn": self.learn}
        settings |= {"replicates": self.replicates, "replays": self.replays, "seed": self.seed}
        settings |= {"parameters": self.parameters, "curves": self.curves}
        return Evaluation(results, base_name, self.facts, self.notes, settings)

    def _target(self, name: str, policy: Any) -> FixedTarget | LearningTarget | None:
        if isinstance(policy, str) and policy == LOGGED:
            return None
        return make_target(name, policy, self.log, self.learn, self.parameters)

    # Baseline

    def _baseline(self, baseline: Any) -> tuple[str, FixedTarget | None]:
        if isinstance(baseline, str) and baseline == LOGGED:
            return LOGGED, None
        ((name, policy),) = name_policies([baseline]).items()
        target = make_target(name, policy, self.log, False, self.parameters)
        if isinstance(target, LearningTarget):
            raise ParameterError("baseline", f" must be a fixed policy, such as 'logged' or 'random', not {name!r}")
        if not self.has_propensities:
            raise ParameterError("baseline", f" must be 'logged', not {name!r}: {explain_no_propensities(self.log)}")
        return name, target

    def _base_terms(self, estimator: str, base: FixedTarget | None) -> Terms:
        if base is None:
            return Terms(self.log.rewards, np.broadcast_to(1.0, len(self.log)))
        return self.estimators.terms("dr" if estimator in ("dm", "replay") else estimator, base)

    def _evaluate_baseline(self, name: str, base: FixedTarget | None) -> PolicyEvaluation:
        if base is None:
            value = PolicyValue(LOGGED, self.estimators.interval(self._base_terms("dr", None)))
            return PolicyEvaluation(name, "logged", [value], None, "", "")
        names = ("dr", "snips", "ips")
        values = [PolicyValue(part, self.estimators.interval(self.estimators.terms(part, base))) for part in names]
        weights = self.estimators.diagnose(base)
        problems, warnings = check_weights(weights)
        return PolicyEvaluation(name, "fixed", values, weights, "", "", problems + warnings)

    def _evaluate_logged(self, name: str, base_name: str, base: FixedTarget | None) -> PolicyEvaluation:
        terms = self._base_terms("dr", None)
        difference = self.estimators.interval(terms, self._base_terms("dr", base))
        value = PolicyValue(LOGGED, self.estimators.interval(terms), difference)
        verdict, sentence = self._decide(name, base_name, value, ())
        return PolicyEvaluation(name, "logged", [value], None, verdict, sentence)

    # Policies

    def _decide(self, name: str, base_name: str, value: PolicyValue | None, problems: Sequence[str]) -> tuple[str, str]:
        low, high = self.limits
        return decide(name, base_name, value, len(self.log), [*self.problems, *problems], largest=high - low)

    def _evaluate_fixed(self, target: FixedTarget, base_name: str, base: FixedTarget | None) -> PolicyEvaluation:
        estimators = self.estimators
        if not self.has_propensities:
            value, difference = estimators.direct_method(target, self._base_terms("dm", base))
            values = [PolicyValue("dm", value, difference, assumes_model=True)]
            verdict, sentence = self._decide(target.name, base_name, values[0], [explain_no_propensities(self.log)])
            return PolicyEvaluation(target.name, "fixed", values, None, verdict, sentence)
        names = ["dr", "snips", "ips"]
        if self.log.is_uniform and target.choice is not None:
            names.append("replay")
        values = []
        for name in names:
            terms = estimators.terms(name, target)
            difference = estimators.interval(terms, self._base_terms(name, base))
            values.append(PolicyValue(name, estimators.interval(terms), difference))
        direct = estimators.direct_method(target, self._base_terms("dm", base))
        values.append(PolicyValue("dm", *direct, assumes_model=True))
        weights = estimators.diagnose(target)
        problems, warnings = check_weights(weights)
        verdict, sentence = self._decide(target.name, base_name, values[0], problems)
        return PolicyEvaluation(target.name, "fixed", values, weights, verdict, sentence, problems + warnings)

    def _evaluate_learning(self, target: LearningTarget, base_name: str, base: FixedTarget | None) -> PolicyEvaluation:
        if not self.has_propensities:
            reason = explain_no_propensities(self.log)
            verdict, sentence = self._decide(target.name, base_name, None, [reason])
            return PolicyEvaluation(target.name, "learning", [], None, verdict, sentence, [reason])
        base_terms = self._base_terms("replay", base)
        report = lambda share: self.progress(target.name, share)  # noqa: E731 - a callback
        run = replay(self.log, target, base_terms, self.replays, self.seed, report, self.saved)
        self.curves[target.name] = learning_curve(self.log.rewards[run.accepted])
        is_accepted = np.zeros(len(self.log))
        is_accepted[run.accepted] = 1.0
        accepted = len(run.accepted)
        mean = self.estimators.interval(Terms(is_accepted, np.broadcast_to(run.rate, len(self.log))))
        weights = Weights(accepted, float(accepted), 1.0, float(accepted), mean)
        value = PolicyValue("replay", run.value, run.difference)
        problems, warnings = check_weights(weights)
        note = (
            f"{target.name} was replayed: the value is for its first {accepted:,} decisions, while the policy learns. "
            f"A decision is accepted with a probability of {run.rate:.3g}, the smallest propensity"
        )
        verdict, sentence = self._decide(target.name, base_name, value, problems)
        if verdict == UNDECIDED and self.log.arm_ids and not self.problems:
            share = f"{accepted:,} of {len(self.log):,} decisions ({accepted / len(self.log):.1%})"
            note += (
                f". It used {share}; a fixed policy, such as arm:{self.log.arm_ids[0]}, is estimated from all of them"
            )
        values = [] if math.isnan(value.value.value) else [value]
        return PolicyEvaluation(
            target.name, "learning", values, weights, verdict, sentence, [*problems, *warnings, note]
        )


def check_choices(estimators: FixedEstimators, notes: list[str]) -> list[str]:
    """Return the problem of a log whose choices contradict its propensities, which forbids all verdicts.

    An explanation is added to ``notes``. If propensities are not uniform, a small mean weight is no contradiction: the
    arm can have had probability 0 in some decisions.
    """
    log = estimators.log
    if not log.arm_ids or (log.offers.arms < 0).any():
        return []
    arms, is_uniform = estimators.arm_weights(), log.is_uniform
    distance = np.abs(arms.mean - 1.0) if is_uniform else arms.mean - 1.0
    excess = np.where(arms.offers > 0, distance / np.maximum(arms.margin, MEAN_WEIGHT_SLACK), 0.0)
    worst, wrong = int(excess.argmax()), int((excess > 1.0).sum())
    if not wrong:
        return []
    found = f"arm {log.arm_ids[worst]!r} was chosen {arms.chosen[worst]:,.0f} times"
    if is_uniform:
        found += f" instead of about {arms.uniform[worst]:,.0f} times"
        cause = "the offered arms were not equally probable"
    else:
        cause = "some propensities are too small"
    found += f", and its mean weight is {arms.mean[worst]:.3f} instead of {'' if is_uniform else 'at most '}1"
    notes.append(
        f"the choices of the log contradict its propensities for {wrong:,} of {len(log.arm_ids):,} arms, most for "
        f"{log.arm_ids[worst]!r}: a distance of its mean weight from 1 of up to {arms.margin[worst]:.3f} can be due to "
        f"chance. There are no verdicts, because {cause}, or the offered arms or the decisions of the log are "
        "incomplete"
    )
    return [f"the choices of the log contradict its propensities: {found}"]


def check_weights(weights: Weights) -> tuple[list[str], list[str]]:
    """Return the problems of weights that forbid a verdict, and the warnings."""
    problems, warnings = [], []
    if weights.effective < MIN_EFFECTIVE:
        problems.append(
            f"the log has only {weights.effective:.0f} effective decisions for the policy, and at least "
            f"{MIN_EFFECTIVE} are required"
        )
    if weights.unsupported > MEAN_WEIGHT_SLACK:
        share = f"{weights.unsupported:.1%} of the choices of the policy"
        problems.append(f"{share} are arms that are never chosen in the log")
    mean = weights.mean
    if _differs_from_one(mean):
        problems.append(
            f"the mean weight is {mean.value:.3f} instead of 1: the propensities are wrong, or some choices of the "
            "policy never occur in the log"
        )
    if weights.largest > MAX_SHARE * weights.total:
        warnings.append(
            f"the largest weight, {weights.largest:.3g}, is more than {MAX_SHARE:.0%} of the sum of the weights, so "
            "few decisions determine the estimate"
        )
    return problems, warnings


def _differs_from_one(mean: Interval) -> bool:
    if math.isnan(mean.low):
        return abs(mean.value - 1.0) > MEAN_WEIGHT_SLACK and not math.isnan(mean.value)
    low, high = mean.value - mean.low, mean.high - mean.value
    distance = 1.0 - mean.value
    margin = MEAN_WEIGHT_MARGIN * (high if distance > 0 else low)
    return abs(distance) > max(margin, MEAN_WEIGHT_SLACK)
