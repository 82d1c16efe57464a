"""What the compiled policies share: checked calls of a kernel, and files."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.rounds import Rounds, check_array
from locb.kernels.common import explanation as explaining
from locb.kernels.common.linear_algebra import packed_size
from locb.policies.base import serialization as storage
from locb.policies.base.checkpoints import BufferPool, Checkpoint
from locb.policies.base.explanations import Explanation, ScoringRow
from locb.policies.base.inspectable import InspectablePolicy
from locb.policies.base.validation import MAX_REWARDS, TIE_RULES, check_float
from locb.policies.state.user_rows import skip_row_initialization


class CompiledPolicy(InspectablePolicy):
    """A policy whose rounds run in a compiled kernel on a state of plain arrays.

    A subclass names its kernel module (with ``recommend``, ``update`` and ``play`` on a state), builds its state in
    ``__init__`` and remembers in ``_parameters`` what it was built with.
    """

    _kernel: ClassVar[Any]
    _kinds: ClassVar[dict[str, type[CompiledPolicy]]] = {}
    # The array of the state that has d + p numbers a user.
    _rows: ClassVar[str] = "estimates"
    # Arrays with a row a user, and rows for users to come after those; and arrays that a file does not hold.
    _user_rows: ClassVar[tuple[str, ...]] = ()
    _not_saved: ClassVar[tuple[str, ...]] = ()
    # Where the state holds parameters: a file cannot change these behind the back of the constructor's checks.
    _settings: ClassVar[dict[str, slice]] = {}

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        CompiledPolicy._kinds[cls.__name__] = cls

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._parameters.items())})"

    def recommend(self, user: int, contexts: Any) -> int:
        """The arm to show this user: a row of ``contexts`` (k, d). Changes nothing that was learned."""
        user, contexts = self._check_choice(user, contexts)
        return self._check_arm(self._kernel.recommend(self._state, user, contexts), user, contexts)

    def explain(self, user: int, contexts: Any) -> Explanation:
        """What ``recommend`` gives, in its place, with what each arm is worth and whose rewards say so."""
        user, contexts = self._check_choice(user, contexts)
        lent = self._scoring_row(user)
        if lent is None:
            return super().explain(user, contexts)
        rows, row, alpha, factor, sources = lent
        estimate, bonus = np.empty(len(contexts)), np.empty(len(contexts))
        ties = TIE_RULES[self._parameters["ties"]]
        arm = explaining.explain(rows, row, contexts, alpha, factor, ties, self._state.generator, estimate, bonus)
        self._check_arm(arm, user, contexts)
        return Explanation(arm, estimate, bonus, rows[row, : self._dim].astype(np.float64), sources)

    def _check_choice(self, user: Any, contexts: Any) -> tuple[int, Floats]:
        """User and contexts as the kernels take them, but for what only they look at: the contexts' numbers."""
        if type(user) is not int or not 0 <= user < self._n_users:
            user = self.check_user(user)
        if not _is_plain(contexts, 2) or contexts.shape[1] != self._dim or len(contexts) == 0:
            contexts = check_array("contexts", contexts, (None, self._dim))
            if len(contexts) == 0:
                raise ValueError("contexts must hold at least one arm")
        return user, contexts

    def _check_arm(self, arm: int, user: int, contexts: Floats) -> int:
        """The arm from a kernel, or the reason why there is none."""
        if arm < 0:
            check_array("contexts", contexts, (None, self._dim))
            raise ArithmeticError(f"the scores of user {user} are not numbers")
        return arm

    def _scoring_row(self, user: int) -> ScoringRow | None:  # noqa: ARG002 - told by subclasses
        """The row that serves this user now; None where a policy has no such row."""
        return None

    def update(self, user: int, context: Any, reward: float) -> None:
        """Learn what showing ``context`` (d,) to this user earned."""
        if type(user) is not int or not 0 <= user < self._n_users:
            user = self.check_user(user)
        if not _is_plain(context, 1) or len(context) != self._dim:
            context = check_array("context", context, (self._dim,))
        largest = MAX_REWARDS[self._parameters["dtype"]]
        if type(reward) is not float or not -largest <= reward <= largest:
            reward = check_float("reward", reward, -largest, largest)
        if not self._kernel.update(self._state, user, context, reward):
            check_array("context", context, (self._dim,))

    def correct(self, user: int, context: Any, learned: float, reward: float) -> None:
        """Make good that ``context``, learned with the reward ``learned``, turns out to have earned ``reward``.

        Estimates become what they would be with the right reward: b moves by (reward − learned) x, and all that rests
        on it follows. No round is counted, and groups stay as they are until the tests of the next rounds.
        """
        user = self.check_user(user)
        context = check_array("context", context, (self._dim,))
        largest = MAX_REWARDS[self._parameters["dtype"]]
        learned = check_float("learned", learned, -largest, largest)
        reward = check_float("reward", reward, -largest, largest)
        if self._state.served[user] == 0:
            raise ValueError(f"user {user} was never served: there is no reward to correct")
        self._move_sums(user, (reward - learned) * context)

    def _move_sums(self, user: int, change: Floats) -> None:  # noqa: ARG002 - told by subclasses
        """Add ``change`` (d,) to b of this user, and to all that rests on it."""
        raise TypeError(f"{type(self).__name__} does not say how a reward is corrected: give it a correct method")

    def play(self, rounds: Rounds) -> Ints:
        """Recommend and update, round by round, in one compiled loop; the arms chosen: (T,)."""
        self.check_rounds(rounds)
        if self._parameters["dtype"] == "float32" and len(rounds):
            check_array("rewards", rounds.rewards, (None, None), MAX_REWARDS["float32"])
        chosen = np.empty(len(rounds), dtype=np.int64)
        self._kernel.play(self._state, rounds.users, rounds.contexts, rounds.rewards, chosen)
        return chosen

    def prepare(self) -> None:
        """Compile, or load what was compiled before: a play of no rounds."""
        self.play(Rounds(np.empty(0, np.int64), np.empty((0, 1, self._dim)), np.empty((0, 1))))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file; ``locb.load`` gives back one that goes on exactly as this one would."""
        storage.write(path, self._header(), self._arrays())

    def checkpoint(self, room: BufferPool | None = None) -> Checkpoint:
        """A copy of what ``save`` would write now, to be written later, by another thread if need be.

        With a ``room`` the copy is made there, and no longer holds when the next one is made in it.
        """
        arrays, state = self._arrays(), self._state._asdict()
        shared = [name for name, array in arrays.items() if name in state and np.may_share_memory(array, state[name])]
        copy = (room or BufferPool()).copy
        return Checkpoint(self._header(), arrays | {name: copy(name, arrays[name]) for name in shared})

    def make_room(self, room: BufferPool) -> None:
        """Have memory ready in it for a checkpoint, also of the users for whom there is room already."""
        room.make(self._state._asdict())

    def _header(self) -> dict[str, Any]:
        return {"policy": type(self).__name__, "parameters": dict(self._parameters)}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """What a file holds of the state, in the shapes that a new policy of the same parameters has."""
        arrays: dict[str, NDArray[Any]] = self._state._asdict()
        users = slice(self._n_users)
        return {
            name: array[users] if name in self._user_rows else array
            for name, array in arrays.items()
            if name not in self._not_saved
        }

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over a saved state, or raise a ValueError."""
        blank = {name: a for name, a in self._state._asdict().items() if name not in self._not_saved}
        if arrays.keys() != blank.keys():
            raise ValueError(f"its arrays are {sorted(arrays)}, not {sorted(blank)}")
        for name, array in arrays.items():
            if array.shape != blank[name].shape or array.dtype != blank[name].dtype:
                want = f"{blank[name].dtype} of shape {blank[name].shape}"
                raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not {want}")
        for name, (low, high) in self._index_limits().items():
            values = arrays[name]
            if values.size and not low <= values.min() <= values.max() < high:
                raise ValueError(f"{name} holds {values.min()} … {values.max()}, outside {low} … {high - 1}")
        for name, part in self._settings.items():
            arrays[name][part] = blank[name][part]
        state = self._state._replace(**{name: np.ascontiguousarray(array) for name, array in arrays.items()})
        for name, fine in self._consistency(state).items():
            if not fine:
                raise ValueError(f"{name} contradicts the rest of the file")
        self._state = state
        self._rebuild_derived()

    def _rebuild_derived(self) -> None:
        """Work out what a file does not hold from the state that was read."""

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        """Arrays of indices in the state and the range each must stay in, so that no file can point outside."""
        return {}

    def _consistency(self, state: Any) -> dict[str, bool]:
        """Arrays of a state that was read, and whether each fits the others."""
        floats = [array for array in state if array.dtype.kind == "f" and array is not state.float_params]
        return {
            "served": bool((state.served >= 0).all()) and int(state.served.sum()) == int(state.int_params[0]),
            "estimates": all(bool(np.isfinite(array).all()) for array in floats),
            "generator": bool(state.generator[0] != 0),
        }


def _is_plain(array: Any, ndim: int) -> bool:
    """Whether the kernels take this array as it is."""
    return type(array) is np.ndarray and array.dtype == np.float64 and array.ndim == ndim and array.flags.carray


def new_generator(rng: np.random.Generator) -> NDArray[np.uint64]:
    """The state of a kernel's own generator: one odd word, never zero."""
    return rng.integers(0, 2**64, size=1, dtype=np.uint64) | np.uint64(1)


def load(path: str | os.PathLike[str]) -> CompiledPolicy:
    """Read a policy that was saved.

    Raises
    ------
    ValueError
        If the file is damaged, is something else, or comes from a newer version.
    """
    header, arrays = storage.read(path)
    kind = CompiledPolicy._kinds.get(str(header.get("policy")))
    if kind is None:
        known = ", ".join(sorted(CompiledPolicy._kinds))
        raise ValueError(f"{path} holds a policy of kind {header.get('policy')!r}; known are {known}")
    try:
        parameters = header["parameters"]
        n_users, dim = len(arrays["served"]), parameters["dim"]
        # Before anything of the size that the header claims is made, the arrays must bear it out.
        if parameters["n_users"] != n_users or arrays[kind._rows].shape[1] != dim + packed_size(dim):
            raise ValueError(f"its header claims {parameters['n_users']} users and {dim} features, its arrays differ")
        with skip_row_initialization():
            policy = kind(**parameters)
        policy._restore(arrays)
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError, MemoryError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    return policy
