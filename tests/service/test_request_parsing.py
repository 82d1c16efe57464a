"""Parsing of recommend requests: contexts, and problems that name the field."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import locb
from locb.recommender import requests
from locb.service.api.middleware import decode_body
from locb.service.errors import ProblemError
from locb.service.request_parsing import make_collision_check, parse_request, parse_stored_request
from locb.service.schemas import Arm, RecommendRequest
from serving import serving

DIM = 3
ARMS: list[dict[str, Any]] = [{"id": "a", "features": [1, 0, 0]}, {"id": "b", "features": [0, 0.5, -2]}]
decoder = msgspec.json.Decoder(RecommendRequest)


def encode_body(**fields: Any) -> bytes:
    return msgspec.json.encode({"user": "ann", "arms": ARMS} | fields)


def parse(**fields: Any) -> Any:
    return parse_request(decode_body(decoder, encode_body(**fields)), DIM)


def test_numeric_features_are_not_changed() -> None:
    parsed = parse()
    assert parsed.contexts.tolist() == [[1, 0, 0], [0, 0.5, -2]]
    assert parsed.contexts.dtype == np.float64
    assert parsed.eligible == [0, 1]


def test_named_features_are_hashed_as_by_the_library() -> None:
    values = {"genre": "drama", "new": True, "length": 0.5}
    parsed = parse(arms=[{"id": "a", "features": values}, {"id": "b", "features": {}}])
    assert parsed.contexts[0].tolist() == locb.features(values, DIM).tolist()
    assert parsed.contexts[1].tolist() == [1, 0, 0]


def named(*ids: str, **others: Any) -> list[dict[str, Any]]:
    return [{"id": name, "features": {"arm": name} | others} for name in ids]


def test_arms_that_hashing_makes_equal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With --dim 16, the ids novel and puzzle have the same index and sign."""
    with serving(tmp_path, dim=16) as (client, _):

        def logged(*offered: dict[str, Any], **fields: Any) -> int:
            client.post("/v1/recommend", json={"user": "ann", "arms": offered} | fields).raise_for_status()
            return caplog.text.count("the same vector after hashing into 16 numbers")

        vectors = [{"id": f"v{i}", "features": [1.0] * 16} for i in range(2)]
        assert logged(*vectors) == 0
        assert logged(*named("novel", "lamp")) == 0
        assert logged({"id": "also novel", "features": {"arm": "novel", "price": 0}}) == 0
        assert logged(*named("lamp", "puzzle"), exclude=["puzzle"]) == 0
        assert logged(*named("lamp", "puzzle")) == 1  # the other arm was offered before
        assert logged(*named("novel", "puzzle", "other", colour="red")) == 1  # written once
    assert "arms 'novel' and 'puzzle' have different features" in caplog.text


def test_search_for_equal_arms_is_limited(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(requests, "CHECKED_PER_REQUEST", 2)
    body = RecommendRequest("ann", [Arm(name, {"arm": name}) for name in ("a", "b", "novel", "c", "puzzle")])
    check, parsed = make_collision_check(), parse_request(body, 16)
    check.check(parsed)
    check.check(parsed)
    assert not caplog.records
    check.check(parsed)
    assert "arms 'novel' and 'puzzle'" in caplog.text
    caplog.clear()
    monkeypatch.setattr(requests, "CHECKED_ARMS", 2)
    check = make_collision_check()
    for _ in range(3):
        check.check(parsed)
    assert not caplog.records


def test_excluded_arms_have_no_contexts() -> None:
    parsed = parse(exclude=["a", "a"])
    assert parsed.eligible == [1]
    assert parsed.contexts.tolist() == [[0, 0.5, -2]]
    # The features of an excluded arm are not checked.
    assert parse(exclude=["a"], arms=[{"id": "a", "features": []}, ARMS[1]]).eligible == [1]


def test_stored_request_is_parsed_identically() -> None:
    for fields in (
        {},
        {"exclude": ["b"], "count": 1, "decision_id": "x"},
        {"arms": [{"id": "🦆", "features": {"a": 1e300}}]},
    ):
        parsed = parse(**fields)
        again = parse_stored_request(parsed.packed, DIM)
        assert again.packed == parsed.packed
        assert again.contexts.tobytes() == parsed.contexts.tobytes()
        assert again.eligible == parsed.eligible


def arm(**fields: Any) -> list[dict[str, Any]]:
    return [ARMS[0], ARMS[1] | fields]


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"user": ""}, "user", "length >= 1"),
        ({"user": "x" * 257}, "user", "length <= 256"),
        ({"user": 3}, "user", "Expected `str`"),
        ({"user": None}, "user", "Expected `str`"),
        ({"arms": []}, "arms", "length >= 1"),
        ({"arms": ARMS * 501}, "arms", "length <= 1000"),
        ({"arms": arm(id="a")}, "arms[1].id", "ids of arms must be unique, but two arms have the id 'a'"),
        ({"arms": arm(id="")}, "arms[1].id", "length >= 1"),
        (
            {"arms": arm(features=[1, 2])},
            "arms[1].features",
            "must be 3 numbers, the number of features per arm, not 2",
        ),
        ({"arms": arm(features=[])}, "arms[1].features", "must be 3 numbers, the number of features per arm, not 0"),
        ({"arms": arm(features=[1, 2, "x"])}, "arms[1].features[2]", "Expected `float`"),
        ({"arms": arm(features=[1, 2, 1e7])}, "arms[1].features", "from -1e+06 to 1e+06, not 1e+07"),
        ({"arms": arm(features="x")}, "arms[1].features", "Expected `object | array`, got `str`"),
        ({"arms": arm(features={"": 1})}, "arms[1].features", "names must be non-empty strings"),
        ({"arms": arm(features={"a": None})}, "arms[1].features[...]", "Expected `bool | float | str`, got `null`"),
        ({"arms": arm(features={"a": [1]})}, "arms[1].features[...]", "Expected `bool | float | str`, got `array`"),
        ({"exclude": ["c"]}, "exclude", "'c', which is not the id of an arm"),
        ({"exclude": ["a", "b"]}, "exclude", "exclude must not contain all arms"),
        ({"exclude": "a"}, "exclude", "Expected `array`"),
        ({"count": 0}, "count", ">= 1"),
        ({"decision_id": ""}, "decision_id", "length >= 1"),
    ],
)
def test_problem_names_the_field(fields: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(ProblemError) as caught:
        parse(**fields)
    problem = caught.value.problem
    assert (problem.status, problem.type, problem.fields) == (422, "urn:locb:problem:invalid", [field])
    assert message in problem.detail


@pytest.mark.parametrize("where", ["user", "decision_id", "arms[0].id", "arms[0].features"])
def test_lone_surrogate_is_rejected(where: str) -> None:
    half = '"\\ud83e"'
    body = {
        "user": f'{{"user": {half}, "arms": [{{"id": "a", "features": [1, 0, 0]}}]}}',
        "decision_id": f'{{"user": "u", "decision_id": {half}, "arms": [{{"id": "a", "features": [1, 0, 0]}}]}}',
        "arms[0].id": f'{{"user": "u", "arms": [{{"id": {half}, "features": [1, 0, 0]}}]}}',
        "arms[0].features": f'{{"user": "u", "arms": [{{"id": "a", "features": {{{half}: 1}}}}]}}',
    }[where]
    with pytest.raises(ProblemError) as caught:
        parse_request(decode_body(decoder, body.encode()), DIM)
    assert caught.value.status == 400
    assert "surrogate" in caught.value.problem.detail
    # The body is valid but for the surrogate.
    assert parse_request(decode_body(decoder, body.replace(half, '"half"').encode()), DIM).eligible == [0]


@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        ("NaN", 400, "invalid character"),
        ("Infinity", 400, "invalid character"),
        ("-Infinity", 400, "invalid character"),
        ("nan", 400, "invalid character"),
        ("1e999", 422, "Number out of range"),
        ("-1e999", 422, "Number out of range"),
    ],
)
def test_non_finite_numbers_are_rejected(number: str, status: int, message: str) -> None:
    for features in (f"[1, 0, {number}]", f'{{"a": {number}}}'):
        body = f'{{"user": "u", "arms": [{{"id": "a", "features": {features}}}]}}'
        with pytest.raises(ProblemError) as caught:
            parse_request(decode_body(decoder, body.encode()), DIM)
        assert caught.value.status == status
        assert message in caught.value.problem.detail


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "the body is not valid JSON: Input data was truncated"),
        (b"{", 400, "the body is not valid JSON: Input data was truncated"),
        (b"\xff", 400, "the body is not valid JSON: JSON is malformed"),
        (b'{"user": "\xff"}', 400, "the body is not valid JSON: 'utf-8' codec can't decode byte 0xff"),
        (b"[]", 422, "Expected `object`, got `array`"),
        (b"null", 422, "Expected `object`, got `null`"),
        (b"[" * 100_000, 422, "Expected `object`, got `array`"),
        (b'{"user": "u"}', 422, "Object missing required field `arms`"),
        (encode_body(users="ann"), 422, "Object contains unknown field `users`"),
    ],
)
def test_invalid_body_is_rejected(body: bytes, status: int, message: str) -> None:
    with pytest.raises(ProblemError) as caught:
        decode_body(decoder, body)
    assert caught.value.status == status
    assert caught.value.problem.detail.startswith(message)
