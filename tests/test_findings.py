"""Verdicts of criteria and claims."""

import math

import pytest

from locb.evaluation.findings import FAILS, HOLDS, UNDECIDED, Claim, Criterion, Findings, Measurement


def claim(*criteria: Criterion, guaranteed: bool = False) -> Claim:
    return Claim("regret", "synthetic", "a is best", "Figure 1", criteria, guaranteed=guaranteed)


@pytest.mark.parametrize(
    ("larger", "smaller", "verdict"),
    [
        ([5.0, 6.0, 7.0], [1.0, 2.1, 2.9], HOLDS),
        ([1.0, 2.1, 2.9], [5.0, 6.0, 7.0], FAILS),
        ([5.0, 0.0, 7.0], [1.0, 2.0, 6.0], UNDECIDED),
        ([1.0, 2.0], [1.0, 2.0], UNDECIDED),  # equal in every repeat
        ([9.0], [1.0], UNDECIDED),  # one repeat has no interval
    ],
)
def test_criterion_uses_interval_of_paired_difference(larger, smaller, verdict) -> None:
    assert Criterion.paired("a above b", larger, smaller).verdict == verdict


def test_pairing_reduces_the_interval() -> None:
    base, better = [10.0, 500.0, 90.0], [11.0, 501.1, 91.0]
    assert Criterion.paired("b above a", better, base).verdict == HOLDS
    assert Criterion.paired("b above a", [501.1, 91.0, 11.0], base).verdict == UNDECIDED


def test_claim_holds_if_all_criteria_hold() -> None:
    good, bad, unclear = (
        Criterion("", Measurement(2, 1)),
        Criterion("", Measurement(-2, 1)),
        Criterion("", Measurement(1, 2)),
    )
    assert claim(good, good).verdict == HOLDS
    assert claim(good, unclear).verdict == UNDECIDED
    assert claim(good, unclear, bad).verdict == FAILS
    assert claim().verdict == UNDECIDED
    assert claim(Criterion("", Measurement(math.nan, 0.0))).verdict == UNDECIDED


def test_proportion_uses_wilson_interval() -> None:
    # Wilson's interval for 400 of 400 is 0.9905 to 1; for 178 of 400 it is 0.397 to 0.494.
    assert Criterion.proportion("covered", 400, 400, 0.99).verdict == HOLDS
    assert Criterion.proportion("covered", 400, 400, 0.991).verdict == UNDECIDED
    criterion = Criterion.proportion("covered", 178, 400, 0.9)
    assert criterion.verdict == FAILS
    assert "178 of 400 (95% interval 0.397 to 0.494;" in criterion.detail
    assert Criterion.proportion("covered", 5, 5, 0.9).verdict == UNDECIDED  # five trials are too few


def test_always_requires_every_trial() -> None:
    assert Criterion.always("right", 7, 7).verdict == HOLDS
    assert Criterion.always("right", 6, 7).verdict == FAILS
    assert Criterion.always("right", 0, 0).verdict == FAILS


def test_failed_guarantees_are_listed() -> None:
    bad = Criterion("", Measurement(-2, 1))
    findings = Findings("t", [], [], [claim(bad), claim(bad, guaranteed=True)], {})
    assert findings.failed_guarantees() == [findings.claims[1]]
    assert [findings.count(verdict) for verdict in (HOLDS, FAILS, UNDECIDED)] == [0, 2, 0]
