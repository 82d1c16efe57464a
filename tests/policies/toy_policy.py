"""Example of a complete policy in one file, like the compiled policies, but with a kernel in plain Python."""

from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from locb.kernels.common.handles import CHOOSE, LEARN
from locb.kernels.common.linear_algebra import packed_size
from locb.policies.base.compiled import CompiledPolicy, new_generator
from locb.policies.parameters import Dim, Dtype, NUsers, Parameter, Seed, validate_parameters

Optimism = Annotated[float, Parameter("Score of a feature that no user has seen.", minimum=0.0)]


class ToyState(NamedTuple):
    estimates: Any  # (n, d + d (d + 1) / 2): sum of reward · context of each user, in the first d columns
    served: Any
    int_params: Any
    float_params: Any
    generator: Any


class ToyScratch(NamedTuple):
    scores: Any


def allocate_scratch(state: ToyState, n_arms: int, dim: int) -> ToyScratch:
    return ToyScratch(np.empty(n_arms))


def run_rounds(
    state: ToyState, scratch: ToyScratch, steps: int, users: Any, contexts: Any, rewards: Any, chosen: Any
) -> None:
    dim = contexts.shape[2]
    for t, user in enumerate(users):
        if steps & CHOOSE:
            scratch.scores[:] = contexts[t] @ (state.estimates[user, :dim] + state.float_params[0])
            chosen[t] = np.argmax(scratch.scores) if np.isfinite(scratch.scores).all() else -1
        if steps & LEARN:
            state.estimates[user, :dim] += rewards[t, chosen[t]] * contexts[t, chosen[t]]
            state.served[user] += 1
            state.int_params[0] += 1


class Toy(CompiledPolicy):
    """Policy that chooses the arm with the largest product with the user's sum of reward · context."""

    _kernel: ClassVar[Any] = SimpleNamespace(allocate_scratch=allocate_scratch, run_rounds=run_rounds)
    _user_rows: ClassVar[tuple[str, ...]] = ("estimates", "served")
    _settings: ClassVar[dict[str, slice]] = {"float_params": slice(None)}

    @validate_parameters
    def __init__(
        self, *, n_users: NUsers, dim: Dim, optimism: Optimism = 0.5, dtype: Dtype = "float64", seed: Seed = 0
    ) -> None:
        super().__init__(n_users=n_users, dim=dim)
        self._state = ToyState(
            estimates=np.zeros((n_users, dim + packed_size(dim)), dtype),
            served=np.zeros(n_users, np.int64),
            int_params=np.zeros(1, np.int64),
            float_params=np.array([optimism]),
            generator=new_generator(np.random.default_rng(seed)),
        )

    def add_users(self, count: int) -> None:
        """Add ``count`` users."""
        state = self._state
        self._state = state._replace(
            estimates=np.concatenate(
                [state.estimates, np.zeros_like(state.estimates, shape=(count, state.estimates.shape[1]))]
            ),
            served=np.concatenate([state.served, np.zeros(count, np.int64)]),
        )
        self._n_users = self._parameters["n_users"] = self._n_users + count
