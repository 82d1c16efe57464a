"""Audit of an event log: check that it is intact, and that a replay of the log makes the same decisions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import Any

from locb.common.arrays import Floats
from locb.policies import Policy
from locb.policies.base.policy import ServablePolicy
from locb.service.config import ServiceConfig
from locb.service.core.learning import learn
from locb.service.core.model import StoreModel, load_or_create_model
from locb.service.request_parsing import parse_stored_request
from locb.service.store.chain import Damage
from locb.service.store.log import EventLog

MAX_DAMAGE = 20  # damaged events that ``check_log`` reports


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Decision for which the replayed policy chooses an arm that differs from the logged arm.

    Attributes
    ----------
    seq : int
        Sequence number of the decision in the log.
    logged, replayed : int
        Arm in the log and arm in the replay, as positions among the arms that the request does not exclude.
    """

    seq: int
    logged: int
    replayed: int


def audit(data_dir: str | os.PathLike[str], store: str | None = None) -> tuple[Policy, list[Mismatch]]:
    """Replay the log of a stopped service, and repeat each decision since the policy was last rebuilt.

    Two kinds of decisions cannot be repeated: decisions before the rebuild, which may depend on erased users, and
    decisions whose requests were dropped (``--retain``). The rewards of all decisions are replayed.

    Parameters
    ----------
    data_dir : path
        The value of ``--data-dir``.
    store : str or None, default None
        The value of ``--store``.

    Returns
    -------
    policy : Policy
        The policy at the end of the log.
    mismatches : list of Mismatch
        Decisions for which the replayed policy chooses a different arm; empty if the log is consistent.

    Raises
    ------
    AlreadyOpenError
        If the service is running.
    ValueError
        If ``data_dir`` is not a folder or has no event log.
    """
    with _opened(data_dir, store) as (log, settings):
        model, _ = load_or_create_model(ServiceConfig(Path(data_dir), store), log)
        rebuilt_at = settings["rebuilt_at"]
        return repeat_decisions(log, model, log.last_seq() if rebuilt_at is None else rebuilt_at)


def check_log(
    data_dir: str | os.PathLike[str], store: str | None = None, limit: int = MAX_DAMAGE
) -> tuple[int, list[Damage], int]:
    """Compare every event in the log of a stopped service with its digest, and the digests with the running hash.

    Parameters
    ----------
    data_dir : path
        The value of ``--data-dir``.
    store : str or None, default None
        The value of ``--store``.
    limit : int
        Maximum number of damaged events to return.

    Returns
    -------
    events : int
        Sequence number of the last event.
    damage : list of Damage
        The first damaged events; empty if the log is intact.
    dropped_until : int
        Sequence number of the last event whose request and response were dropped, and replaced by their digest; 0 if
        there is none.

    Raises
    ------
    AlreadyOpenError
        If the service is running.
    ValueError
        If ``data_dir`` is not a folder or has no event log.
    """
    with _opened(data_dir, store) as (log, settings):
        damage = log.check_all(limit)
        missing = log.track_position(settings["store"])
        return log.last_seq(), damage if missing is None else [*damage, missing], log.dropped_until()


@contextmanager
def _opened(data_dir: str | os.PathLike[str], store: str | None) -> Iterator[tuple[EventLog, dict[str, Any]]]:
    """Open the log of a stopped service, and yield it with its settings."""
    folder = Path(data_dir)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder: pass the --data-dir of a service")
    log = EventLog(folder, store)
    try:
        if "model" not in (settings := log.settings()):
            raise ValueError(f"{folder} has no event log: pass the --data-dir and --store of a service")
        yield log, settings
    finally:
        log.close()


def repeat_decisions(
    log: EventLog, model: StoreModel, after: int, inspect: Callable[[ServablePolicy, Any, Floats], None] | None = None
) -> tuple[Policy, list[Mismatch]]:
    """Replay the whole log on a new policy, and repeat each decision with seq > ``after`` whose request is in the log.

    ``inspect``, if given, is called with the policy, the row in the log and the contexts of each repeated decision.

    Returns
    -------
    policy : Policy
        The policy at the end of the log.
    mismatches : list of Mismatch
        Decisions for which the replayed policy chooses a different arm.
    """
    policy = model.build()
    mismatches: list[Mismatch] = []
    new_users = sorted(seq for index, seq, _ in log.users() if index >= policy.n_users)
    dropped = log.dropped_until()
    events = merge(  # lazily, because requests and responses are large
        ((seq, "user", None) for seq in new_users),
        ((row.seq, "decision", row) for chunk in log.decisions(max(after, dropped)) for row in chunk),
        ((row.seq, "observation", row) for chunk in log.observations(0) for row in chunk),
        key=itemgetter(0),
    )
    for seq, kind, row in events:
        if kind == "user":
            policy.add_users(1)
        elif kind == "decision":
            contexts = parse_stored_request(row.request, model.dim).contexts
            if inspect is not None:
                inspect(policy, row, contexts)
            arm = policy.recommend(row.user_index, contexts)
            if arm != row.chosen:
                mismatches.append(Mismatch(seq, row.chosen, arm))
        else:
            learn(policy, [row])
    return policy, mismatches
