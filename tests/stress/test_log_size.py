"""Disk space of the log per decision. It is the same in every run, so it has a limit."""

from typing import Any

import pytest

from service.conftest import postgres, store
from stress.log_size import SHAPES, log_size

MAX_BYTES = 1_200
DEFAULT_POLICY = "eloc"
__all__ = ["postgres", "store"]


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.arms == 2 and shape.policy == DEFAULT_POLICY])
def test_bytes_per_decision(store: Any, shape: Any) -> None:
    figures = log_size(store, shape)
    assert figures["bytes per decision"] <= MAX_BYTES
