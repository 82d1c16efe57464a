"""Hash chain of the event log: a digest per event, and a running hash per commit.

The running hash of a commit covers the digests of all events up to this commit. The digest of an event is salted with
random bytes that belong to its user. An erasure deletes the events of a user together with the salt. The digests
remain, so that the chain can still be verified, but they reveal nothing about the erased events.

The payload of a decision is its request and its response. The digest of a decision covers the digest of its payload
instead of the payload itself, so a stored payload can be replaced by its digest without a change of the chain. The
chain does not cover activation times, which can change.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from locb.recommender.events import DecisionRow, ObservationRow, Records
from locb.service.store import schema as tables
from locb.service.store.database import FencedError, Writes
from locb.service.store.permissions import PRIVATE_FILE
from locb.service.store.schema import ERASURE, REBUILD, RECORDS, CommitRow, Head, UserRow

DIGEST_BYTES = 16
SALT_BYTES = 16
EMPTY = bytes(DIGEST_BYTES)  # running hash of an empty log
_USER = Struct("<cqi")
_DECISION = Struct("<cqidii16s")
_LENGTH = Struct("<i")
_OBSERVATION = Struct("<cqqihddd")
_COMMIT = Struct("<16sqi")
_SEQ = Struct("<cq")
_log = logging.getLogger("locb.service")


def digest_user(salt: bytes, seq: int, user_index: int, user: bytes | None) -> bytes:
    """Return the digest of the event that assigns an index to a user, or adds an index without a user (None)."""
    return _digest(salt + _USER.pack(b"U", seq, user_index) + (user or b""))


def digest_payload(salt: bytes, request: bytes, response: bytes) -> bytes:
    """Return the digest of the request and the response of a decision."""
    return _digest(salt + _LENGTH.pack(len(request)) + request + response)


def digest_decision(salt: bytes, row: DecisionRow) -> bytes:
    """Return the digest of a decision. A dropped payload has an empty request, and its digest as the response."""
    payload = digest_payload(salt, row.request, row.response) if row.request else row.response
    fields = _DECISION.pack(b"D", row.seq, row.user_index, row.time, row.chosen, len(row.id), payload)
    return _digest(salt + fields + row.id)


def digest_observation(salt: bytes, row: ObservationRow) -> bytes:
    """Return the digest of an observation."""
    fields = _OBSERVATION.pack(
        b"O", row.seq, row.decision_seq, row.user_index, row.kind, row.previous_reward, row.reward, row.time
    )
    return _digest(salt + fields + row.context)


def digest_erasure(seq: int, erased: Iterable[int]) -> bytes:
    """Return the digest of an erasure, which covers the sequence numbers of the erased events."""
    return _digest(_SEQ.pack(b"E", seq) + b"".join(_SEQ.pack(b"E", number) for number in sorted(erased)))


def digest_rebuild(seq: int) -> bytes:
    """Return the digest of a rebuild of the policy."""
    return _digest(_SEQ.pack(b"R", seq))


def running_hash(previous: bytes, previous_seq: int, kind: int, digests: bytes) -> bytes:
    """Return the running hash of a commit. ``previous`` is the running hash of the commit before it."""
    return _digest(_COMMIT.pack(previous, previous_seq, kind) + digests)


def _digest(content: bytes) -> bytes:
    return sha256(content).digest()[:DIGEST_BYTES]


def load_salts(connection: Connection) -> dict[int, bytes]:
    """Return the salt of each user by user index."""
    c = tables.users.c
    found = connection.execute(select(c.user_index, c.salt).where(c.salt.is_not(None)))
    return {user_index: salt for user_index, salt in found}  # noqa: C416 - a row is not a tuple for the type checker


def drop_payloads(connection: Connection, before: float, limit: int, keep_unrewarded: bool) -> int:
    """Replace the payloads of the oldest decisions by their digests in the current transaction.

    Parameters
    ----------
    connection : Connection
        Connection to the database.
    before : float
        Unix time. The first decision that is not older ends the step.
    limit : int
        Maximum number of decisions per step.
    keep_unrewarded : bool
        Whether the first decision that waits for its reward or default reward also ends the step.

    Returns
    -------
    int
        Number of decisions whose payloads were replaced.
    """
    c, observations, users = tables.decisions.c, tables.observations.c, tables.users.c
    position = tables.read_setting(connection, tables.DROPPED_SETTING) or 0
    rewards = select(observations.seq).where(observations.decision_seq == c.seq).correlate(tables.decisions)
    waits = c.active_at.is_not(None) & ~rewards.exists()
    oldest = select(*tables.DECISION_COLUMNS, waits.label("waits"))
    rows = connection.execute(oldest.where(c.seq > position).order_by(c.seq).limit(limit)).all()
    due = list(takewhile(lambda row: row.time < before and not (keep_unrewarded and row.waits), rows))
    if not due:
        return 0
    indices = {row.user_index for row in due}
    salted = select(users.user_index, users.salt).where(users.user_index.in_(indices), users.salt.is_not(None))
    salts = {user_index: salt for user_index, salt in connection.execute(salted)}  # noqa: C416 - as in load_salts
    without_payload = []
    for *fields, _ in due:
        row = DecisionRow(*fields)
        digest = digest_payload(salts.get(row.user_index, b""), row.request, row.response)
        without_payload.append(row._replace(request=b"", response=digest)._asdict())
    # Rows are deleted and inserted again, because SQLite does not reuse the space of rows that an update makes smaller.
    connection.execute(delete(tables.decisions).where(c.seq > position, c.seq <= due[-1].seq))
    connection.execute(insert(tables.decisions), without_payload)
    tables.write_settings(connection, {tables.DROPPED_SETTING: due[-1].seq})
    return len(due)


class Chain:
    """End of the hash chain, and the salts that are needed to continue it.

    Parameters
    ----------
    head : Head
        End of the log.
    salts : dict of int to bytes
        Salt of each user by user index.
    """

    def __init__(self, head: Head, salts: dict[int, bytes]) -> None:
        self.head = head
        self._salts = salts

    @classmethod
    def load(cls, connection: Connection, head: Head) -> Chain:
        """Return the end of the chain of a log that ends at ``head``."""
        return cls(head, load_salts(connection))

    def link(self, records: Records) -> Writes:
        """Return the rows to write: with salts, and with the commit that appends them to the chain.

        Raises
        ------
        FencedError
            If the first event does not follow the end of the log.
        """
        salts = self._salts
        users = []
        digests: dict[int, bytes] = {}
        for user_index, seq, name in records.users:
            salt = None if name is None else secrets.token_bytes(SALT_BYTES)
            users.append(UserRow(user_index, seq, seq, name, salt))
            salts[user_index] = salt or b""
            digests[seq] = digest_user(salt or b"", seq, user_index, name)
        for decision in records.decisions:
            digests[decision.seq] = digest_decision(salts.get(decision.user_index, b""), decision)
        for observation in records.observations:
            digests[observation.seq] = digest_observation(salts.get(observation.user_index, b""), observation)
        commit, head = self._link_events(digests, len(users) + len(records.decisions) + len(records.observations))
        return Writes(users, records.decisions, records.observations, records.activations, commit, self.head, head)

    def _link_events(self, digests: dict[int, bytes], count: int) -> tuple[CommitRow | None, Head]:
        """Return the row of the commit of ``count`` events, None without events, and the new end of the log."""
        if not count:
            return None, self.head
        first = self.head.last_seq + 1
        try:
            return _append(self.head, RECORDS, [digests[seq] for seq in range(first, first + count)])
        except KeyError:
            found = f"have sequence numbers from {min(digests)} to {max(digests)}"
            raise FencedError(f"the log ends at event {first - 1}, but the {count} new events {found}") from None

    def link_erasures(self, erased: Iterable[Iterable[int]]) -> tuple[list[CommitRow], Head]:
        """Return the row of the commit that erases the events of each user, and the new end of the log."""
        commits, head = list[CommitRow](), self.head
        for events in erased:
            commit, head = _append(head, ERASURE, [digest_erasure(head.last_seq + 1, events)])
            commits.append(commit)
        return commits, head

    def link_rebuild(self) -> tuple[CommitRow, Head]:
        """Return the row of the commit that records a rebuild of the policy, and the new end of the log."""
        return _append(self.head, REBUILD, [digest_rebuild(self.head.last_seq + 1)])


def _append(head: Head, kind: int, digests: Sequence[bytes]) -> tuple[CommitRow, Head]:
    epoch, last_seq, previous = head
    joined = b"".join(digests)
    new_hash = running_hash(previous, last_seq, kind, joined)
    return CommitRow(last_seq, epoch, kind, joined, new_hash), Head(epoch, last_seq + len(digests), new_hash)


class Damage(NamedTuple):
    """Damage of the log: the sequence number of the first event concerned, and a description."""

    seq: int
    description: str


class PositionFile:
    """File in the data folder with the last committed event and its running hash.

    With this file, the loss of the last commits is detected. The log alone cannot show the loss, because the earlier
    commits form a valid chain.

    Parameters
    ----------
    path : Path
        Path of the file, created if needed.
    store_id : str
        Id of the store. The position of another store is ignored.
    """

    def __init__(self, path: Path, store_id: str) -> None:
        self.path = path
        self._store_id = store_id
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)

    def close(self) -> None:
        """Close the file; closing it again has no effect."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def write(self, head: Head) -> None:
        """Record the end of the log without fsync, so the file may name an earlier event after a power failure."""
        if self._file < 0:
            return
        try:
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, f"{self._store_id} {head.last_seq:020d} {head.hash.hex()}\n".encode())
        except OSError as error:
            _log.warning("cannot write %s, so a loss of the newest events cannot be detected: %s", self.path, error)

    def check(self, connection: Connection, head: Head) -> Damage | None:
        """Return the damage if a log that ends at ``head`` does not contain the recorded event; otherwise None."""
        os.lseek(self._file, 0, os.SEEK_SET)
        found = os.read(self._file, 200).decode(errors="replace").split()
        if len(found) != 3 or found[0] != self._store_id:
            return None
        seq = int(found[1])
        if seq > head.last_seq:
            lost = f"the log ends at event {head.last_seq}, but events up to {seq} were written"
            return Damage(head.last_seq + 1, f"missing: {lost} (to continue without them, delete {self.path})")
        c = tables.commits.c
        last = select(c.hash).where(c.previous_seq < seq).order_by(c.previous_seq.desc()).limit(1)
        if seq and (connection.execute(last).scalar() or b"").hex() != found[2]:
            differs = "differs from the event that is recorded in the data folder"
            return Damage(seq, f"{differs} (to continue with this log, delete {self.path})")
        return None
