"""A long past in a short time: decisions and rewards through the engine itself, in large batches, without HTTP."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from locb.environments import Synthetic
from locb.service.config import ServiceConfig
from locb.service.core.commands import EncodedDecision, RecommendCommand, RewardCommand
from locb.service.core.engine import Engine
from locb.service.core.model import load_or_create_model
from locb.service.core.user_index import UserIndex
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest
from locb.service.store.log import EventLog

AT_ONCE = 500  # about as many as wait for a busy service, so that users come in between as they would
DIM = 10
ARMS = 5


def live(folder: Path, store: str | None, events: int, users: int, seed: int = 0) -> int:
    """Fill an empty store with so many events, half of them decisions and half rewards; how many there are."""
    log = EventLog(folder, store)
    try:
        model, _ = load_or_create_model(ServiceConfig(folder, dim=DIM), log)
        engine = Engine(model.build(), UserIndex(model.initial_users), log.last_seq())
        world = Synthetic(n_users=users, n_clusters=10, raw_dim=DIM - 1, n_arms=ARMS, seed=seed)
        rng = np.random.default_rng(seed)
        names = [f"arm-{arm}" for arm in range(ARMS)]
        number = 0
        while engine.seq < events:
            rounds = world.draw(rng, min(AT_ONCE, (events - engine.seq + 1) // 2))
            now = time.time()
            asks = []
            for user, contexts in zip(rounds.users.tolist(), rounds.contexts.tolist(), strict=True):
                arms = [Arm(name, features) for name, features in zip(names, contexts, strict=True)]
                request = RecommendRequest(f"user-{user}", arms, count=1, decision_id=f"past-{number:08x}")
                asks.append(RecommendCommand(parse_request(request, DIM), now))
                number += 1
            batch = engine.prepare(asks)
            log.commit(batch.records)
            engine.apply(batch)
            chosen = [row.chosen for row in batch.records.decisions]
            pays = [
                RewardCommand(asked.decision_id, float(rewards[arm]), now)
                for asked, rewards, arm in zip(batch.outcomes, rounds.rewards, chosen, strict=True)
                if isinstance(asked, EncodedDecision)
            ]
            batch = engine.prepare(pays)
            log.commit(batch.records)
            engine.apply(batch)
        return engine.seq
    finally:
        log.close()
