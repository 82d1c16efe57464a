"""Model of a recommender: the name, dimension and parameters from which its policy is created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

from locb.policies.base.capabilities import SupportsNewUsers
from locb.policies.base.policy import ServablePolicy
from locb.policies.registry import policy_spec


@dataclass(frozen=True, slots=True)
class Model:
    """Name, dimension and parameters of a policy. Model and event log together determine the state of the policy."""

    policy: str
    dim: int  # number of features per arm
    initial_users: int  # number of user indices of the untrained policy
    parameters: dict[str, Any]

    @classmethod
    def create(cls, policy: str, dim: int, parameters: Mapping[str, Any]) -> Self:
        """Return a model with the defaults of a service for parameters that are not given.

        Raises
        ------
        ValueError
            If no policy has this name, or a parameter is set by the service itself.
        """
        spec = policy_spec(policy)
        complete = spec.service_parameters(parameters)
        return cls(policy, dim, spec.initial_capacity(complete), complete)

    def build(self) -> ServablePolicy:
        """Return the untrained policy.

        Raises
        ------
        ValueError
            If the policy rejects the dimension or a parameter, or does not accept new users.
        """
        spec = policy_spec(self.policy)
        policy = spec.make_for_service(n_users=self.initial_users, dim=self.dim, parameters=self.parameters)
        if not isinstance(policy, SupportsNewUsers):
            reason = "it has no method add_users(), with which unknown users are created; implement add_users()"
            raise ValueError(f"policy {self.policy!r} cannot be served: {reason}")
        return cast(ServablePolicy, policy)
