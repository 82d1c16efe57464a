"""Base class of all policies."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from reprlib import Repr
from typing import Any, ClassVar, TypeVar

import numpy as np

from locb.common.arrays import Ints
from locb.common.presentation import presenter
from locb.common.rounds import Rounds
from locb.common.validation import ParameterError, check_array, check_choices, check_int
from locb.evaluation.clusters import Cluster, Membership
from locb.evaluation.policy_view import PolicyView
from locb.evaluation.results import sample_users
from locb.policies.base.capabilities import SupportsEstimates, SupportsNewUsers
from locb.policies.base.user_batch import GroupSummary, UserBatch, batch_membership, summarize_clusters
from locb.policies.parameters import (
    Dim,
    NUsers,
    Parameter,
    declared_parameters,
    document_parameters,
    plain_signature,
    validate_parameters,
)

T = TypeVar("T")


def finish(steps: Generator[None, None, T]) -> T:
    """Run all steps of a computation, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def single_arm_rounds(users: Any, contexts: Any, rewards: Any) -> Rounds:
    """Return n rounds with one arm each, from arrays (n,), (n, d) and (n,). Raise a ValueError if they do not match."""
    contexts, rewards = np.asarray(contexts), np.asarray(rewards)
    if contexts.ndim != 2:
        raise ParameterError("contexts", f" must have one row of features per reward, not shape {contexts.shape}")
    if rewards.ndim != 1:
        raise ParameterError("rewards", f" must have one number per row of contexts, not shape {rewards.shape}")
    return Rounds(users, contexts[:, None, :], rewards[:, None])


class Policy(ABC):
    """Base class of policies. A policy is a contextual bandit: it chooses an arm for a user and learns from the reward.

    A subclass that defines ``recommend`` and ``update`` can be used with ``play``, ``locb.simulate`` and
    ``locb compare``. A policy that clusters users also defines ``clusters``. The protocols in
    ``locb.policies.base.capabilities`` are optional capabilities, such as ``add_users`` and ``save``.

    Parameters
    ----------
    n_users : int
        Number of users; users are the integers 0 … n_users − 1.
    dim : int
        Number of features of a context.
    """

    parameters: ClassVar[tuple[Parameter, ...]]
    """The declared parameters, in the order of the signature."""

    user_batch_size: ClassVar[int] = 64
    """Number of users for which ``user_batch`` takes about one millisecond."""

    _parameters: dict[str, Any]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        init = vars(cls).get("__init__")
        cls.parameters = declared_parameters(cls.__init__)
        cls.__signature__ = plain_signature(cls.__init__)  # type: ignore[attr-defined]  # not declared for type
        if init is not None and any(parameter.description for parameter in cls.parameters):
            cls.__doc__ = document_parameters(cls.__doc__, cls.parameters)

    @validate_parameters
    def __init__(self, *, n_users: NUsers, dim: Dim) -> None:
        self._n_users, self._dim = n_users, dim

    def __repr__(self) -> str:
        changed = self._changed_parameters()
        names = [name for name in self._parameters if name in changed]
        short = Repr()
        short.maxlist = 4
        shown = [f"{name}={short.repr(self._parameters[name])}" for name in names]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _changed_parameters(self) -> list[str]:
        defaults = {parameter.name: parameter.default for parameter in self.parameters}
        return [name for name, value in self._parameters.items() if value != defaults.get(name)]

    def _repr_html_(self) -> str:
        return str(presenter().html_of_policy(self._view(np.arange(self._n_users))))

    def _view(self, users: Ints) -> PolicyView:
        learned = (np.empty((0, self._dim)), np.empty(0), np.empty(0, np.int64))
        if len(users):
            batch = self.user_batch(users)
            learned = (batch.theta, batch.radii, batch.served)
        settings, changed = dict(self._parameters), tuple(self._changed_parameters())
        return PolicyView(type(self).__name__, settings, changed, self._n_users, users, *learned, self.clusters())

    def plot_users(self, ids: Sequence[Any] | None = None) -> Any:
        """Return an Altair chart of the users: position by estimated preferences, colour by cluster.

        ``ids`` has your own id of each user; users whose id is None are not shown. Of more than 500 users, the chart
        shows a random sample.
        """
        return presenter().plot_users(self._view(sample_users(self._n_users)), ids)

    def plot_groups(self, ids: Sequence[Any] | None = None) -> Any:
        """Return an Altair chart of the number of users in each cluster. ``ids`` is as in ``plot_users``."""
        return presenter().plot_groups(self._view(np.arange(0)), ids)

    def users_frame(self, ids: Sequence[Any] | None = None, library: str = "polars") -> Any:
        """Return a data frame with one row per user: rounds, radius, number of clusters and estimated preferences.

        Parameters
        ----------
        ids : sequence, optional
            Your own id of each user. The default is the index of the user. Users whose id is None are omitted.
        library : {"polars", "pandas"}, default "polars"
            Library of the data frame.
        """
        return self._view(np.arange(self._n_users)).users_frame(ids, library)

    def groups_frame(self, ids: Sequence[Any] | None = None, library: str = "polars") -> Any:
        """Return a data frame with one row per cluster and member. The arguments are those of ``users_frame``."""
        return self._view(np.arange(0)).groups_frame(ids, library)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - an argument of scikit-learn
        """Return the current parameters by name: ``type(policy)(**policy.get_params())`` is an untrained copy.

        ``n_users`` includes users who were added. If the policy has seed users, ``seeds`` lists them. ``deep`` has no
        effect. ``sklearn.base.clone`` returns an untrained copy. There is no ``set_params``: create another policy.

        Raises
        ------
        AttributeError
            If ``__init__`` of a custom policy takes parameters and is not decorated with ``validate_parameters``.
        """
        names = [parameter.name for parameter in self.parameters]
        missing = [name for name in names if name not in self._parameters]
        if missing:
            raise AttributeError(
                f"{type(self).__name__} does not record {', '.join(missing)}: decorate its __init__ with "
                "locb.policies.validate_parameters"
            )
        return {
            name: list(value) if isinstance(value, list) else value
            for name, value in ((name, self._parameters[name]) for name in names)
        }

    def __sklearn_clone__(self) -> Policy:
        return type(self)(**self.get_params())

    @property
    def n_users(self) -> int:
        """Number of users, including users who were added."""
        return self._n_users

    @property
    def dim(self) -> int:
        """Number of features of a context."""
        return self._dim

    @property
    def has_random_choices(self) -> bool:
        """Whether ``recommend`` draws random numbers: with random ties, or by Thompson sampling."""
        return getattr(self, "_parameters", {}).get("ties") == "random"

    @abstractmethod
    def recommend(self, user: int, contexts: Any) -> int:
        """Return the arm to show a user. Does not change what the policy has learned.

        Parameters
        ----------
        user : int
            The user, from 0 to ``n_users`` − 1.
        contexts : (k, d) array_like
            The d = ``dim`` features of each of k arms.

        Returns
        -------
        int
            Index of the chosen arm, a row of ``contexts``.
        """

    def recommend_many(self, users: Any, contexts: Any) -> Ints:
        """Return the arm to show each of n users: the same as ``recommend`` for each of them, in this order.

        Compiled policies use one loop. Unless choices are random, they divide the users among up to four threads.
        Ctrl-C interrupts the call. Do not change the policy in another thread during the call.

        Parameters
        ----------
        users : (n,) array of int
            The users, from 0 to ``n_users`` − 1. A user can occur several times.
        contexts : (n, k, d) array_like or (k, d) array_like
            The d = ``dim`` features of each of the k arms of each user, or of the same k arms for all users.

        Returns
        -------
        (n,) array of int
            Index of the chosen arm of each user.
        """
        users, contexts = check_choices(users, contexts, self._n_users, self._dim)
        contexts = check_array("contexts", contexts, (None,) * contexts.ndim)
        offered = [contexts] * len(users) if contexts.ndim == 2 else contexts
        arms = [self.recommend(user, arms) for user, arms in zip(users.tolist(), offered, strict=True)]
        last = contexts.shape[-2] - 1
        return np.array([check_int("the arm from recommend", arm, 0, last) for arm in arms], np.int64)

    @abstractmethod
    def update(self, user: int, context: Any, reward: float) -> None:
        """Learn from the reward of an arm that was shown to a user.

        Parameters
        ----------
        user : int
            The user, from 0 to ``n_users`` − 1.
        context : (d,) array_like
            The d = ``dim`` features of the arm.
        reward : float
            The reward.
        """

    def play(self, rounds: Rounds) -> Ints:
        """Choose an arm and learn its reward in each of T rounds. A missing reward (NaN) is not learned.

        Parameters
        ----------
        rounds : Rounds
            T rounds with users from 0 to ``n_users`` − 1 and contexts of ``dim`` features.

        Returns
        -------
        (T,) array of int
            The chosen arm of each round.
        """
        self.check_rounds(rounds)
        chosen = np.empty(len(rounds), dtype=np.int64)
        for t, user in enumerate(rounds.users.tolist()):
            contexts = rounds.contexts[t]
            arm = check_int("the arm from recommend", self.recommend(user, contexts), 0, len(contexts) - 1)
            reward = rounds.reward(t, arm)
            if not math.isnan(reward):
                self.update(user, contexts[arm], reward)
            chosen[t] = arm
        return chosen

    def learn(self, users: Any, contexts: Any, rewards: Any) -> None:
        """Learn n rewards, in this order: the same as ``update`` for each of them. Compiled policies use one loop.

        Parameters
        ----------
        users : (n,) array of int
            The user of each reward, from 0 to ``n_users`` − 1.
        contexts : (n, d) array_like
            The d = ``dim`` features of the arm that was shown.
        rewards : (n,) array_like
            The rewards.
        """
        rounds = single_arm_rounds(users, contexts, rewards)
        self.check_rounds(rounds)
        for user, context, reward in zip(
            rounds.users.tolist(), rounds.contexts[:, 0], rounds.rewards[:, 0].tolist(), strict=True
        ):
            self.update(user, context, reward)

    def prepare(self) -> None:  # noqa: B027 - most policies have nothing to prepare
        """Do work that would otherwise delay the first round, such as compilation. Does nothing by default."""

    def clusters(self) -> list[Cluster]:
        """Return the current clusters; an empty list for a policy without clusters."""
        return []

    def cluster_sizes(self) -> Ints:
        """Return the number of users per cluster, in the order of ``clusters``."""
        return np.array([len(cluster) for cluster in self.clusters()], dtype=np.int64)

    def clusters_of(self, user: int) -> list[Cluster]:
        """Return the clusters that contain a user, in the order of ``clusters``."""
        user = self.check_user(user)
        return [cluster for cluster in self.clusters() if user in cluster]

    def memberships(self, user: int) -> Sequence[Membership]:
        """Return the clusters that contain a user, described without their members."""
        return [Membership(cluster.seed, len(cluster), cluster.returned_at) for cluster in self.clusters_of(user)]

    def group_summary(self) -> GroupSummary:
        """Return a summary of the clusters, in the order of ``clusters``, without their members."""
        return summarize_clusters(self.clusters())

    def group_summary_steps(self) -> Generator[None, None, GroupSummary]:
        """Compute ``group_summary`` in steps, between which the policy may learn. By default, there is one step.

        A policy whose ``group_summary`` takes long overrides this method, with steps of about one millisecond.
        """
        yield
        return self.group_summary()

    def user_batch(self, users: Ints) -> UserBatch:
        """Return copies of the estimates and memberships of several users; ``users`` is an array (u,) of int.

        For a policy without estimates, all estimates and radii are NaN, and all numbers of rounds are 0.
        """
        theta, served = np.full((len(users), self._dim), np.nan), np.zeros(len(users), np.int64)
        radii = np.full(len(users), np.nan)
        if isinstance(self, SupportsEstimates):
            for row, user in enumerate(users.tolist()):
                estimate = self.estimate(user)
                theta[row], radii[row], served[row] = estimate.theta, estimate.radius, estimate.served
        return UserBatch(theta, radii, served, batch_membership(self.clusters(), users))

    def check_user(self, user: Any) -> int:
        """Return ``user`` as an int; raise a ValueError unless it is an integer from 0 to ``n_users`` − 1."""
        return check_int("user", user, 0, self._n_users - 1)

    def check_rounds(self, rounds: Rounds) -> None:
        """Raise a ValueError unless ``rounds`` are Rounds with ``dim`` features and users from 0 to ``n_users`` − 1."""
        if not isinstance(rounds, Rounds):
            raise ValueError(f"rounds must be locb.Rounds, not {type(rounds).__name__}")
        if rounds.dim != self._dim:
            raise ValueError(f"contexts must have {self._dim} features, the dim of the policy, not {rounds.dim}")
        for t in (int(rounds.users.argmin()), int(rounds.users.argmax())) if len(rounds) else ():
            if not 0 <= rounds.users[t] < self._n_users:
                raise ValueError(f"users must be from 0 to {self._n_users - 1}, but users[{t}] is {rounds.users[t]}")


class ServablePolicy(Policy, SupportsNewUsers):
    """Static type of a policy that a service can use, because it accepts new users.

    A policy need not inherit from this class. At run time, test ``isinstance(policy, SupportsNewUsers)``.
    """
