"""Generator of a long event log. It calls the engine of the service directly, without HTTP."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from locb.environments import Synthetic
from locb.recommender.commands import EncodedDecision, RecommendCommand, RewardCommand
from locb.recommender.user_index import UserIndex
from locb.service.config import ServiceConfig
from locb.service.core.model import load_or_create_model
from locb.service.core.service_engine import ServiceEngine
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest
from locb.service.store.log import EventLog

BATCH_SIZE = 500  # requests per batch, similar to a service under load
DIM = 10  # features per arm
ARMS = 5  # arms per decision


def generate_history(
    folder: Path,
    store: str | None,
    events: int,
    users: int,
    seed: int = 0,
    policy: str | None = None,
    seconds: float = 0.0,
) -> int:
    """Fill an empty store with decisions and their rewards, and return the number of events.

    Parameters
    ----------
    folder : Path
        Data folder.
    store : str or None
        Address of the PostgreSQL database; None for SQLite.
    events : int
        Number of events. Half of them are decisions, and half are rewards.
    users : int
        Number of users.
    seed : int, default 0
        Random seed.
    policy : str or None, default None
        Name of the policy; None for the default policy.
    seconds : float, default 0.0
        Period that ends now, over which the events are distributed evenly; 0 for the current time.
    """
    end = time.time()
    log = EventLog(folder, store)
    try:
        config = ServiceConfig(folder, policy=policy, dim=DIM)
        model, _ = load_or_create_model(config, log)
        users_in_policy = UserIndex(model.initial_users)
        engine = ServiceEngine(model.build(), users_in_policy, log.last_seq(), cache_size=config.decision_cache)
        environment = Synthetic(n_users=users, n_clusters=10, raw_dim=DIM - 1, n_arms=ARMS, seed=seed)
        rng = np.random.default_rng(seed)
        names = [f"arm-{arm}" for arm in range(ARMS)]
        number = 0
        while engine.seq < events:
            rounds = environment.draw(rng, min(BATCH_SIZE, (events - engine.seq + 1) // 2))
            commands: list[RecommendCommand] = []
            seq = engine.seq
            for user, contexts in zip(rounds.users.tolist(), rounds.contexts.tolist(), strict=True):
                arms = [Arm(name, features) for name, features in zip(names, contexts, strict=True)]
                request = RecommendRequest(f"user-{user}", arms, count=1, decision_id=f"past-{number:08x}")
                now = end - seconds * max(0.0, 1.0 - (seq + 2 * len(commands)) / events)
                commands.append(RecommendCommand(parse_request(request, DIM), now))
                number += 1
            batch = engine.prepare(commands)
            log.commit(batch.records)
            engine.apply(batch)
            chosen = [row.chosen for row in batch.records.decisions]
            reward_commands = [
                RewardCommand(outcome.decision_id, float(rewards[arm]), command.now)
                for command, outcome, rewards, arm in zip(commands, batch.outcomes, rounds.rewards, chosen, strict=True)
                if isinstance(outcome, EncodedDecision)
            ]
            batch = engine.prepare(reward_commands)
            log.commit(batch.records)
            engine.apply(batch)
        return engine.seq
    finally:
        log.close()
