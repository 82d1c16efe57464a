"""Verdicts of criteria and claims."""

import math
from dataclasses import replace

import pytest
from scipy.stats import norm, ttest_1samp

from locb.evaluation.findings import FAILS, HOLDS, LEVEL, UNDECIDED, Claim, Criterion, Findings, Measurement
from locb.report.findings_folder import summarize_verdicts


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
    # The two claims are variants of one claim.
    assert summarize_verdicts(findings) == "Claims: 0 hold, 1 do not hold, 0 are undecided."
    barely = claim(Criterion("", Measurement(-1.05, 1.0)), guaranteed=True)
    others = [replace(claim(Criterion("", Measurement(0.0, 1.0))), statement=str(number)) for number in range(9)]
    hidden = Findings("t", [], [], [barely, *others], {})  # the correction for other claims does not hide a failure
    assert hidden.claims[0].verdict == UNDECIDED
    assert [found.statement for found in hidden.failed_guarantees()] == ["a is best"]


def test_p_values_match_the_interval_and_student_t() -> None:
    values = [0.2, 1.4, 0.9, 0.7, 2.0]
    measured = Measurement.from_values(values)
    test = ttest_1samp(values, 0.0, alternative="greater")
    assert measured.p_positive == pytest.approx(test.pvalue, rel=1e-9)
    assert measured.p_negative == pytest.approx(1.0 - test.pvalue)
    edge = Measurement(measured.margin, measured.margin, measured.degrees)
    assert edge.p_positive == pytest.approx(LEVEL)
    assert Measurement(0.0, 0.0).p_positive == Measurement(1.0, math.nan).p_positive == 1.0
    assert (Measurement(1.0, 0.0).p_positive, Measurement(1.0, 0.0).p_negative) == (0.0, 1.0)


def test_proportion_has_the_p_value_of_the_score_test() -> None:
    criterion = Criterion.proportion("covered", 380, 400, 0.9)
    assert criterion.p_holds == pytest.approx(norm.sf(0.05 / math.sqrt(0.09 / 400)))
    assert criterion.p_holds + criterion.p_fails == pytest.approx(1.0)


def test_holm_corrects_within_a_family_only() -> None:
    barely = Criterion("", Measurement(1.05, 1.0))  # p = 0.0196: significant alone, not as one of two
    strong = Criterion("", Measurement(9.0, 1.0))
    alone = Findings("t", [], [], [replace(claim(barely), family="a"), replace(claim(strong), family="b")], {})
    assert [found.verdict for found in alone.claims] == [HOLDS, HOLDS]
    pair = [replace(claim(barely), statement="x"), replace(claim(barely), statement="y")]
    assert [found.verdict for found in Findings("t", [], [], pair, {}).claims] == [UNDECIDED, UNDECIDED]
    # Holm, not Bonferroni: after the strong claim is rejected, the other claim is tested alone.
    stepped = [replace(claim(barely), statement="x"), replace(claim(strong), statement="y")]
    assert [found.verdict for found in Findings("t", [], [], stepped, {}).claims] == [HOLDS, HOLDS]


def test_variants_count_once_and_vacuous_claims_do_not_count() -> None:
    good, unclear = Criterion("", Measurement(9.0, 1.0)), Criterion("", Measurement(0.0, 1.0))
    claims = [
        replace(claim(good), data="gamma 0.2"),
        replace(claim(unclear), data="gamma 0.4"),
        replace(claim(good), statement="b is best"),
        replace(claim(good), statement="all differ", vacuous="cannot fail"),
    ]
    findings = Findings("t", [], [], claims, {})
    assert summarize_verdicts(findings).startswith("Claims: 1 hold, 0 do not hold, 1 are undecided. Not counted: 1")
    assert findings.claims[3].adjusted is None


def test_one_of_many_criteria_must_fail_by_more_than_chance() -> None:
    barely = Criterion("", Measurement(-1.05, 1.0))
    good = Criterion("", Measurement(9.0, 1.0))
    assert claim(barely).verdict == FAILS
    assert claim(barely, good).verdict == UNDECIDED
