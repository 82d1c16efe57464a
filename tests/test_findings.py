"""Verdicts come from differences, and only from them."""

import math

import pytest

from locb.evaluation.findings import FAILS, HOLDS, OPEN, Claim, Findings, Measured, Part


def claim(*parts: Part, promised: bool = False) -> Claim:
    return Claim("regret", "synthetic", "a is best", "Figure 1", parts, promised=promised)


@pytest.mark.parametrize(
    ("larger", "smaller", "verdict"),
    [
        ([5.0, 6.0, 7.0], [1.0, 2.1, 2.9], HOLDS),
        ([1.0, 2.1, 2.9], [5.0, 6.0, 7.0], FAILS),
        ([5.0, 0.0, 7.0], [1.0, 2.0, 6.0], OPEN),
        ([1.0, 2.0], [1.0, 2.0], OPEN),  # equal in every repeat: nothing was seen either way
        ([9.0], [1.0], OPEN),  # one repeat says nothing about chance
    ],
)
def test_a_part_is_judged_by_the_interval_of_its_paired_difference(larger, smaller, verdict) -> None:
    assert Part.paired("a above b", larger, smaller).verdict == verdict


def test_pairing_matters() -> None:
    worlds, better = [10.0, 500.0, 90.0], [11.0, 501.1, 91.0]
    assert Part.paired("b above a", better, worlds).verdict == HOLDS
    assert Part.paired("b above a", [501.1, 91.0, 11.0], worlds).verdict == OPEN


def test_a_claim_holds_if_all_its_parts_do() -> None:
    good, bad, unsure = Part("", Measured(2, 1)), Part("", Measured(-2, 1)), Part("", Measured(1, 2))
    assert claim(good, good).verdict == HOLDS
    assert claim(good, unsure).verdict == OPEN
    assert claim(good, unsure, bad).verdict == FAILS
    assert claim().verdict == OPEN
    assert claim(Part("", Measured(math.nan, 0.0))).verdict == OPEN


def test_a_share_is_judged_by_wilsons_interval() -> None:
    # Wilson's interval for 400 of 400 is 0.9905 to 1; for 178 of 400 it is 0.397 to 0.494.
    assert Part.share("covered", 400, 400, 0.99).verdict == HOLDS
    assert Part.share("covered", 400, 400, 0.991).verdict == OPEN
    part = Part.share("covered", 178, 400, 0.9)
    assert part.verdict == FAILS
    assert "178 of 400, a share from 0.397 to 0.494" in part.told
    assert Part.share("covered", 5, 5, 0.9).verdict == OPEN  # five worlds cannot show 0.9


def test_always_means_every_time() -> None:
    assert Part.always("right", 7, 7).verdict == HOLDS
    assert Part.always("right", 6, 7).verdict == FAILS
    assert Part.always("right", 0, 0).verdict == FAILS


def test_a_broken_promise_is_named() -> None:
    bad = Part("", Measured(-2, 1))
    findings = Findings("t", [], [], [claim(bad), claim(bad, promised=True)], {})
    assert findings.broken_promises() == [findings.claims[1]]
    assert [findings.count(verdict) for verdict in (HOLDS, FAILS, OPEN)] == [0, 2, 0]
