"""Hash chain of the event log: a digest of each event, and a running hash of all commits.

The digest of an event is salted with random bytes of its user. When the user is erased, the salt is deleted with the
events. The digests stay, so that the chain can still be verified, but reveal nothing about the erased events.

The digest of a decision contains the request only as a digest, so a request can be replaced by its digest later.
Responses and activation times are not part of the chain, because they change: an erasure redacts responses.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from hashlib import sha256
from struct import Struct

from sqlalchemy import Connection, select

from locb.service.store import schema as tables
from locb.service.store.database import FencedError
from locb.service.store.schema import (
    ERASURE,
    REBUILD,
    RECORDS,
    CommitRow,
    DecisionRow,
    Head,
    ObservationRow,
    Records,
    UserRow,
)

DIGEST_BYTES = 16
SALT_BYTES = 16
EMPTY = bytes(DIGEST_BYTES)  # running hash of an empty log
_USER = Struct("<cqi")
_DECISION = Struct("<cqidii16s")
_OBSERVATION = Struct("<cqqihddd")
_COMMIT = Struct("<16sqi")
_SEQ = Struct("<cq")


def digest_user(salt: bytes, seq: int, user_index: int, user: bytes | None) -> bytes:
    """Return the digest of the event that assigns an index to a user."""
    return _digest(salt + _USER.pack(b"U", seq, user_index) + (user or b""))


def digest_request(salt: bytes, request: bytes) -> bytes:
    """Return the digest of the request of a decision."""
    return _digest(salt + request)


def digest_decision(salt: bytes, row: DecisionRow) -> bytes:
    """Return the digest of a decision."""
    request = digest_request(salt, row.request)
    fields = _DECISION.pack(b"D", row.seq, row.user_index, row.time, row.chosen, len(row.id), request)
    return _digest(salt + fields + row.id + row.context)


def digest_observation(salt: bytes, row: ObservationRow) -> bytes:
    """Return the digest of an observation."""
    fields = _OBSERVATION.pack(
        b"O", row.seq, row.decision_seq, row.user_index, row.kind, row.previous_reward, row.reward, row.time
    )
    return _digest(salt + fields + row.context)


def digest_erasure(seq: int, erased: Iterable[int]) -> bytes:
    """Return the digest of an erasure and of the sequence numbers of the erased events."""
    return _digest(_SEQ.pack(b"E", seq) + b"".join(_SEQ.pack(b"E", number) for number in sorted(erased)))


def digest_rebuild(seq: int) -> bytes:
    """Return the digest of a rebuild of the policy."""
    return _digest(_SEQ.pack(b"R", seq))


def running_hash(previous: bytes, previous_seq: int, kind: int, digests: bytes) -> bytes:
    """Return the running hash after a commit."""
    return _digest(_COMMIT.pack(previous, previous_seq, kind) + digests)


def _digest(content: bytes) -> bytes:
    return sha256(content).digest()[:DIGEST_BYTES]


def load_salts(connection: Connection) -> dict[int, bytes]:
    """Return the salt of each user by user index."""
    c = tables.users.c
    found = connection.execute(select(c.user_index, c.salt).where(c.salt.is_not(None)))
    return {user_index: salt for user_index, salt in found}  # noqa: C416 - a row is not a tuple for the type checker


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

    def link(self, records: Records) -> tuple[list[UserRow], CommitRow | None, Head]:
        """Return the rows of the users, the row of the commit (None without events), and the new end of the log.

        Raises
        ------
        FencedError
            If the first event does not follow the end of the log.
        """
        if not (records.users or records.decisions or records.observations):
            return [], None, self.head
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
        first = self.head.last_seq + 1
        count = len(records.users) + len(records.decisions) + len(records.observations)
        try:
            commit, head = self._append(RECORDS, [digests[seq] for seq in range(first, first + count)])
        except KeyError:
            found = f"from {min(digests)} to {max(digests)}"
            raise FencedError(f"the log ends at event {first - 1}, but {count} new events are {found}") from None
        return users, commit, head

    def link_erasure(self, erased: Sequence[int]) -> tuple[CommitRow, Head]:
        """Return the row of the commit that erases these events, and the new end of the log."""
        return self._append(ERASURE, [digest_erasure(self.head.last_seq + 1, erased)])

    def link_rebuild(self) -> tuple[CommitRow, Head]:
        """Return the row of the commit that records a rebuild of the policy, and the new end of the log."""
        return self._append(REBUILD, [digest_rebuild(self.head.last_seq + 1)])

    def _append(self, kind: int, digests: Sequence[bytes]) -> tuple[CommitRow, Head]:
        epoch, last_seq, previous = self.head
        joined = b"".join(digests)
        new_hash = running_hash(previous, last_seq, kind, joined)
        return CommitRow(last_seq, epoch, kind, joined, new_hash), Head(epoch, last_seq + len(digests), new_hash)
