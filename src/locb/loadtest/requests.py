"""HTTP requests of simulated users. Most of each request is encoded before the load test starts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from locb.environments import Synthetic
from locb.loadtest.plan import Plan

N_ARM_SETS = 4096  # sets of arms that are encoded in advance and used in turn
BLOCK = 4096  # number of users drawn at a time


class DecisionRequest(NamedTuple):
    """Request for a decision, with the true mean rewards of its arms."""

    decision_id: str
    user: str
    encoded: bytes  # head and body of the HTTP request
    means: list[float]  # true mean reward of each arm
    random_mean: float  # expected true mean reward of a random arm
    best_mean: float  # true mean reward of the best arm


class RequestGenerator:
    """Endless iterable of requests for decisions. The generator also encodes requests for rewards and pings."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.environment = Synthetic(
            n_users=plan.users,
            n_clusters=min(plan.clusters, plan.users),
            raw_dim=plan.dim - 1,
            n_arms=plan.arms,
            seed=plan.seed,
        )
        self.rng = np.random.default_rng([plan.seed, 1])
        self.arms = [f"arm-{arm}" for arm in range(plan.arms)]
        self.arm_index = {arm: index for index, arm in enumerate(self.arms)}
        self._run = uuid.uuid4().hex[:12]  # unique per run, so that a test can be repeated on the same service
        self._digits = len(str(plan.users - 1))
        self._contexts = self.environment.draw(self.rng, N_ARM_SETS).contexts  # (arm sets, k, d)
        self._prefixes = [self._encode_prefix(contexts.tolist()) for contexts in self._contexts]
        id_length = len(self._decision_id(0))
        self._reward_prefix = self._encode_head("POST", "/v1/reward", len(b'{"decision_id":"","reward":0}') + id_length)
        self.ping = self._encode_head("GET", "/v1/ping", None)
        self.posts = [
            self._encode_post(next(iter(self)).encoded),
            self._encode_post(self.encode_reward(self._decision_id(0), 1)),
        ]

    def _decision_id(self, index: int) -> str:
        return f"{self._run}-{index:08x}"

    def _encode_head(self, method: str, path: str, length: int | None) -> bytes:
        address = self.plan.address
        lines = [f"{method} {address.path}{path} HTTP/1.1", f"Host: {address.host_header}"]
        if self.plan.token is not None:
            lines.append(f"Authorization: Bearer {self.plan.token}")
        if length is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {length}"]
        return "\r\n".join([*lines, "", ""]).encode()

    def _encode_prefix(self, contexts: list[list[float]]) -> bytes:
        """Encode a request up to the user name. The rest of the request has the same length in every request."""
        fields: dict[str, object] = {} if self.plan.count is None else {"count": self.plan.count}
        fields["arms"] = [{"id": arm, "features": x} for arm, x in zip(self.arms, contexts, strict=True)]
        body = msgspec.json.encode(fields)[:-1] + b',"user":"'
        suffix_length = len(f'user-{0:0{self._digits}}","decision_id":"{self._decision_id(0)}"}}')
        return self._encode_head("POST", "/v1/recommend", len(body) + suffix_length) + body

    def _encode_post(self, encoded: bytes) -> bytes:
        """Encode a request to ``POST /v1/ping`` with the body of an encoded request."""
        body = encoded.partition(b"\r\n\r\n")[2]
        return self._encode_head("POST", "/v1/ping", len(body)) + body

    def encode_reward(self, decision_id: str, reward: int) -> bytes:
        """Return the HTTP request that sends a reward of 0 or 1."""
        return b'%b{"decision_id":"%b","reward":%d}' % (self._reward_prefix, decision_id.encode(), reward)

    def __iter__(self) -> Iterator[DecisionRequest]:
        index = 0
        while True:
            users = self.rng.integers(self.plan.users, size=BLOCK)
            arm_sets = (index + np.arange(BLOCK)) % N_ARM_SETS
            means = np.matmul(self._contexts[arm_sets], self.environment.theta[users][:, :, None])[
                :, :, 0
            ]  # (BLOCK, k)
            rows = zip(
                users.tolist(),
                arm_sets.tolist(),
                means.tolist(),
                means.mean(1).tolist(),
                means.max(1).tolist(),
                strict=True,
            )
            for user, arm_set, arm_means, random_mean, best_mean in rows:
                decision_id, name = self._decision_id(index), f"user-{user:0{self._digits}}"
                suffix = f'{name}","decision_id":"{decision_id}"}}'.encode()
                encoded = self._prefixes[arm_set] + suffix
                yield DecisionRequest(decision_id, name, encoded, arm_means, random_mean, best_mean)
                index += 1
