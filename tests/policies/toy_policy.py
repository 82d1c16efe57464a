"""Example of a complete policy in one file, like the compiled policies, but with a kernel of plain Python functions."""

from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

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


def recommend(state: ToyState, user: int, contexts: Any) -> int:
    sums = state.estimates[user, : contexts.shape[1]] + state.float_params[0]
    scores = contexts @ sums
    return int(np.argmax(scores)) if np.isfinite(scores).all() else -1


def update(state: ToyState, user: int, context: Any, reward: float) -> bool:
    if not np.isfinite(context).all():
        return False
    state.estimates[user, : len(context)] += reward * context
    state.served[user] += 1
    state.int_params[0] += 1
    return True


def play(state: ToyState, users: Any, contexts: Any, rewards: Any, chosen: Any) -> None:
    for t, user in enumerate(users):
        chosen[t] = recommend(state, user, contexts[t])
        update(state, user, contexts[t, chosen[t]], rewards[t, chosen[t]])


class Toy(CompiledPolicy):
    """Policy that chooses the arm with the largest product with the user's sum of reward · context."""

    _kernel: ClassVar[Any] = SimpleNamespace(recommend=recommend, update=update, play=play)
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
