"""Parsing of recommend requests: contexts, and problems that name the field."""

from typing import Any

import msgspec
import numpy as np
import pytest

import locb
from locb.service.api.middleware import decode_body
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_request, parse_stored_request
from locb.service.schemas import RecommendRequest

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
        ({"arms": arm(features=[1, 2])}, "arms[1].features", "must be 3 numbers, not 2"),
        ({"arms": arm(features=[])}, "arms[1].features", "must be 3 numbers, not 0"),
        ({"arms": arm(features=[1, 2, "x"])}, "arms[1].features[2]", "Expected `float`"),
        ({"arms": arm(features=[1, 2, 1e7])}, "arms[1].features", "from -1e+06 to 1e+06, not 1e+07"),
        ({"arms": arm(features="x")}, "arms[1].features", "Expected"),
        ({"arms": arm(features={"": 1})}, "arms[1].features", "names must be non-empty strings"),
        ({"arms": arm(features={"a": None})}, "arms[1].features[...]", "Expected"),
        ({"arms": arm(features={"a": [1]})}, "arms[1].features[...]", "Expected"),
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
    assert caught.value.status in (400, 422)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "nan"])
def test_non_finite_numbers_are_rejected(number: str) -> None:
    for features in (f"[1, 0, {number}]", f'{{"a": {number}}}'):
        body = f'{{"user": "u", "arms": [{{"id": "a", "features": {features}}}]}}'
        with pytest.raises(ProblemError) as caught:
            parse_request(decode_body(decoder, body.encode()), DIM)
        assert caught.value.status in (400, 422)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff", b'{"user": "\xff"}', b"[" * 100_000, b'{"user": "u"}']
)
def test_invalid_body_is_rejected(body: bytes) -> None:
    with pytest.raises(ProblemError) as caught:
        decode_body(decoder, body)
    assert caught.value.status in (400, 422)


def test_unknown_field_is_rejected() -> None:
    with pytest.raises(ProblemError) as caught:
        parse(users="ann")
    assert "users" in caught.value.problem.detail
