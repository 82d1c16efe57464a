"""Capabilities: a policy has the methods of the capabilities that it supports, and no other optional methods."""

from typing import Any

import numpy as np
import pytest

import locb
from locb.policies.base import capabilities
from locb.policies.base.capabilities import UnavailableError
from policies.helpers import CORRECTED, KINDS, Popular, make

PROTOCOLS = [
    capabilities.SupportsExplain,
    capabilities.SupportsCorrection,
    capabilities.SupportsSnapshot,
    capabilities.SupportsCertificates,
    capabilities.SupportsSimilarUsers,
    capabilities.SupportsNewUsers,
    capabilities.SupportsEstimates,
]


@pytest.mark.parametrize("kind", KINDS)
def test_the_built_in_policies_support_everything(kind: str) -> None:
    policy = make(kind, 0)
    missing = [protocol for protocol in PROTOCOLS if not isinstance(policy, protocol)]
    assert missing == ([] if kind in CORRECTED else [capabilities.SupportsCorrection])


def test_a_custom_policy_supports_what_it_defines() -> None:
    assert not any(isinstance(Popular(n_users=2, dim=2), protocol) for protocol in PROTOCOLS)

    class Growing(Popular):
        def add_users(self, count: int) -> None:
            self._n_users += count

    policy = Growing(n_users=2, dim=2)
    supported = [protocol for protocol in PROTOCOLS if isinstance(policy, protocol)]
    assert supported == [capabilities.SupportsNewUsers]
    assert not hasattr(policy, "save")


def test_what_depends_on_parameters_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match="certificates need one estimate per user"):
        make("linucb-one").certificate([0, 1])
    with pytest.raises(UnavailableError, match="certificates need estimates from the rewards of each user alone"):
        make("cab").certificate([0, 1])
    fading = make("eloc", memory=50.0)
    with pytest.raises(UnavailableError, match="memory must be None, not 50.0"):
        fading.certificate([0, 1])
    with pytest.raises(UnavailableError, match=r"rewards cannot be corrected with memory=50\.0"):
        fading.correct(0, np.ones(3), 1.0, 0.0)
    with pytest.raises(UnavailableError, match="memory must be None, not 'auto'"):
        make("eloc", memory="auto").certificate([0, 1])
    assert issubclass(UnavailableError, ValueError)


def test_an_estimate_fills_the_batch_of_a_custom_policy() -> None:
    class Estimating(Popular):
        def estimate(self, user: int) -> Any:
            return locb.Estimate(np.full(self.dim, float(user)), 0.0, user)

    batch = Estimating(n_users=4, dim=2).user_batch(np.array([3, 1]))
    assert batch.theta.tolist() == [[3.0, 3.0], [1.0, 1.0]]
    assert batch.served.tolist() == [3, 1]
