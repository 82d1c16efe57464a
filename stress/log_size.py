"""Measurement of the disk space per decision. It calls the engine of the service directly, without HTTP."""

from __future__ import annotations

import math
from random import Random
from typing import Any, NamedTuple

from sqlalchemy import func, select

from locb.recommender.commands import EncodedDecision, RecommendCommand, RewardCommand
from locb.recommender.user_index import UserIndex
from locb.service.config import ServiceConfig
from locb.service.core.background.retention import DROPPED_PER_STEP
from locb.service.core.model import load_or_create_model
from locb.service.core.service_engine import ServiceEngine
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, Features, RecommendRequest
from locb.service.store import schema as tables
from locb.service.store.log import EventLog
from stress.stores import StoreLocation

BATCH_SIZE = 64  # requests per commit
ITEMS = 500  # different arms
GENRES = ("drama", "comedy", "documentary", "thriller")


class Shape(NamedTuple):
    """Policy and requests of a measurement."""

    policy: str = "locb"
    arms: int = 2  # per request
    named: bool = True  # whether features are named, or an array of ``dim`` numbers
    dim: int = 24
    ranked: int | None = None  # maximum number of arms in the response; None: all


# The shapes with two arms have a limit; the documentation lists all of them.
SHAPES = (
    Shape("eloc"),
    Shape("eloc", named=False, dim=10),
    Shape(),
    Shape(named=False, dim=10),
    *(Shape(arms=arms, named=False, dim=10, ranked=ranked) for arms in (10, 100) for ranked in (1, None)),
    *(Shape(policy, 10, named=False, dim=10, ranked=1) for policy in ("linucb-ind", "eloc")),
)


def log_size(location: StoreLocation, shape: Shape, decisions: int = 8_000, users: int = 300) -> dict[str, Any]:
    """Write decisions, each with its reward, to an empty store, and return the number of bytes per decision."""
    rng = Random(0)
    log = EventLog(location.folder, location.url)
    try:
        config = ServiceConfig(location.folder, policy=shape.policy, dim=shape.dim)
        model, _ = load_or_create_model(config, log)
        engine = ServiceEngine(model.build(), UserIndex(model.initial_users), 0, cache_size=decisions)
        for written in range(0, decisions, BATCH_SIZE):
            requests = [_request(rng, shape, users) for _ in range(min(BATCH_SIZE, decisions - written))]
            now = 1.8e9 + written
            outcomes = _commit(
                engine, log, [RecommendCommand(parse_request(request, shape.dim), now) for request in requests]
            )
            rewards = [
                RewardCommand(outcome.decision_id, float(rng.random() < 0.4), now + 0.5)
                for outcome in outcomes
                if isinstance(outcome, EncodedDecision)
            ]
            _commit(engine, log, rewards)
        with log._reading() as connection:
            c = tables.decisions.c
            sums = select(func.sum(func.length(c.request)), func.sum(func.length(c.response)))
            request_bytes, response_bytes = connection.execute(sums).one()
        _vacuum(log)
        size = log.size_bytes() or 0
        while log.drop_payloads(math.inf, DROPPED_PER_STEP, keep_unrewarded=False):
            pass
        _vacuum(log)
        retained = log.size_bytes() or 0
    finally:
        log.close()
    return {
        "bytes per decision": round(size / decisions),
        "bytes per decision after --retain": round(retained / decisions),
        "bytes of the request": round(request_bytes / decisions),
        "bytes of the response": round(response_bytes / decisions),
    }


def _request(rng: Random, shape: Shape, users: int) -> RecommendRequest:
    arms = []
    for item in rng.sample(range(ITEMS), shape.arms):
        features: Features = [*(round(rng.uniform(-1.0, 1.0), 3) for _ in range(shape.dim - 1)), 1.0]
        if shape.named:
            features = {
                "genre": GENRES[item % 4],
                "length": 0.5 + item / 400,
                "new": item % 3 == 0,
                "price": 1.5 * item,
            }
        arms.append(Arm(f"article-{item:04d}", features))
    return RecommendRequest(f"user-{rng.randrange(users):05d}", arms, count=shape.ranked)


def _commit(engine: ServiceEngine, log: EventLog, commands: list[Any]) -> list[Any]:
    batch = engine.prepare(commands)
    log.commit(batch.records)
    engine.apply(batch)
    return batch.outcomes


def _vacuum(log: EventLog) -> None:
    """Remove unused space, so that the size does not depend on when the database has done so."""
    with log._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM" if log.backend == "sqlite" else "VACUUM FULL")
    log.wal_checkpoint(True)
