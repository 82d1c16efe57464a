"""Recommender for users and arms with names, in one process."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from locb.common.frames import make_frame, rows_to_columns
from locb.common.validation import check_float, check_int
from locb.policies.base.capabilities import SupportsSimilarUsers
from locb.policies.base.policy import Policy, ServablePolicy
from locb.recommender import observations, saved_recommender
from locb.recommender.catalogue import Catalogue, Features, check_id, infer_features
from locb.recommender.commands import RecommendCommand, RewardCommand
from locb.recommender.engine import Engine
from locb.recommender.errors import LibraryProblems
from locb.recommender.events import MAX_REWARD, FoundDecision, ObservationRow
from locb.recommender.policy_model import Model
from locb.recommender.results import NamedGroup, Recommendation, RecommendationEncoder, SimilarNamedUser, named_groups
from locb.recommender.saved_recommender import SavedState, StoredDecision
from locb.recommender.user_index import UserIndex

DEFAULT_MAX_DECISIONS = 10_000


class Recommender:
    """Recommender for users and arms with names: a policy with the behaviour of the service, without HTTP and a store.

    Users and arms have ids, which are strings. Unknown users are created automatically. The features of an arm are
    values by name, which are hashed as by ``locb.features``, or a vector. Scale numbers by name to about 1, because a
    string counts as 1: a recommender warns once if a number outweighs all other features of an arm. The service uses
    the same code, so the same requests and rewards, in the same order, give the same recommendations. A recommender is
    not thread-safe.

    Parameters
    ----------
    policy : str, default "eloc"
        Name of a policy in ``locb.POLICIES``.
    features : int, optional
        Number of features per arm: the length of vectors, and the ``dim`` of ``locb.features`` for named features. By
        default, the length of the first vector in ``arms``, or 16 if there is none.
    arms : mapping of str to features, optional
        Catalogue: the features of each arm by its id. ``recommend`` also accepts arms that are not in the catalogue.
    max_decisions : int, default 10000
        Number of recent decisions that are kept: rewards of older decisions are rejected.
    **parameters
        Parameters of the policy, such as ``gamma``. The defaults are those of the service. If the policy has seed
        users, the first ``n_seeds`` users become seed users.

    Examples
    --------
    >>> films = {"film 1": {"genre": "drama"}, "film 2": {"genre": "crime"}}
    >>> recommender = Recommender("linucb-one", arms=films)
    >>> decision = recommender.recommend("ann")
    >>> decision.arm
    'film 1'
    >>> recommender.reward(decision, 0.0)
    >>> recommender.recommend("ann").arm
    'film 2'
    >>> recommender
    Recommender('linucb-one', 1 user, 2 arms, 2 decisions)
    """

    def __init__(
        self,
        policy: str = "eloc",
        *,
        features: int | None = None,
        arms: Mapping[str, Features] | None = None,
        max_decisions: int = DEFAULT_MAX_DECISIONS,
        **parameters: Any,
    ) -> None:
        dim = infer_features(arms or {}) if features is None else check_int("features", features, 1)
        model = Model.create(policy, dim, parameters)
        built = model.build()
        self._set_up(model, built, UserIndex(built.n_users), 0, max_decisions)
        self._catalogue.add(arms or {})

    def _set_up(self, model: Model, policy: ServablePolicy, users: UserIndex, seq: int, max_decisions: int) -> None:
        self._model = model
        self._max_decisions = check_int("max_decisions", max_decisions, 1)
        self._problems = LibraryProblems(self._max_decisions)
        self._catalogue = Catalogue(model.dim, self._problems)
        self._stored: dict[str, StoredDecision] = {}
        self._engine = Engine(
            policy,
            users,
            seq,
            encoder=RecommendationEncoder(users, model.dim),
            problems=self._problems,
            learn=_learn,
            cache_size=self._max_decisions,
        )

    def __repr__(self) -> str:
        counts = ((len(self._engine.users), "user"), (len(self._catalogue), "arm"), (len(self._stored), "decision"))
        texts = (f"{count:,} {noun}{'' if count == 1 else 's'}" for count, noun in counts)
        return f"Recommender({self._model.policy!r}, {', '.join(texts)})"

    # Catalogue and users

    @property
    def policy(self) -> ServablePolicy:
        """The policy. It numbers users by index: ``user_ids`` has the id of the user at each index."""
        return self._engine.policy

    @property
    def features(self) -> int:
        """Number of features per arm."""
        return self._model.dim

    @property
    def users(self) -> list[str]:
        """Ids of all users, in the order in which they were created."""
        return [name for name in self.user_ids if name is not None]

    @property
    def user_ids(self) -> list[str | None]:
        """Id of the user at each index of the policy; None for an index that waits for a new user."""
        users = self._engine.users
        return [users.name_of(index) for index in range(users.capacity)]

    @property
    def arms(self) -> list[str]:
        """Ids of the arms in the catalogue."""
        return [arm.id for arm in self._catalogue.arms]

    def add_arms(self, arms: Mapping[str, Features]) -> None:
        """Add arms to the catalogue, given their features by id. An arm with the same id is replaced."""
        self._catalogue.add(arms)

    def remove_arms(self, ids: Iterable[str]) -> None:
        """Remove arms from the catalogue. Rewards of their decisions can still be reported."""
        self._catalogue.remove([ids] if isinstance(ids, str) else ids)

    # Decisions and rewards

    def recommend(
        self,
        user: str,
        arms: Mapping[str, Features] | Iterable[str] | None = None,
        *,
        exclude: Iterable[str] = (),
        count: int | None = 1,
        decision_id: str | None = None,
    ) -> Recommendation:
        """Recommend an arm to a user, and keep the decision until its reward is reported.

        Parameters
        ----------
        user : str
            Id of the user. An unknown user is created.
        arms : mapping of str to features, or iterable of str, optional
            Features of each offered arm by its id, or ids of arms in the catalogue. By default, the whole catalogue.
        exclude : iterable of str, optional
            Ids of offered arms that must not be recommended.
        count : int or None, default 1
            Maximum number of arms in the ranking; None for all arms.
        decision_id : str, optional
            Your own id of the decision. Repeating a request with the same id returns the same decision. By default, an
            id is generated.

        Returns
        -------
        Recommendation
            The recommended arm, the ranking, the groups of the user, and the explanation.

        Raises
        ------
        ValueError
            If an argument is invalid, or ``decision_id`` was used for a different request.
        """
        if decision_id is not None:
            check_id("decision_id", decision_id)
        command = RecommendCommand(self._parse(user, arms, exclude, count, decision_id), time.time())
        stored = None if decision_id is None else self._stored.get(decision_id)
        batch = self._engine.prepare([command], [] if stored is None else [_found(stored)])
        self._engine.apply(batch)
        (outcome,) = batch.outcomes
        if isinstance(outcome, Exception):
            raise outcome
        for row in batch.records.decisions:
            found = row.id.decode()
            self._store(found, StoredDecision(row, batch.decisions[found], batch.responses[found][1]))
        recommendation: Recommendation = outcome.response  # type: ignore[union-attr]  # of a RecommendCommand
        return recommendation

    def explain(
        self,
        user: str,
        arms: Mapping[str, Features] | Iterable[str] | None = None,
        *,
        exclude: Iterable[str] = (),
        count: int | None = None,
    ) -> Recommendation:
        """Return what ``recommend`` would return now, for a known user. Nothing is stored, and ``decision_id`` is "".

        The arguments are those of ``recommend``, but by default the ranking contains all arms.
        """
        found: Recommendation = self._engine.preview(self._parse(user, arms, exclude, count, None))
        return found

    def reward(self, decision_id: str | Recommendation, reward: float) -> None:
        """Learn the reward of a decision. Repeating the same reward has no effect.

        Parameters
        ----------
        decision_id : str or Recommendation
            The recommendation, or its ``decision_id``.
        reward : float
            The reward, on a scale of about 0 to 1 unless ``reward_range`` is set.

        Raises
        ------
        ValueError
            If the decision is unknown, or has a different reward.
        """
        if isinstance(decision_id, Recommendation):
            decision_id = decision_id.decision_id
            if not decision_id:
                raise ValueError(
                    "the recommendation has no decision_id: pass a result of recommend(), not of explain()"
                )
        check_id("decision_id", decision_id)
        command = RewardCommand(decision_id, check_float("reward", reward, -MAX_REWARD, MAX_REWARD), time.time())
        batch = self._engine.prepare([command])
        (outcome,) = batch.outcomes
        if isinstance(outcome, Exception):
            raise outcome
        self._engine.apply(batch)

    def _parse(self, user: str, arms: Any, exclude: Iterable[str], count: int | None, decision_id: str | None) -> Any:
        check_id("user", user)
        if count is not None:
            count = check_int("count", count, 1)
        return self._catalogue.request(user, arms, exclude, count, decision_id)

    def _store(self, decision_id: str, stored: StoredDecision) -> None:
        """Keep a decision, and discard the oldest ones, as the engine does."""
        self._stored[decision_id] = stored
        while len(self._stored) > self._max_decisions:
            self._stored.pop(next(iter(self._stored)))

    # Groups

    def groups(self) -> list[NamedGroup]:
        """Return the groups of users that the policy has found; [] for a policy without groups.

        Groups with the same users are one group, whose ``seeds`` are the seed users of all of them.
        """
        return named_groups(self.policy.clusters(), self._engine.users.name_of)

    def groups_of(self, user: str) -> list[NamedGroup]:
        """Return the groups that contain a user."""
        self._index(user)
        return [group for group in self.groups() if user in group.users]

    def similar_users(self, user: str, limit: int = 10) -> list[SimilarNamedUser]:
        """Return at most ``limit`` users who share a group with a user, nearest estimate first."""
        index, limit, users = self._index(user), check_int("limit", limit, 0), self._engine.users
        if not isinstance(self.policy, SupportsSimilarUsers):
            return []
        similar = self.policy.similar_users(index, limit + users.unassigned)
        named = ((users.name_of(other), distance, radius) for other, distance, radius in similar)
        return [SimilarNamedUser(name, *numbers) for name, *numbers in named if name is not None][:limit]

    def _index(self, user: str) -> int:
        index = self._engine.users.index_of(user)
        if index is None:
            raise self._problems.unknown_user(user)
        return index

    def groups_frame(self, library: str = "polars") -> Any:
        """Return ``groups`` as a data frame with one row per group and user: group, seed, size, final, user.

        ``library`` is "polars" or "pandas", as for the other data frames.
        """
        rows = [
            {"group": number, "seed": group.seed, "size": len(group.users), "final": group.final, "user": user}
            for number, group in enumerate(self.groups())
            for user in group.users
        ]
        return make_frame(rows_to_columns(rows, ("group", "seed", "size", "final", "user")), library)

    def users_frame(self, library: str = "polars") -> Any:
        """Return a data frame with one row per user, see ``Policy.users_frame``."""
        return self.policy.users_frame(self.user_ids, library)

    def plot_users(self) -> Any:
        """Return an Altair chart of the users: position by estimated preferences, colour by group."""
        return self.policy.plot_users(self.user_ids)

    def plot_groups(self) -> Any:
        """Return an Altair chart of the number of users in each distinct group."""
        return self.policy.plot_groups(self.user_ids)

    def similar_users_frame(self, user: str, limit: int = 10, library: str = "polars") -> Any:
        """Return ``similar_users`` as a data frame: user, distance, radius."""
        rows = [similar._asdict() for similar in self.similar_users(user, limit)]
        return make_frame(rows_to_columns(rows, SimilarNamedUser._fields), library)

    # Saving

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the recommender: policy, users, catalogue and recent decisions.

        The file does not use pickle. A recommender with a custom policy can be saved if the policy is compiled.
        """
        arms = {arm.id: arm.features for arm in self._catalogue.arms}
        seq, limit = self._engine.seq, self._max_decisions
        state = SavedState(self._model, self.policy, self.user_ids, arms, seq, limit, self._stored)
        saved_recommender.write(path, state)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recommender:
        """Load a recommender from a file that ``save`` wrote. It continues exactly as the saved recommender would.

        Raises
        ------
        ValueError
            If the file is damaged, is not a saved recommender, or has another format version.
        OSError
            If the file does not exist or cannot be opened.
        """
        state = saved_recommender.read(path)
        assigned = ((index, name) for index, name in enumerate(state.users) if name is not None)
        users = UserIndex(state.policy.n_users, assigned)
        loaded = cls.__new__(cls)
        loaded._set_up(state.model, state.policy, users, state.seq, state.max_decisions)
        loaded.add_arms(state.arms)
        for decision_id, stored in state.decisions.items():
            loaded._engine.cache(decision_id, stored.decision)
            loaded._store(decision_id, stored)
        return loaded


def _found(stored: StoredDecision) -> FoundDecision:
    """Return a recent decision as a query of the event log of the service would."""
    return FoundDecision(stored.row, stored.decision.kind, stored.decision.reward, stored.recommendation)


def _learn(policy: Policy, rows: Sequence[ObservationRow], _request_ids: Mapping[int, str | None]) -> None:
    observations.learn(policy, rows, _raise)


def _raise(_policy: Policy, observation: ObservationRow, error: Exception | None) -> None:
    raise ValueError(f"the policy rejected the reward {observation.reward:g}: {error}") from error
