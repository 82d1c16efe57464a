"""The policies by name."""

from collections.abc import Callable
from functools import partial
from typing import Any

from locb.policies.base.checkpoints import Checkpoint
from locb.policies.base.compiled import CompiledPolicy, load
from locb.policies.base.explanations import Estimate, EvidenceSource, Explanation
from locb.policies.base.policy import Policy
from locb.policies.club import CLUB
from locb.policies.eloc import ELOC
from locb.policies.linucb import LinUCB
from locb.policies.locb import LOCB
from locb.policies.sclub import SCLUB

__all__ = [
    "CLUB",
    "ELOC",
    "LOCB",
    "POLICIES",
    "SCLUB",
    "Checkpoint",
    "CompiledPolicy",
    "Estimate",
    "EvidenceSource",
    "Explanation",
    "LinUCB",
    "Policy",
    "load",
    "make_policy",
]

# What a name stands for; add to it to give a policy of one's own a name.
POLICIES: dict[str, Callable[..., Policy]] = {
    "locb": LOCB,
    "linucb-one": partial(LinUCB, shared=True),
    "linucb-ind": partial(LinUCB, shared=False),
    "club": CLUB,
    "sclub": SCLUB,
    "eloc": ELOC,
}


def make_policy(name: str, **parameters: Any) -> Policy:
    """A policy by its name in ``POLICIES``.

    Examples
    --------
    >>> make_policy("linucb-one", n_users=2, dim=3).dim
    3
    """
    if name not in POLICIES:
        raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {name!r}")
    return POLICIES[name](**parameters)
