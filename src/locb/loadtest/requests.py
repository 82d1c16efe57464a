"""Requests of a synthetic world, most of each made before the clock starts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from locb.environments import Synthetic
from locb.loadtest.plan import Plan

SETS_OF_ARMS = 4096  # that are made beforehand and asked about in turn
BLOCK = 4096  # users are drawn so many at a time


class Question(NamedTuple):
    """A decision to ask for."""

    decision_id: str
    user: str
    request: bytes
    means: list[float]  # of the arms
    chance: float
    best: float


class Questions:
    """Whom to ask for, which arms, and the bytes that ask."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.world = Synthetic(
            n_users=plan.users,
            n_clusters=min(plan.clusters, plan.users),
            raw_dim=plan.dim - 1,
            n_arms=plan.arms,
            seed=plan.seed,
        )
        self.rng = np.random.default_rng([plan.seed, 1])
        self.arms = [f"arm-{arm}" for arm in range(plan.arms)]
        self.arm_index = {arm: place for place, arm in enumerate(self.arms)}
        self._run = uuid.uuid4().hex[:12]  # the same world may be played against the same service again
        self._digits = len(str(plan.users - 1))
        self._contexts = self.world.draw(self.rng, SETS_OF_ARMS).contexts  # (sets, k, d)
        self._beginnings = [self._beginning(contexts.tolist()) for contexts in self._contexts]
        id_length = len(self._decision_id(0))
        self._reward_form = self._head("POST", "/v1/reward", len(b'{"decision_id":"","reward":0}') + id_length)
        self.ping = self._head("GET", "/v1/ping", None)
        self.posts = [self._posted(next(iter(self)).request), self._posted(self.reward(self._decision_id(0), 1))]

    def _decision_id(self, place: int) -> str:
        return f"{self._run}-{place:08x}"

    def _head(self, method: str, path: str, length: int | None) -> bytes:
        address = self.plan.address
        lines = [f"{method} {address.path}{path} HTTP/1.1", f"Host: {address.name}"]
        if self.plan.token is not None:
            lines.append(f"Authorization: Bearer {self.plan.token}")
        if length is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {length}"]
        return "\r\n".join([*lines, "", ""]).encode()

    def _beginning(self, contexts: list[list[float]]) -> bytes:
        """A request up to its user; what follows has the same length in all of them."""
        asked: dict[str, object] = {} if self.plan.count is None else {"count": self.plan.count}
        asked["arms"] = [{"id": arm, "features": x} for arm, x in zip(self.arms, contexts, strict=True)]
        body = msgspec.json.encode(asked)[:-1] + b',"user":"'
        rest = len(f'user-{0:0{self._digits}}","decision_id":"{self._decision_id(0)}"}}')
        return self._head("POST", "/v1/recommend", len(body) + rest) + body

    def _posted(self, request: bytes) -> bytes:
        """The same body, to where nothing is done with it."""
        body = request.partition(b"\r\n\r\n")[2]
        return self._head("POST", "/v1/ping", len(body)) + body

    def reward(self, decision_id: str, reward: int) -> bytes:
        """The request that tells a reward, 0 or 1."""
        return b'%b{"decision_id":"%b","reward":%d}' % (self._reward_form, decision_id.encode(), reward)

    def __iter__(self) -> Iterator[Question]:
        place = 0
        while True:
            users = self.rng.integers(self.plan.users, size=BLOCK)
            sets = (place + np.arange(BLOCK)) % SETS_OF_ARMS
            means = np.matmul(self._contexts[sets], self.world.theta[users][:, :, None])[:, :, 0]  # (BLOCK, k)
            told = zip(
                users.tolist(),
                sets.tolist(),
                means.tolist(),
                means.mean(1).tolist(),
                means.max(1).tolist(),
                strict=True,
            )
            for user, arms, mean, chance, best in told:
                decision_id, name = self._decision_id(place), f"user-{user:0{self._digits}}"
                ending = f'{name}","decision_id":"{decision_id}"}}'.encode()
                yield Question(decision_id, name, self._beginnings[arms] + ending, mean, chance, best)
                place += 1
