"""Start of a new store from a log or a saved policy (``--start-from``).

A log is imported as ordinary events: users, decisions without their requests, and observations. A saved policy is
stored as a file, from which every replay starts. The settings of the store get the model only in the last transaction
of an import. A store without a model is never served, and the next start with the same source repeats the import.
"""

from __future__ import annotations

import gc
import logging
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from locb.common.live_store import without_password
from locb.policies import POLICIES
from locb.policies.base.capabilities import SupportsSnapshot
from locb.policies.base.policy import ServablePolicy
from locb.recommender.events import Records
from locb.service.config import DEFAULT_POLICY, ServiceConfig
from locb.service.core.model import StoreModel, new_model
from locb.service.core.startup.replay import learn_chunk
from locb.service.core.startup.saved_policy import is_saved_policy, read_saved_policy, user_names
from locb.service.core.startup.snapshots import Snapshots
from locb.service.store import schema as tables
from locb.service.store.database import DuplicateDecisionError
from locb.service.store.log import EventLog
from locb.service.store.schema import FORMAT

if TYPE_CHECKING:
    from locb.service.core.startup.log_sources import LogSource

BATCH_EVENTS = 20_000  # events per transaction
BATCH_BYTES = 1 << 25  # bytes of features per transaction
EXTEND_BATCHES = (
    100  # transactions between extensions of the table of user decisions, which are faster if they are rare
)
MAX_ARM_IDS = 2_000  # ids of hashed arms that are kept, for the names of features on the dashboard
REPORT_INTERVAL = 2.0  # seconds between messages about the progress
USERS = "users"  # the option of a saved policy
_log = logging.getLogger("locb.service")


def start_from(config: ServiceConfig, log: EventLog) -> None:
    """Import the log or the saved policy of ``config.start_from`` into a new store.

    A store that was started from the same source is not changed. An import that did not finish is repeated.

    Raises
    ------
    ValueError
        If the store has events of another origin, the source cannot be read, or it contradicts the configuration.
    """
    source = config.start_from
    if source is None:
        return
    name = without_password(source) if "://" in source else str(Path(source).absolute())
    settings = log.settings()
    started = settings.get(tables.START_SETTING)
    if "model" in settings or (log.last_seq() and started is None):
        if started is None or started["source"] != name:
            found = "was not started from a log" if started is None else f"was started from {started['source']}"
            advice = "omit --start-from, or choose another --data-dir or --store for a new store"
            raise ValueError(f"--start-from {source} needs a new store, but the store has events and {found}: {advice}")
        _log.info("the store was started from %s before: nothing is imported again", name)
        return
    if started is not None:
        _log.warning("the import of %s did not finish: it starts again", started["source"])
        log.clear()
    store_id = secrets.token_hex(4) if started is None else started["store"]
    if is_saved_policy(source):
        _start_from_policy(config, log, store_id, name)
    else:
        with _garbage_collection_off():
            _start_from_log(config, log, store_id, name)


@contextmanager
def _garbage_collection_off() -> Iterator[None]:
    """Search for no reference cycles. Rows form none, and searching for them took a third of the time of an import."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _start_from_log(config: ServiceConfig, log: EventLog, store_id: str, name: str) -> None:
    from locb.service.core.startup.log_sources import open_log_source  # slow to import, and rarely needed

    _log.info("reading %s", name)
    try:
        opened = open_log_source(str(config.start_from), config.dim, config.start_options, f"import-{store_id}")
    except ModuleNotFoundError as error:
        raise ValueError(f"--start-from needs the package {error.name}: run pip install 'locb[data]'") from error
    try:
        for note in opened.notes:
            _log.warning("%s: %s", name, note)
        model = _model(config, opened)
        log.write_settings({tables.START_SETTING: {"source": name, "store": store_id}})
        snapshots = Snapshots(config.data_dir / "snapshots", store_id, config.snapshot_every)
        snapshots.remove_all()  # of an import that did not finish
        importer = Importer(log, model, opened.count)
        importer.run(opened.events)
    finally:
        opened.close()
    if isinstance(importer.policy, SupportsSnapshot):
        snapshots.write_if_supported(importer.policy, importer.last_seq)
        snapshots.wait()
    arm_ids = list(opened.arm_ids[:MAX_ARM_IDS])
    values = {tables.START_SETTING: {"source": name, "observations": importer.observations, "arms": arm_ids}}
    _finish(log, store_id, model, values | {tables.DROPPED_SETTING: importer.last_seq})
    _log.info("learned %d rewards of %d users from %s", importer.observations, importer.users, name)


def _model(config: ServiceConfig, opened: LogSource) -> StoreModel:
    """Return the model of the configuration. Without a policy and parameters, it is that of the service of the log."""
    if opened.model is not None and config.policy is None and not config.parameters:
        stored = opened.model
        if stored["policy"] not in POLICIES:
            custom = stored["policy"]
            raise ValueError(f"the log is that of the custom policy {custom!r}: pass --policy file.py:{custom}")
        _log.info("the policy is that of the log: %s with %s", stored["policy"], stored["parameters"])
        return StoreModel(**stored)
    return new_model(config.policy or DEFAULT_POLICY, opened.dim, config.parameters)


def _finish(log: EventLog, store_id: str, model: StoreModel, values: dict[str, Any], content: bytes = b"") -> None:
    """Write the model, and with it that the import is complete."""
    stored = {"format": FORMAT, "store": store_id, "model": model.settings(), "rebuilt_at": 0}
    log.write_settings(stored | values, content)
    log.wal_checkpoint()


class Importer:
    """Import of events: each batch is committed to the log, and then learned.

    Parameters
    ----------
    log : EventLog
        An empty log.
    model : StoreModel
        Model of the policy.
    count : int
        Number of observations of the source, for messages; 0 if it is not known.
    """

    def __init__(self, log: EventLog, model: StoreModel, count: int) -> None:
        self.policy: ServablePolicy = model.build()
        self.observations = 0
        self.last_seq = 0
        self.users = 0  # indices of users
        self._log = log
        self._count = count
        self._size = max(100, min(BATCH_EVENTS, BATCH_BYTES // (8 * model.dim)))
        self._batches = 0
        self._new_users: list[int] = []  # sequence numbers of users whom the policy does not have yet
        self._capacity = self.policy.n_users

    def run(self, events: Any) -> None:
        """Import all events."""
        start = reported = time.monotonic()
        for records in events.batches(self._size):
            self._commit(records)
            now = time.monotonic()
            if now - reported >= REPORT_INTERVAL:
                reported = now
                self._report(now - start)
        self._log.commit(Records())  # extends the table of user decisions
        if self._new_users:
            self.policy.add_users(len(self._new_users))
        self._report(time.monotonic() - start)

    def _commit(self, records: Records) -> None:
        self._batches += 1
        try:
            self._log.stage(records)
            self._log.commit_staged(extend=self._batches % EXTEND_BATCHES == 0)
        except DuplicateDecisionError as error:
            raise ValueError(f"the log has two decisions with the same id: {error}") from error
        if self._log.wal_pending:
            self._log.wal_checkpoint(True)
        for user_index, seq, _ in records.users:
            self.users = max(self.users, user_index + 1)
            if user_index >= self._capacity:  # otherwise, the policy has had the index from the start, or from before
                self._capacity = user_index + 1
                self._new_users.append(seq)
        if records.observations:
            for _ in learn_chunk(self.policy, records.observations, self._new_users):
                pass
        self.observations += len(records.observations)
        self.last_seq += len(records.users) + len(records.decisions) + len(records.observations)

    def _report(self, seconds: float) -> None:
        rate = self.observations / max(seconds, 1e-9)
        share = f" of {self._count:,} ({self.observations / self._count:.0%})" if self._count else ""
        left = (self._count - self.observations) / rate if rate else 0.0
        time_left = f", about {left:,.0f} s left" if left > 0.0 else ""
        _log.info("learned %s rewards%s, %s per second%s", f"{self.observations:,}", share, f"{rate:,.0f}", time_left)


# Saved policies


def _start_from_policy(config: ServiceConfig, log: EventLog, store_id: str, name: str) -> None:
    source = str(config.start_from)
    for option in config.start_options:
        if option != USERS:
            raise ValueError(f"--start-option {option} is not an option of a saved policy: its only option is {USERS}")
    model, content = read_saved_policy(source, config)
    names = user_names(model.initial_users, config.start_options.get(USERS))
    log.write_settings({tables.START_SETTING: {"source": name, "store": store_id}})
    for start in range(0, len(names), BATCH_EVENTS):
        part = enumerate(names[start : start + BATCH_EVENTS], start)
        log.commit(Records([(user_index, user_index + 1, user.encode()) for user_index, user in part]))
    _finish(log, store_id, model, {tables.START_SETTING: {"source": name, "users": len(names)}}, content)
    _log.info("the service starts from the saved policy %s with %d users", name, len(names))
