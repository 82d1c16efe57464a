"""Whether a decision rested on others like the user: one of its sources is a group of more than one user."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from locb.policies import EvidenceSource as PolicyEvidenceSource
from locb.service.schemas import EvidenceSource

GROUPS = ("cluster", "component", "neighbourhood")


class _Lenders(msgspec.Struct):
    sources: list[EvidenceSource]


class _Answer(msgspec.Struct):
    explanation: _Lenders | None


_decode = msgspec.json.Decoder(_Answer).decode


def by_group(sources: Iterable[PolicyEvidenceSource | EvidenceSource] | None) -> bool:
    """Whether one of the sources is a group of more than one user."""
    for one in sources or ():  # noqa: SIM110 - this is asked of every decision, and a generator takes three times as long
        if one.kind in GROUPS and one.users is not None and one.users > 1:
            return True
    return False


def told_by_group(answer: bytes) -> bool:
    """The same of an answer, as it was told."""
    explanation = _decode(answer).explanation
    return explanation is not None and by_group(explanation.sources)
