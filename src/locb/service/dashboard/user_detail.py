"""Views of one user: estimate, similar users, recent decisions and current recommendation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import numpy as np

from locb.evaluation.clusters import SimilarUser as PolicySimilarUser
from locb.evaluation.confidence_intervals import NORMAL_QUANTILE
from locb.policies.base.capabilities import SupportsEstimates, SupportsSimilarUsers
from locb.policies.base.inspectable import InspectablePolicy
from locb.policies.base.nearest_users import NearestUsers
from locb.policies.base.user_batch import membership_probabilities
from locb.recommender.events import CORRECTION, DEFAULT, REWARD, FoundDecision
from locb.recommender.requests import ParsedRequest
from locb.service.core.decision_encoding import render_stored, summarize_membership
from locb.service.core.service import Service
from locb.service.dashboard.cluster_schemas import UserCluster
from locb.service.dashboard.feature_names import FeatureNames
from locb.service.dashboard.schemas import (
    PreviewResponse,
    SimilarUser,
    SimilarUsers,
    UserDecision,
    UserDecisions,
    UserDetail,
)
from locb.service.dashboard.state_view import user_slices
from locb.service.request_parsing import parse_stored_request
from locb.service.store.log import EventLog

MAX_DECISION_BYTES = 4_000_000  # requests and responses of the decisions in a response
MAX_NAMES = 300  # feature names in a response
REWARD_STATUS = {None: "pending", REWARD: "received", DEFAULT: "default", CORRECTION: "corrected"}
_decode_preview = msgspec.json.Decoder(PreviewResponse).decode  # ignores the empty decision id


def user_detail(service: Service, user: str, names: FeatureNames) -> UserDetail:
    """Return the estimate and statistics of a user."""
    index, users = service.require_index(user), service.engine.users
    policy = service.policy
    estimate = policy.estimate(index) if isinstance(policy, SupportsEstimates) else None
    intervals = None
    if estimate is not None and estimate.deviation is not None:
        margin = NORMAL_QUANTILE * estimate.deviation
        intervals = list(zip((estimate.theta - margin).tolist(), (estimate.theta + margin).tolist(), strict=True))
    ((rewards, total),) = service.event_stats.rewards_by_user(np.array([index])).tolist()
    probabilities, same_as, no_cluster = _probabilities(service, index)
    clusters = []
    for membership in policy.memberships(index):
        summary = summarize_membership(membership, users)
        if summary is not None:
            seed = membership.seed
            row = summary.seed, summary.size, summary.returned, probabilities.get(seed), same_as.get(seed)
            clusters.append(UserCluster(*row))
    return UserDetail(
        user,
        None if estimate is None else estimate.served,
        None if estimate is None else estimate.theta.tolist(),
        None if estimate is None else estimate.radius,
        clusters,
        no_cluster,
        intervals,
        int(rewards),
        total / rewards if rewards else None,
        names.top_names(MAX_NAMES),
    )


def _probabilities(
    service: Service, index: int
) -> tuple[dict[int | None, float], dict[int | None, str | None], float | None]:
    """Return the probability of each cluster by its seed, the seeds of duplicates, and the probability of no cluster.

    Both mappings are empty, and the last value is None, if the policy has no probabilities.
    """
    policy, users = service.policy, service.engine.users
    batch = policy.user_batch(np.array([index])) if isinstance(policy, InspectablePolicy) else None
    if batch is None or batch.weights is None:
        return {}, {}, None
    summary = policy.group_summary()
    found = membership_probabilities(summary, batch)
    assert summary.same_as is not None and found is not None  # noqa: S101, PT018 - a policy with weights has both
    seeds = [None if seed < 0 else seed for seed in summary.seeds.tolist()]
    pairs = [(seed, seeds[original]) for seed, original in zip(seeds, summary.same_as.tolist(), strict=True)]
    same_as = {seed: users.name_of(original) for seed, original in pairs if original not in (seed, None)}
    return dict(zip(seeds, found[0].tolist(), strict=True)), same_as, max(0.0, 1.0 - float(batch.weights.sum()))


async def similar_users(service: Service, user: str, limit: int) -> SimilarUsers:
    """Return up to ``limit`` users who share a cluster with a user, nearest estimate first."""
    index, users = service.require_index(user), service.engine.users
    similar: list[SimilarUser] = []
    for other, distance, radius in await _nearest_users(service, index, limit):
        name = None if len(similar) == limit else users.name_of(other)
        if name is not None:  # an index without a user is omitted
            similar.append(SimilarUser(name, distance, radius))
    return SimilarUsers(user, similar if service.require_index(user) == index else [])


async def _nearest_users(service: Service, index: int, limit: int) -> Sequence[PolicySimilarUser]:
    policy, users = service.policy, service.engine.users
    if getattr(type(policy), "similar_users", None) is InspectablePolicy.similar_users:
        nearest = NearestUsers(index, limit)
        if limit and policy.memberships(index):
            async for part, batch in user_slices(service, users.assigned(), index):
                nearest.add(part, batch)
        return nearest.found()
    if isinstance(policy, SupportsSimilarUsers):  # a custom policy, which does not know which indices are unassigned
        return policy.similar_users(index, limit + users.unassigned)
    return []


async def user_decisions(service: Service, user: str, limit: int) -> UserDecisions:
    """Return the last ``limit`` decisions for a user, newest first, or fewer if they are large."""
    index = service.require_index(user)
    decisions = await asyncio.to_thread(_read_decisions, service.log, index, limit, service.model.dim)
    if service.require_index(user) != index:  # the user was erased and created again in the meantime
        decisions = []
    return UserDecisions(user, decisions)


def _read_decisions(log: EventLog, index: int, limit: int, dim: int) -> list[UserDecision]:
    found = log.recent_decisions(index, limit, MAX_DECISION_BYTES, render_stored)
    return [_user_decision(decision, dim) for decision in found if decision.response]  # empty if it was dropped


def _user_decision(found: FoundDecision, dim: int) -> UserDecision:
    row = found.decision
    parsed = parse_stored_request(row.request, dim)
    arm = parsed.request.arms[parsed.eligible[row.chosen]]
    return UserDecision(
        row.id.decode(),
        row.time,
        arm.id,
        found.reward,
        REWARD_STATUS[None if found.kind is None else min(found.kind, CORRECTION)],
        msgspec.Raw(found.response or b""),
        arm.features,
    )


def preview(service: Service, parsed: ParsedRequest) -> PreviewResponse:
    """Return the current recommendation without storing a decision."""
    return _decode_preview(service.engine.preview(parsed))
