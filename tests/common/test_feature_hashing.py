"""Feature hashing: pinned vectors, and properties that hold for all features."""

import math
import time
from collections.abc import Callable
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locb
from locb.common import feature_hashing

ROOT = math.sqrt(0.5)

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
feature_values = st.dictionaries(names, numbers | names | st.booleans() | st.integers(-(2**70), 2**70), max_size=12)
dims = st.integers(1, 40)


def reference_vector(values: dict[str, Any], dim: int) -> np.ndarray:
    """The definition of the vector, computed with exact sums."""
    entries = [Fraction(0)] * dim
    for name, value in values.items():
        if isinstance(value, bool):
            key, number = f"{name}={str(value).lower()}", Fraction(1)
        elif isinstance(value, str):
            key, number = f"{name}={value}", Fraction(1)
        else:
            key, number = name, Fraction(float(value))
        h = int.from_bytes(blake2b(key.encode(), digest_size=8, person=b"locb.features.v1").digest(), "little")
        if dim > 1:
            entries[1 + (h >> 1) % (dim - 1)] += number if h & 1 else -number
    largest = max(map(abs, entries))
    if largest == 0:
        return np.eye(dim)[0]
    vector = np.array([float(entry / largest) for entry in entries])
    vector *= ROOT / np.linalg.norm(vector)
    vector[0] = ROOT
    return vector


# These values must not change: a change is a new version of the hash and invalidates every saved policy.
@pytest.mark.parametrize(
    ("values", "dim", "vector"),
    [
        ({}, 3, [1.0, 0.0, 0.0]),
        ({"genre": "drama", "length": 0.5}, 6, [ROOT, 0.1**0.5, 0.0, 0.0, 0.0, 0.4**0.5]),
        (
            {"genre": "drama", "new": True, "length": 0.5},
            8,
            [ROOT, -(0.1**0.5), 0.4**0.5, 0.0, 0.0, 0.0, 0.0, 0.0],
        ),
        (
            {"age": 33, "país": "España", "ok": False},
            16,
            [ROOT, -0.7064583566749403, 0.021407828990149706, *[0.0] * 9, 0.021407828990149706, 0.0, 0.0, 0.0],
        ),
        ({"a": 1e300, "b": -5e-324, "c": 1e300}, 5, [ROOT, 0.5, -0.5, 0.0, 0.0]),
        ({"a": 5e-324, "b": -1e-323}, 4, [ROOT, -(0.4**0.5), -(0.1**0.5), 0.0]),
        ({"x": ""}, 4, [ROOT, 0.0, -ROOT, 0.0]),
        ({"a": 1.0, "b": "c"}, 2, [1.0, 0.0]),  # same index, opposite signs: they cancel
        ({"a": 1.0, "b": 2.0}, 2, [ROOT, ROOT]),
        ({"a": 1.0}, 1, [1.0]),
    ],
)
def test_vectors_do_not_change_between_versions(values: dict[str, Any], dim: int, vector: list[float]) -> None:
    np.testing.assert_allclose(locb.features(values, dim), vector, rtol=0, atol=1e-15)


@given(feature_values, dims)
def test_vector_follows_the_definition_and_has_norm_1(values: dict[str, Any], dim: int) -> None:
    vector = locb.features(values, dim)
    assert vector.shape == (dim,)
    assert vector.dtype == np.float64
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-14)
    assert vector[0] in (1.0, ROOT)
    expected = reference_vector(values, dim)
    if vector[0] == expected[0]:  # float sums may be zero where exact sums have a remainder below rounding
        np.testing.assert_allclose(vector, expected, atol=1e-3 if _cancels(values, dim) else 1e-12)


def _cancels(values: dict[str, Any], dim: int) -> bool:
    """Return whether features with the same index nearly cancel."""
    return bool(np.abs(feature_hashing.feature_contributions(values, dim)[3]).max(initial=0.0) > 10.0)


@given(feature_values, dims, st.integers(0, 2**32 - 1))
def test_contributions_add_up(values: dict[str, Any], dim: int, seed: int) -> None:
    vector, keys, indices, weights = feature_hashing.feature_contributions(values, dim)
    np.testing.assert_array_equal(vector, locb.features(values, dim))
    np.testing.assert_array_equal(vector, feature_hashing.feature_row(values, dim))
    assert len(keys) == len(indices) == len(weights) == len(values)
    theta = np.random.default_rng(seed).standard_normal(dim)
    product = vector[0] * theta[0] + sum(w * theta[i] for i, w in zip(indices, weights, strict=True))
    scale = 1.0 + np.abs(weights).sum()
    assert product == pytest.approx(float(vector @ theta), abs=1e-13 * scale)
    assert all(0 < index < dim for index in indices) or dim == 1


@given(feature_values, dims, st.randoms())
def test_order_of_features_does_not_matter(values: dict[str, Any], dim: int, random: Any) -> None:
    items = list(values.items())
    random.shuffle(items)
    if not _cancels(values, dim):
        np.testing.assert_allclose(locb.features(dict(items), dim), locb.features(values, dim), atol=1e-13)


@given(st.dictionaries(names, st.floats(-1e3, 1e3).filter(lambda x: abs(x) > 1e-3), max_size=8), dims)
def test_common_scale_of_numbers_does_not_matter(values: dict[str, float], dim: int) -> None:
    for factor in (2.0**-1000, 2.0**900):
        scaled = {name: factor * value for name, value in values.items()}
        np.testing.assert_array_equal(locb.features(scaled, dim), locb.features(values, dim))


def test_keys_include_the_values_of_strings_and_booleans() -> None:
    values = {"genre": "drama", "age": 3, "new": True, "old": False, "count": np.int64(2), "flag": np.bool_(True)}
    assert feature_hashing.feature_contributions(values, 9)[1] == [
        "genre=drama",
        "age",
        "new=true",
        "old=false",
        "count",
        "flag=true",
    ]


def test_numpy_scalars_are_accepted() -> None:
    values = {"a": np.float32(0.5), "b": np.int64(3), "c": np.str_("x")}
    np.testing.assert_array_equal(locb.features(values, np.int64(9)), locb.features({"a": 0.5, "b": 3, "c": "x"}, 9))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"age": math.nan}, "feature 'age' must be a finite number, a string or a boolean, not nan"),
        ({"age": -math.inf}, "feature 'age' .* not -inf"),
        ({"age": 10**400}, "feature 'age' .* not 1000"),
        ({"age": np.float64("nan")}, "feature 'age'"),
        ({"user": {"age": 3}}, "feature 'user' .* not {'age': 3}"),
        ({"tags": ["a"]}, "feature 'tags'"),
        ({"tags": None}, "feature 'tags' .* not None"),
        ({"": 1.0}, "feature names must be non-empty strings, not ''"),
        ({3: 1.0}, "feature names must be non-empty strings, not 3"),
        ({"a": "\ud800"}, "feature 'a=.* UTF-8"),
        ([1.0], "features must be a JSON object or a mapping of names to values, not \\[1.0\\]"),
        ({"x" * 10_000: None}, "^.{,200}$"),
    ],
)
@pytest.mark.parametrize("dim", [1, 5])
def test_error_message_names_the_invalid_feature(values: Any, message: str, dim: int) -> None:
    with pytest.raises(ValueError, match=message):
        locb.features(values, dim)


@pytest.mark.parametrize("dim", [0, -1, 2.0, True, "3", None])
def test_dim_must_be_a_positive_integer(dim: Any) -> None:
    with pytest.raises(ValueError, match="dim must be an integer of at least 1"):
        locb.features({"a": 1.0}, dim)


def test_cache_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_hashing, "MAX_CACHED_KEYS", 10)
    for i in range(35):
        locb.features({f"name{i}": 1.0, f"{'long' * 40}{i}": 1.0}, 123)
    cached = feature_hashing._key_index(122)
    assert 0 < len(cached) <= 10
    assert all(len(key) <= feature_hashing.MAX_CACHED_KEY_LENGTH for key in cached)


def test_hashing_is_fast() -> None:
    values: dict[str, float | str | bool] = {f"n{i}": 0.5 + i for i in range(5)} | {f"s{i}": "word" for i in range(5)}

    def best_of(call: Callable[[], object]) -> float:
        times = []
        for _ in range(30):
            start = time.perf_counter()
            for _ in range(100):
                call()
            times.append((time.perf_counter() - start) / 100)
        return min(times)

    # About 5 µs on a typical machine. The bound allows a tenfold slowdown, such as a cache that misses.
    assert best_of(lambda: feature_hashing.feature_row(values, 10)) < 50e-6
