"""Base classes of policies whose rounds run in a compiled kernel. Symbols are defined in ``locb.kernels``."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.rounds import Rounds
from locb.common.validation import MAX_REWARD, check_array, check_choices, check_float
from locb.evaluation.clusters import Membership
from locb.kernels.common import arm_scoring, thompson_sampling
from locb.kernels.common.batch_choice import choose_arms, thread_count
from locb.kernels.common.handles import CHOOSE, FAILED, LEARN, LEARNED, NO_HANDLE, Handle, NoHandle
from locb.policies.base.explanations import EvidenceSource, Explanation
from locb.policies.base.persistence import PersistentPolicy
from locb.policies.base.policy import single_arm_rounds
from locb.policies.parameters import MAX_REWARDS, TIE_RULES

MAX_SCRATCH_BYTES = 1 << 24  # beyond this total scratch of all handles, a policy keeps only the newest handle
_ARRAY, _FLOAT64 = np.ndarray, np.dtype(np.float64)


class CompiledPolicy(PersistentPolicy):
    """Base class of policies whose rounds run in a compiled kernel, on a state of plain arrays.

    A subclass sets ``_kernel`` to its kernel module. The module has the functions ``run_rounds`` and
    ``allocate_scratch`` (see ``locb.kernels.common.handles``). The ``__init__`` of the subclass is decorated with
    ``validate_parameters`` and sets ``_state`` to a named tuple of arrays.
    """

    _kernel: ClassVar[Any]
    _readonly_state: Any  # the arrays, for code that only reads them; see ``_state``
    _handle: Handle | NoHandle = NoHandle()  # the handle of the last call
    _handles: dict[int, Handle]  # by number of arms

    @property
    def _state(self) -> Any:
        """The arrays of the policy, a named tuple. Setting it discards all handles, which own the previous arrays.

        Code that changes the arrays must read this attribute after the last call of ``recommend``, because ``update``
        uses results of ``recommend`` unless the attribute was read in between.
        """
        self._handle.forget()
        return self._readonly_state

    @_state.setter
    def _state(self, state: Any) -> None:
        self._readonly_state = state
        self._discard_handles()

    def _discard_handles(self) -> None:
        self.__dict__.pop("_handle", None)
        self.__dict__.pop("_handles", None)

    def __copy__(self) -> Self:
        """Return an independent copy: two policies with the same arrays could have different numbers of users."""
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes that a copy or pickle contains: all but the handles, which contain addresses."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_handle", "_handles")}

    def _handle_for(self, n_arms: int) -> Handle:
        """Return a handle for rounds with ``n_arms`` arms, and use it for further calls of the same shape."""
        limit = MAX_REWARDS[self._parameters["dtype"]]
        handles: dict[int, Handle] = self.__dict__.setdefault("_handles", {})
        handle = handles.get(n_arms)
        if handle is None:
            other = next(iter(handles.values()), None)
            handle = Handle(self._kernel, self._state, n_arms, self._dim, limit, other)
            if handle.scratch_bytes + sum(known.scratch_bytes for known in handles.values()) > MAX_SCRATCH_BYTES:
                handles.clear()
            handles[n_arms] = handle
        handle.forget()
        self._handle = handle
        return handle

    def recommend(self, user: int, contexts: Any) -> int:
        """Return the arm to show a user. Does not change what the policy has learned.

        Parameters
        ----------
        user : int
            The user, from 0 to ``n_users`` − 1.
        contexts : (k, d) array_like
            The d = ``dim`` features of each of k arms, at least one. Absolute values are at most 1e6.

        Returns
        -------
        int
            Index of the chosen arm, a row of ``contexts``: the arm with the highest score, unless a safety screen
            replaces it. The parameter ``ties`` decides among arms with equal scores.

        Raises
        ------
        ValueError
            If an argument is invalid.
        ArithmeticError
            If all scores are NaN, for example after extremely large rewards.
        """
        is_plain = type(contexts) is _ARRAY and contexts.dtype is _FLOAT64 and contexts.ndim == 2
        if is_plain and type(user) is int and 0 <= user < self._n_users:
            handle = self._handle
            arm = handle.recommend(handle.address, user, contexts)
            if arm >= 0:
                return arm
            if arm == FAILED:
                return self._check_arm(arm, user, contexts)
        return self._recommend_converted(*self._check_choice(user, contexts))

    def _recommend_converted(self, user: int, contexts: Floats) -> int:
        """Return the arm to show a user, from arguments in the form that the kernels require."""
        handle = self._handle_for(len(contexts))
        handle.compile(CHOOSE)
        arm = handle.recommend(handle.address, user, contexts)
        if arm == NO_HANDLE:
            contexts, chosen = check_array("contexts", contexts, (None, self._dim)), np.empty(1, np.int64)
            handle.choose(np.array([user]), contexts[None], chosen)
            arm = int(chosen[0])
        return self._check_arm(arm, user, contexts)

    def recommend_many(self, users: Any, contexts: Any) -> Ints:
        """Return the arm to show each of n users; see :meth:`locb.Policy.recommend_many`."""
        users, contexts = check_choices(users, contexts, self._n_users, self._dim)
        n_arms = contexts.shape[-2]
        handles = [self._handle_for(n_arms)]
        if not self.has_random_choices and handles[0].address != 0:
            arguments = self._kernel, self._readonly_state, n_arms, self._dim, MAX_REWARDS[self._parameters["dtype"]]
            handles += [Handle(*arguments, None) for _ in range(1, thread_count(len(users)))]
        for handle in handles:
            handle.compile(CHOOSE)  # before threads are started
        chosen = choose_arms(handles, users, contexts)
        for index in np.flatnonzero(chosen < 0)[:1]:
            self._check_arm(-1, int(users[index]), contexts if contexts.ndim == 2 else contexts[index])
        return chosen

    def _plain_user(self, user: Any) -> int:
        """Return the same as ``check_user(user)``, faster for a valid int."""
        return user if type(user) is int and 0 <= user < self._n_users else self.check_user(user)

    def _check_choice(self, user: Any, contexts: Any) -> tuple[int, Floats]:
        """Return user and contexts in the form that the kernels require. The kernels check the values of contexts."""
        user = self._plain_user(user)
        if not _is_plain(contexts, 2) or contexts.shape[1] != self._dim or len(contexts) == 0:
            contexts = check_array("contexts", contexts, (None, self._dim))
            if len(contexts) == 0:
                raise ValueError("contexts must have at least one row (arm), not 0")
        return user, contexts

    def _check_choices(
        self, users: Sequence[Any], contexts: Sequence[Any]
    ) -> tuple[list[tuple[int, Floats]], Ints, Floats]:
        """Return the checked users and contexts, and all contexts as one array with the end of each user's rows."""
        choices = [self._check_choice(user, offered) for user, offered in zip(users, contexts, strict=True)]
        ends = np.cumsum([len(offered) for _, offered in choices], dtype=np.int64)
        if len(choices) == 1:
            return choices, ends, choices[0][1]
        return choices, ends, np.concatenate([np.empty((0, self._dim)), *(offered for _, offered in choices)])

    def _check_arm(self, arm: int, user: int, contexts: Floats) -> int:
        """Return the arm that a kernel chose. If the kernel returned −1, raise an error with the reason."""
        if arm < 0:
            check_array("contexts", contexts, (None, self._dim))
            raise ArithmeticError(
                f"no arm can be chosen for user {user}: all scores are NaN, probably after extremely large rewards; "
                "create a new policy and limit the rewards"
            )
        return arm

    def update(self, user: int, context: Any, reward: float) -> None:
        """Learn from the reward of an arm that was shown to a user.

        Parameters
        ----------
        user : int
            The user, from 0 to ``n_users`` − 1.
        context : (d,) array_like
            The d = ``dim`` features of the arm. Absolute values are at most 1e6.
        reward : float
            The reward. Its absolute value is at most 1e100, or 1e30 with ``dtype="float32"``, also after the mapping
            by ``reward_range``.
        """
        scale = self._reward_scale
        is_plain = type(context) is _ARRAY and context.dtype is _FLOAT64 and context.ndim == 1
        if is_plain and type(user) is int and 0 <= user < self._n_users and type(reward) is float and scale.is_identity:
            handle = self._handle
            is_learned = handle.update(handle.address, user, context, reward) == LEARNED
        else:
            is_learned = False
        if not is_learned:
            reward = self._update_converted(user, context, reward)
        low, high = scale.passed
        if not low <= reward <= high:
            scale.check(reward)

    def _update_converted(self, user: Any, context: Any, reward: float) -> float:
        """Check and convert the arguments of ``update``, and learn. Return the reward as a float."""
        user, context = self._plain_user(user), check_array("context", context, (self._dim,))
        limit = MAX_REWARDS[self._parameters["dtype"]]
        if type(reward) is not float or not -limit <= reward <= limit:
            reward = check_float("reward", reward, -limit, limit)
        mapped = self._reward_scale.map_one("reward", reward, limit)
        handle = self._handle if isinstance(self._handle, Handle) else self._handle_for(1)
        handle.compile(LEARN)
        if handle.update(handle.address, user, context, mapped) != LEARNED:
            rewards, chosen = np.array([[mapped]]), np.zeros(1, np.int64)
            handle.run(LEARN, np.array([user]), context[None, None], rewards, chosen)
        return reward

    def play(self, rounds: Rounds) -> Ints:
        """Choose an arm and learn its reward in each of T rounds, in a compiled loop; see :meth:`locb.Policy.play`.

        Rounds in which a reward is missing (NaN) are played one at a time.
        """
        self.check_rounds(rounds)
        self._check_reward_limits(rounds)
        scale, learned = self._reward_scale, 0
        chosen = np.empty(len(rounds), dtype=np.int64)
        for block in rounds.blocks():
            users, arms = rounds.users[block.span], chosen[block.span]
            if block.is_observed:
                handle = self._handle_for(block.contexts.shape[1])
                handle.run(CHOOSE | LEARN, users, block.contexts, scale.map(block.rewards), arms)
                learned += len(users)
            else:
                learned += self._play_singly(users, block.contexts, block.rewards, arms)
        scale.check_rounds(rounds, learned)
        return chosen

    def _play_singly(self, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> int:
        """Play rounds some of whose rewards are missing, and return how many rewards were learned."""
        learned = 0
        for t, user in enumerate(users.tolist()):
            arm = chosen[t] = self._recommend_converted(user, contexts[t])
            reward = float(rewards[t, arm])
            if not math.isnan(reward):
                self._update_converted(user, contexts[t, arm], reward)
                learned += 1
        return learned

    def _check_reward_limits(self, rounds: Rounds) -> None:
        scale, limit = self._reward_scale, MAX_REWARDS[self._parameters["dtype"]]
        if scale.is_identity and limit >= MAX_REWARD:  # Rounds has checked the limit of float64
            return
        if any(abs(scale.map(reward)) > limit for reward in rounds.reward_limits()):
            name = "rewards" if scale.is_identity else "rewards mapped by reward_range"
            check_array(name, scale.map(rounds.rewards), (None,) * rounds.rewards.ndim, limit, allow_nan=True)

    def learn(self, users: Any, contexts: Any, rewards: Any) -> None:
        """Learn n rewards, in this order, in one compiled loop; see :meth:`locb.Policy.learn`."""
        self.play(single_arm_rounds(users, contexts, rewards))  # the only arm of a round is chosen

    def prepare(self) -> None:
        """Compile the kernel, or load its compiled code from the cache, so that the first round is not delayed."""
        self.play(Rounds(np.empty(0, np.int64), np.empty((0, 1, self._dim)), np.empty((0, 1))))


class SafetyScreen(NamedTuple):
    """Own ridge estimates of u users, for ``screen_arm`` of the kernels. Without rows, nothing is screened."""

    own: Floats = np.empty((0, 0))  # (u, d + p) θ̂ and packed A⁻¹
    widths: Floats = np.empty(0)  # (u,) factor of √(xᵀA⁻¹x) in the confidence width of an arm
    # How far the upper bound of a chosen arm may be below the highest upper bound, in confidence widths of the arm.
    slack: float = arm_scoring.SCREEN_SLACK


class ScoringRows(NamedTuple):
    """Estimates that score the arms of u users by θ̂ᵀx + alpha · √(xᵀA⁻¹x · factor), and their sources."""

    rows: Floats  # (rows, d + p) θ̂ and packed A⁻¹
    indices: Ints  # (u,) index of the estimate of each user in ``rows``
    alphas: Floats  # (u,) weight of the bonus
    factor: float  # factor of the variance xᵀA⁻¹x
    sources: Sequence[tuple[EvidenceSource, ...]]  # of each user
    memberships: Sequence[Sequence[Membership]]  # of each user
    screen: SafetyScreen = SafetyScreen()
    location: float = 0.0  # added to all estimates
    is_sampled: bool = False  # score arms by a draw from N(θ̂, alpha² A⁻¹), without a screen: ``explain_samples``


class ScoringRowPolicy(CompiledPolicy):
    """Base class of compiled policies that score all arms of a user with one estimate. Adds ``explain``."""

    def explain(self, user: int, contexts: Any) -> Explanation:
        """Return the arm that ``recommend`` returns, with the scores of all arms and the sources of the estimates."""
        return self.explain_batch([user], [contexts])[0]

    def explain_batch(self, users: Sequence[int], contexts: Sequence[Any]) -> list[Explanation]:
        """Return the result of ``explain`` for each of several users, each with its own contexts."""
        choices, ends, arms = self._check_choices(users, contexts)
        if not choices:
            return []
        checked_users = np.array([user for user, _ in choices])
        found = self._scoring_rows(checked_users)
        rows, indices, alphas, factor, sources, memberships, screen, location, is_sampled = found
        estimate, bonus, chosen = np.empty(len(arms)), np.empty(len(arms)), np.empty(len(choices), np.int64)
        ties, generator = TIE_RULES[self._parameters["ties"]], self._readonly_state.generator
        replaced = np.zeros(len(choices), bool)
        if is_sampled:
            thompson_sampling.explain_samples(
                rows, indices, ends, arms, alphas, ties, generator, estimate, bonus, chosen
            )
        else:
            arm_scoring.explain(
                rows, indices, ends, arms, alphas, factor, ties, generator, *screen, estimate, bonus, chosen, replaced
            )
        estimate += location
        theta, scale, intercept = rows[indices, : self._dim].astype(np.float64), self._reward_scale, location
        if not scale.is_identity:
            estimate, bonus, theta = scale.unmap_scores(estimate, bonus, theta)
            intercept = scale.low + scale.unmap_difference(location)
        explanations = []
        for i, (arm, stop) in enumerate(zip(chosen.tolist(), ends.tolist(), strict=True)):
            user, offered = choices[i]
            self._check_arm(arm, user, offered)
            own = slice(stop - len(offered), stop)
            explanations.append(
                Explanation(
                    arm, estimate[own], bonus[own], theta[i], sources[i], intercept, memberships[i], bool(replaced[i])
                )
            )
        return explanations

    def _safety_screen(self, users: Ints, width: float) -> SafetyScreen:
        """Return the safety screen of a policy that keeps each user's own estimate; ``width`` is 0 without a screen."""
        if width == 0.0:
            return SafetyScreen()
        return SafetyScreen(self._state.estimates[users].astype(np.float64), np.full(len(users), width))

    @abstractmethod
    def _scoring_rows(self, users: Ints) -> ScoringRows:
        """Return the estimates that currently score the arms of these users."""


def _is_plain(array: Any, ndim: int) -> bool:
    """Return whether the kernels accept this array with ``ndim`` dimensions without a conversion."""
    return type(array) is np.ndarray and array.dtype == np.float64 and array.ndim == ndim and array.flags.carray


def new_generator(rng: np.random.Generator) -> NDArray[np.uint64]:
    """Return the initial state of a kernel's random generator: one odd number, because the state must not be 0."""
    return rng.integers(0, 2**64, size=1, dtype=np.uint64) | np.uint64(1)
