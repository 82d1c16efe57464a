"""``save`` and ``load``: a loaded policy continues bit for bit; invalid files are refused with the reason."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from policies.helpers import DIM, KINDS, N, make, make_rounds, state_of

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("added", [0, 3, 70])
def test_loaded_policy_continues_bit_for_bit(kind: str, added: int, tmp_path: Path) -> None:
    policy = make(kind)
    if added:
        policy.add_users(added)
        for user in range(N, N + added):
            policy.update(user, np.full(DIM, 0.3), 1.0)
    policy.save(tmp_path / "policy.locb")
    loaded = locb.load(tmp_path / "policy.locb")
    assert type(loaded) is type(policy)
    assert loaded.get_params() == policy.get_params()
    more = make_rounds(400, seed=2)
    assert loaded.play(more).tolist() == policy.play(more).tolist()
    loaded.add_users(2)
    policy.add_users(2)
    for user in (0, N + added, N + added + 1):
        for learner in (loaded, policy):
            learner.update(user, np.arange(DIM) / DIM, 0.5)
    assert np.array_equal(loaded.theta, policy.theta)
    assert [c.members.tolist() for c in loaded.clusters()] == [c.members.tolist() for c in policy.clusters()]
    more = make_rounds(100, seed=3)
    assert loaded.play(more).tolist() == policy.play(more).tolist()


def test_save_replaces_the_file_atomically(tmp_path: Path) -> None:
    path = tmp_path / "policy.locb"
    path.write_text("something older")
    make("locb").save(path)
    assert isinstance(locb.load(path), locb.LOCB)
    assert [entry.name for entry in tmp_path.iterdir()] == ["policy.locb"]


def test_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "policy.locb"
    policy = make("locb")
    policy.save(path)
    before = path.read_bytes()

    def full_disk(*arguments: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        policy.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["policy.locb"]


def rewrite(path: Path, change: Any) -> None:
    """Change header and arrays of a saved policy and write the zip again, with valid checksums."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    change(entries)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)


def with_header(**changes: Any) -> Any:
    def change(entries: dict[str, bytes]) -> None:
        header = json.loads(entries["header.json"])
        entries["header.json"] = json.dumps({**header, **changes}).encode()

    return change


def with_parameters(**changes: Any) -> Any:
    def change(entries: dict[str, bytes]) -> None:
        header = json.loads(entries["header.json"])
        header["parameters"] |= changes
        entries["header.json"] = json.dumps(header).encode()

    return change


def with_array(name: str, edit: Any) -> Any:
    def change(entries: dict[str, bytes]) -> None:
        import io

        array = edit(np.load(io.BytesIO(entries[f"{name}.npy"])))
        buffer = io.BytesIO()
        np.save(buffer, array)
        entries[f"{name}.npy"] = buffer.getvalue()

    return change


def fill(value: float) -> Any:
    return lambda array: np.full_like(array, value)


INVALID: list[tuple[str, Any, str]] = [
    (
        "locb",
        with_header(version=99),
        r"was saved by a newer locb \(format 99\); this version reads format 3: upgrade locb",
    ),
    (
        "locb",
        with_header(version=1),
        r"an older locb \(format 1\); this version reads format 3: train the policy again or replay its events",
    ),
    ("locb", with_header(version="one"), "is damaged: its format version is 'one', not an integer above 0"),
    ("locb", with_header(format="recipe"), "is not a saved policy"),
    (
        "locb",
        with_header(policy="Oracle"),
        "has a policy of the unknown class 'Oracle'; the built-in classes are CAB, CLUB, DynUCB, ELOC, HybridLinUCB, ",
    ),
    ("locb", with_header(parameters={"n_users": 12}), "is damaged: 'dim' is missing"),
    ("locb", with_header(parameters={"n_users": 12, "dim": 3, "speed": 9}), "is damaged: .*speed"),
    ("locb", with_header(parameters=7), "is damaged"),
    ("locb", lambda entries: entries.pop("sums.npy"), "is damaged: the file has the arrays"),
    ("locb", lambda entries: entries.pop("header.json"), "is not a saved policy, or is damaged"),
    ("locb", with_parameters(n_users=10**9), "header specifies 1000000000 users and 3 features, but the arrays have"),
    ("locb", with_parameters(dim=30_000), "header specifies 12 users and 30000 features, but the arrays have"),
    ("locb", with_parameters(gamma=10**400), "gamma must be a number"),
    (
        "locb",
        with_array("added_at", lambda a: a[:-1]),
        r"array 'added_at' is int64 of shape \(11,\), not int64 of shape \(12,\)",
    ),
    ("locb", with_array("served", lambda a: a.astype(np.int32)), "array 'served' is int32"),
    ("locb", with_array("served", fill(2**62)), "array 'served' is invalid or inconsistent"),
    ("locb", with_array("estimates", fill(np.nan)), "array 'estimates' is invalid or inconsistent"),
    ("locb", with_array("members", fill(2**63)), "array 'members' is invalid or inconsistent"),
    ("locb", with_array("members", fill(0)), "array 'members' is invalid or inconsistent"),
    ("locb", with_array("returned", fill(10_000)), "array 'returned' is invalid or inconsistent"),
    ("locb", with_array("added_at", fill(-1)), "array 'added_at' is invalid or inconsistent"),
    ("locb", with_array("generator", fill(0)), "array 'generator' is invalid or inconsistent"),
    ("locb", with_array("int_params", fill(-50)), "is invalid or inconsistent with the other arrays"),
    (
        "club",
        with_array("component", fill(-5)),
        f"array 'component' has values from -5 to -5, but the allowed values are from 0 to {N - 1}",
    ),
    ("club", with_array("neighbour_bits", fill(2**63)), "array 'neighbour_bits' is invalid or inconsistent"),
    ("club", with_array("cluster_estimates", fill(np.inf)), "array 'estimates' is invalid or inconsistent"),
    (
        "club",
        with_array("neighbour_bits", lambda a: a ^ (np.arange(N) == 0)[:, None].astype(np.uint64)),
        "array 'neighbour_bits' is invalid or inconsistent",
    ),
    (
        "club",
        with_array("edges", lambda a: np.zeros((1, 2), np.int32)),
        r"array 'edges' is int32 of shape \(1, 2\), not",
    ),
    ("club", with_array("component", lambda a: np.zeros_like(a)), "array 'component' is invalid or inconsistent"),
    (
        "club-random",
        with_array("component", lambda a: np.zeros_like(a)),
        "array 'component' is invalid or inconsistent",
    ),
    (
        "club-random",
        with_array("int_params", lambda a: a + np.array([0, 1, 0, 0])),
        "array 'int_params' is invalid or inconsistent",
    ),
    ("club-random", with_array("edges", lambda a: a.astype(np.int64)), r"array 'edges' is int64"),
    (
        "club-random",
        with_array("edges", fill(N)),
        f"array 'edges' must connect a lower to a higher user, both from 0 to {N - 1}",
    ),
    ("club-random", with_array("edges", lambda a: a[:, ::-1]), "array 'edges' must connect a lower to a higher user"),
    (
        "club-random",
        with_array("edges", lambda a: np.concatenate([a, a])),
        "array 'edges' must be sorted by the higher, then by the lower user, without duplicates",
    ),
    ("club-random", lambda entries: entries.pop("edges.npy"), "is damaged: the array 'edges' is missing"),
    ("sclub", with_array("links", fill(0)), "array 'links' is invalid or inconsistent"),
    ("sclub", with_array("links", fill(-1)), "array 'links' has values from -1 to -1"),
    ("sclub", with_array("unchecked", fill(99)), "array 'unchecked' is invalid or inconsistent"),
    ("sclub", with_array("queued", fill(7)), "array 'queued' has values from 7 to 7"),
    ("sclub", with_array("slot", fill(N)), f"array 'slot' has values from {N} to {N}"),
    ("sclub", with_array("int_params", fill(300)), "array 'int_params' is invalid or inconsistent"),
    ("sclub", with_array("sizes", fill(1)), "array 'sizes' is invalid or inconsistent"),
    ("eloc", with_parameters(dim=30_000), "header specifies 12 users and 30000 features, but the arrays have"),
    (
        "eloc",
        with_array("user_neighbourhoods", fill(-2)),
        "has values from -2 to -2, but the allowed values are from -1 to",
    ),
    (
        "eloc",
        with_array("user_neighbourhoods", fill(2_000_000_000)),
        "array 'user_neighbourhoods' is invalid or inconsistent",
    ),
    ("eloc", with_array("neighbourhood_ids", fill(3)), "array 'neighbourhood_ids' is invalid or inconsistent"),
    ("eloc", with_array("seeds", fill(3)), "array 'seeds' is invalid or inconsistent"),
    ("eloc", with_array("seed_of", fill(-1)), "array 'seed_of' is invalid or inconsistent"),
    ("eloc", with_array("user_neighbourhoods", fill(-1)), "array 'weights' is invalid or inconsistent"),
    ("eloc", with_array("weights", fill(1.5)), "array 'weights' is invalid or inconsistent"),
    ("eloc", with_array("prior_weights", fill(0.0)), "array 'prior_weights' is invalid or inconsistent"),
    ("eloc", with_array("learned_scalars", fill(-1.0)), "array 'learned_scalars' is invalid or inconsistent"),
    ("eloc", with_array("variance_levels", fill(10**9)), "array 'variance_levels' is invalid or inconsistent"),
    ("eloc", with_array("pooled_sums", fill(np.nan)), "array 'estimates' is invalid or inconsistent"),
    (
        "eloc",
        with_array("int_params", lambda a: a + np.array([0, 1, 0, 0, 0])),
        "array 'int_params' is invalid or inconsistent",
    ),
]


@pytest.mark.parametrize(("kind", "change", "message"), INVALID)
def test_invalid_files(kind: str, change: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.locb"
    make(kind).save(path)
    rewrite(path, change)
    with pytest.raises(ValueError, match=message):
        locb.load(path)


def test_object_arrays_are_not_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "policy.locb"
    make("locb").save(path)
    rewrite(path, with_array("served", lambda a: np.array([{"a": 1}], dtype=object)))
    with pytest.raises(ValueError, match=r"damaged: .*Python objects"):
        locb.load(path)


def test_damage_anywhere_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "policy.locb"
    make("locb").save(path)
    intact = path.read_bytes()
    expected = state_of(locb.load(path))
    rng = np.random.default_rng(11)
    for position in rng.integers(len(intact), size=150).tolist():
        damaged = bytearray(intact)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            loaded = locb.load(path)
        except ValueError:
            continue
        assert state_of(loaded) == expected, position  # a byte that is not used, such as a date
    for length in (0, 10, len(intact) // 2, len(intact) - 1):
        path.write_bytes(intact[:length])
        with pytest.raises(ValueError, match="damaged"):
            locb.load(path)


def define_subclass() -> type[locb.LOCB]:
    """Return a subclass of LOCB that has the name of its base class."""

    class LOCB(locb.LOCB):
        pass

    return LOCB


def test_subclass_with_the_name_of_a_built_in_policy_does_not_replace_it(tmp_path: Path) -> None:
    subclass = define_subclass()
    make("locb").save(tmp_path / "built-in.locb")
    subclass(n_users=4, dim=2).save(tmp_path / "custom.locb")
    assert type(locb.load(tmp_path / "built-in.locb")) is locb.LOCB
    assert type(locb.load(tmp_path / "custom.locb")) is subclass


def test_policy_of_an_undefined_class_is_refused_by_its_full_name(tmp_path: Path) -> None:
    define_subclass()(n_users=4, dim=2).save(tmp_path / "policy.locb")
    script = f"import locb; locb.load({str(tmp_path / 'policy.locb')!r})"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    message = done.stderr.splitlines()[-1]
    full_name = f"{__name__}:define_subclass.<locals>.LOCB"
    assert f"has a policy of the class '{full_name}', which is not defined in this process" in message
    assert f"import {__name__} before loading" in message


def test_file_of_a_class_whose_parameters_changed_is_not_called_damaged(tmp_path: Path) -> None:
    subclass = define_subclass()
    subclass(n_users=4, dim=2).save(tmp_path / "policy.locb")
    rewrite(tmp_path / "policy.locb", with_parameters(speed=9))
    with pytest.raises(ValueError, match=r"does not match its class '.*LOCB': .*speed.*version of the class that"):
        locb.load(tmp_path / "policy.locb")


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"Folder does not exist: '.*/nowhere'"):
        make("locb", 0).save(tmp_path / "nowhere" / "policy.locb")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        locb.load(tmp_path / "nothing")
    assert missing.value.filename == str(tmp_path / "nothing")
