"""Checkpoints: the file of a checkpoint equals that of ``save``, even if the policy learns in between."""

from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import locb
from locb.policies.base import checkpoints
from policies.helpers import DIM, KINDS, N, make, make_rounds


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoint_equals_the_saved_file(kind: str, tmp_path: Path) -> None:
    policy = make(kind)
    policy.add_users(3)
    policy.update(N + 2, np.full(DIM, 0.3), 1.0)
    policy.save(tmp_path / "saved")
    checkpoint = policy.checkpoint()
    policy.play(make_rounds(200, seed=2))
    policy.add_users(40)
    policy.update(N + 40, np.full(DIM, 0.3), 1.0)
    policy.save(tmp_path / "later")
    writer = Thread(target=checkpoint.save, args=(tmp_path / "checkpoint",))
    writer.start()
    policy.play(make_rounds(200, seed=3))
    writer.join()
    assert (tmp_path / "checkpoint").read_bytes() == (tmp_path / "saved").read_bytes()
    assert (tmp_path / "later").read_bytes() != (tmp_path / "saved").read_bytes()
    assert locb.load(tmp_path / "checkpoint").n_users == N + 3


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoint_shares_no_memory(kind: str) -> None:
    policy = make(kind)
    for name, array in policy.checkpoint()._arrays.items():
        assert not any(np.shares_memory(array, own) for own in policy._state), name


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_reuse_buffers(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MIN_POOLED_BYTES", 1)
    policy, buffers = make(kind), checkpoints.BufferPool()
    for step in range(3):
        policy.reserve(buffers)
        reserved = dict(buffers._buffers)
        policy.add_users(40 * step)  # first within the reserved buffers, then beyond them
        policy.play(make_rounds(100, seed=step))
        policy.save(tmp_path / "saved")
        checkpoint = policy.checkpoint(buffers)
        policy.play(make_rounds(100, seed=9))
        checkpoint.save(tmp_path / "checkpoint")
        assert (tmp_path / "checkpoint").read_bytes() == (tmp_path / "saved").read_bytes()
        used = [
            np.shares_memory(array, memory) for array in checkpoint._arrays.values() for memory in reserved.values()
        ]
        assert any(used)
        assert not any(np.shares_memory(array, own) for array in checkpoint._arrays.values() for own in policy._state)
