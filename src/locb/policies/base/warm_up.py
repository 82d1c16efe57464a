"""Calls of all methods of a policy that have a kernel, so that the kernels are compiled before their first use."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from locb.evaluation.clusters import Cluster
from locb.policies.base.capabilities import (
    SupportsCertificates,
    SupportsCorrection,
    SupportsEstimates,
    SupportsNewUsers,
    SupportsSimilarUsers,
    UnavailableError,
    explainer,
)
from locb.policies.base.policy import Policy

_log = logging.getLogger("locb.policies")


def call_methods(policy: Policy) -> None:
    """Call all methods of an untrained policy that have a kernel, so that the kernels are compiled."""
    policy.prepare()
    context = np.zeros(policy.dim)
    context[0] = 1.0
    explainer(policy)([0], [np.array([context, context])])
    policy.update(0, context, 1.0)
    if isinstance(policy, SupportsNewUsers):
        policy.add_users(1)
    user = policy.n_users - 1
    if isinstance(policy, SupportsCorrection):
        _try("correct", policy.correct, 0, context, 1.0, 0.0)
    if isinstance(policy, SupportsEstimates):
        _try("estimate", policy.estimate, user)
    if isinstance(policy, SupportsSimilarUsers):
        _try("similar_users", policy.similar_users, user)
    if isinstance(policy, SupportsCertificates):
        for cluster in policy.clusters()[:1]:
            _try("certifier", _certify, policy, cluster)


def _certify(policy: SupportsCertificates, cluster: Cluster) -> None:
    for exact in (True, False):
        policy.certifier(cluster)(exact)


def _try(name: str, method: Callable[..., Any], *arguments: Any) -> None:
    """Call a method of a policy. An error is only logged, because later calls may succeed."""
    try:
        method(*arguments)
    except UnavailableError:
        pass
    except Exception:
        _log.exception("warm-up: the method %s() of the policy failed", name)
