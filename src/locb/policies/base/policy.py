"""What every policy is: the base class."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from locb.common.arrays import Ints
from locb.common.rounds import Rounds
from locb.evaluation.clusters import Cluster, Membership, SimilarUser
from locb.policies.base.checkpoints import Checkpoint
from locb.policies.base.explanations import Estimate, Explanation
from locb.policies.base.user_batch import GroupSummary, UserBatch, batch_membership, summarize_clusters
from locb.policies.base.validation import check_int


class Policy(ABC):
    """A policy chooses an arm for a user and learns from the reward.

    Write ``recommend`` and ``update`` and everything else works: ``play``, ``locb.simulate``, ``locb compare``.
    A policy that finds groups also gives ``clusters``.

    Parameters
    ----------
    n_users : int
        Users are the numbers 0 … n_users − 1.
    dim : int
        Length of a context.
    """

    # So many users can be asked for in one ``user_batch`` that it takes a millisecond or so.
    user_batch_size: ClassVar[int] = 64

    def __init__(self, *, n_users: int, dim: int) -> None:
        self._n_users = check_int("n_users", n_users, 1)
        self._dim = check_int("dim", dim, 1)

    @property
    def n_users(self) -> int:
        """How many users there are."""
        return self._n_users

    @property
    def dim(self) -> int:
        """Length of a context."""
        return self._dim

    @abstractmethod
    def recommend(self, user: int, contexts: Any) -> int:
        """The arm to show this user: a row of ``contexts`` (k, d). Changes nothing that was learned."""

    @abstractmethod
    def update(self, user: int, context: Any, reward: float) -> None:
        """Learn what showing ``context`` (d,) to this user earned."""

    def play(self, rounds: Rounds) -> Ints:
        """Recommend and update, round by round; the arms chosen: (T,)."""
        self.check_rounds(rounds)
        chosen = np.empty(len(rounds), dtype=np.int64)
        for t, user in enumerate(rounds.users.tolist()):
            arm = check_int("the arm from recommend", self.recommend(user, rounds.contexts[t]), 0, rounds.n_arms - 1)
            self.update(user, rounds.contexts[t, arm], rounds.rewards[t, arm])
            chosen[t] = arm
        return chosen

    def explain(self, user: int, contexts: Any) -> Explanation:
        """What ``recommend`` gives, in its place, with what speaks for it; None for what this policy does not tell."""
        arm = self.recommend(user, contexts)
        return Explanation(check_int("the arm from recommend", arm, 0, len(contexts) - 1))

    def explain_batch(self, users: Sequence[int], contexts: Sequence[Any]) -> list[Explanation]:
        """``explain`` for several users, each with contexts of its own."""
        return [self.explain(user, own) for user, own in zip(users, contexts, strict=True)]

    def correct(self, user: int, context: Any, learned: float, reward: float) -> None:  # noqa: ARG002 - told by others
        """Make good that ``context``, learned with the reward ``learned``, turns out to have earned ``reward``."""
        raise TypeError(f"{type(self).__name__} does not say how a reward is corrected: give it a correct method")

    def prepare(self) -> None:  # noqa: B027 - most policies have nothing to do here
        """Do what would make the first round slower than the others, such as compiling."""

    def clusters(self) -> list[Cluster]:
        """The groups found so far; none for a policy that looks for none."""
        return []

    def cluster_sizes(self) -> Ints:
        """How many users each group holds, in the order of ``clusters``."""
        return np.array([len(cluster) for cluster in self.clusters()], dtype=np.int64)

    def clusters_of(self, user: int) -> list[Cluster]:
        """The groups that hold this user."""
        user = self.check_user(user)
        return [cluster for cluster in self.clusters() if user in cluster]

    def memberships(self, user: int) -> Sequence[Membership]:
        """The groups that hold this user, as ``clusters_of`` has them, without their members."""
        return [Membership(cluster.seed, len(cluster), cluster.returned_at) for cluster in self.clusters_of(user)]

    def estimate(self, user: int) -> Estimate | None:
        """What is known of this user; None from a policy that does not tell."""
        self.check_user(user)
        return None

    def group_summary(self) -> GroupSummary:
        """The groups, in the order of ``clusters``, without their members."""
        return summarize_clusters(self.clusters())

    def user_batch(self, users: Ints) -> UserBatch:
        """What is known of these users and which groups hold them, copied: what the policy learns next changes none."""
        told = [self.estimate(user) for user in users.tolist()]
        unknown = np.full(self._dim, np.nan)
        theta = np.array([unknown if one is None else one.theta for one in told]).reshape(len(users), self._dim)
        served = np.array([0 if one is None else one.served for one in told], np.int64)
        return UserBatch(theta, served, batch_membership(self.clusters(), users))

    def similar_users(self, user: int, limit: int = 10) -> list[SimilarUser]:
        """Users who share a group with this one, nearest first; none from a policy that does not tell."""
        self.check_user(user)
        check_int("limit", limit, 0)
        return []

    def certifier(self, cluster: Any) -> Callable[[bool], float]:
        """What works out the certificate of a group; a policy without one raises TypeError."""
        raise TypeError(f"{type(self).__name__} gives no certificate of {cluster}")

    def add_users(self, count: int) -> None:
        """Let ``count`` more users in."""
        raise TypeError(f"{type(self).__name__} takes no {count} users more: give it an add_users method")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file that ``locb.load`` reads."""
        raise TypeError(f"{type(self).__name__} does not say how it is saved to {path}: give it a save method")

    def checkpoint(self) -> Checkpoint:
        """A copy of what ``save`` would write now, to be written later, by another thread if need be."""
        raise TypeError(f"{type(self).__name__} does not say how it is saved: give it a checkpoint method")

    def check_user(self, user: Any) -> int:
        """``user`` as a number below ``n_users``, or a ValueError."""
        return check_int("user", user, 0, self._n_users - 1)

    def check_rounds(self, rounds: Rounds) -> None:
        """A ValueError unless these rounds are for this many features and only for users we have."""
        if not isinstance(rounds, Rounds):
            raise ValueError(f"rounds must be locb.Rounds, not {type(rounds).__name__}")
        if rounds.dim != self._dim:
            raise ValueError(f"contexts must have {self._dim} features, not {rounds.dim}")
        for t in (int(rounds.users.argmin()), int(rounds.users.argmax())) if len(rounds) else ():
            if not 0 <= rounds.users[t] < self._n_users:
                raise ValueError(f"users must be from 0 to {self._n_users - 1}, but users[{t}] is {rounds.users[t]}")
