"""Integrity check of the event log: gaps, duplicates, order, hash chain, and the content of each event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import chain
from typing import Any

from sqlalchemy import Connection, Table, except_, func, select, union

from locb.recommender.events import DecisionRow, ObservationRow
from locb.service.store import schema as tables
from locb.service.store.chain import (
    DIGEST_BYTES,
    EMPTY,
    Damage,
    digest_decision,
    digest_erasure,
    digest_observation,
    digest_rebuild,
    digest_user,
    load_salts,
    running_hash,
)
from locb.service.store.database import StoreError
from locb.service.store.fencing import read_head
from locb.service.store.schema import ERASURE, RECORDS, CommitRow, Head

EVENTS_PER_STEP = 20_000  # events whose rows are read at a time
_EDITED = "edited: its content does not match its digest"


class DamagedLogError(StoreError):
    """The event log is damaged: events are missing, duplicate or edited."""


def check_sequence(connection: Connection, after: int, with_replayed: bool = False) -> Iterator[Damage]:
    """Yield the damage of the hash chain, and of the sequence numbers of the events with seq > ``after``.

    The content of the events is not read: a check takes about 3 µs per commit, and less per event. With
    ``with_replayed``, the content of users and observations, which a replay reads, is checked in 3 µs per event.
    """
    head, damage = read_head(connection), list[Damage]()
    salts = load_salts(connection) if with_replayed else {}
    for window in _windows(_verified_commits(connection, *_find_commit(connection, after), head, damage)):
        if with_replayed:
            yield from _check_replayed(connection, window, salts)
    yield from damage
    counts = [
        connection.execute(select(func.count(), func.sum(query.c.seq)).select_from(query)).one()
        for query in _counted_tables(after)
    ]
    kinds = tables.commits.c
    control = select(func.count(), func.sum(kinds.previous_seq + 1)).where(kinds.kind != RECORDS)
    counts.append(connection.execute(control.where(kinds.previous_seq >= after)).one())
    number, total = sum(count for count, _ in counts), sum(int(total or 0) for _, total in counts)
    expected = head.last_seq - after
    if not damage and (number, total) != (expected, expected * (after + head.last_seq + 1) // 2):
        yield from _locate(connection, after, head.last_seq)


def check_contents(connection: Connection, after: int) -> Iterator[Damage]:
    """Yield the damage of the events with seq > ``after``: of their sequence numbers, content and hash chain."""
    head, salts, damage = read_head(connection), load_salts(connection), list[Damage]()
    for window in _windows(_verified_commits(connection, *_find_commit(connection, after), head, damage)):
        yield from _check_window(connection, window, salts)
    yield from damage


def check_all(connection: Connection) -> Iterator[Damage]:
    """Yield the damage of the whole log."""
    yield from check_contents(connection, 0)
    model = tables.read_setting(connection, "model")
    base = None if model is None else model.get("base")
    if base is not None and sha256(tables.read_base_policy(connection)).hexdigest() != base:
        yield Damage(1, "follows the saved policy of --start-from, which is missing or damaged")
    head = read_head(connection)
    for query in _counted_tables(head.last_seq):
        first = connection.execute(select(func.min(query.c.seq))).scalar()
        if first is not None:
            yield Damage(first, f"follows the end of the log, event {head.last_seq}")


# The hash chain


def _find_commit(connection: Connection, seq: int) -> tuple[int, bytes]:
    """Return the last event before the commit that contains event ``seq`` + 1, and the running hash at that event."""
    c = tables.commits.c
    rows = connection.execute(
        select(c.previous_seq, c.hash).where(c.previous_seq <= seq).order_by(c.previous_seq.desc()).limit(2)
    ).all()
    if not rows:
        return 0, EMPTY
    return rows[0].previous_seq, rows[1].hash if len(rows) > 1 else EMPTY


def _verified_commits(
    connection: Connection, start: int, hash_before: bytes, head: Head, damage: list[Damage]
) -> Iterator[CommitRow]:
    """Yield the commits after event ``start`` up to the first damaged commit, and append the damage to ``damage``."""
    position, running, epoch = start, hash_before, 0
    c = tables.commits.c
    query = select(*tables.commits.c).where(c.previous_seq >= start).order_by(c.previous_seq)
    with connection.execute(query, execution_options={"yield_per": EVENTS_PER_STEP}) as result:
        for row in chain.from_iterable(result.partitions()):
            commit = CommitRow(*row)
            if commit.previous_seq != position:
                relation = "missing" if commit.previous_seq > position else "written twice"
                damage.append(Damage(min(position, commit.previous_seq) + 1, f"{relation} in the table locb_commits"))
                return
            running = running_hash(running, position, commit.kind, commit.digests)
            if running != commit.hash or len(commit.digests) % DIGEST_BYTES:
                damage.append(Damage(position + 1, "the running hash of its commit does not match the digests"))
                return
            if commit.epoch < epoch:
                cause = f"its commit has epoch {commit.epoch}, but an earlier commit has epoch {epoch}"
                damage.append(Damage(position + 1, cause))
                return
            position += len(commit.digests) // DIGEST_BYTES
            epoch = commit.epoch
            yield commit
    if position < head.last_seq:
        cause = f"missing in the table locb_commits: the log ends at event {head.last_seq}"
        damage.append(Damage(position + 1, cause))
    elif position > head.last_seq:
        cause = f"follows the end of the log, event {head.last_seq}, in the table locb_commits"
        damage.append(Damage(head.last_seq + 1, cause))
    elif running != head.hash:
        damage.append(Damage(position, "the running hash of its commit does not match the table locb_head"))


def _windows(commits: Iterable[CommitRow]) -> Iterator[list[CommitRow]]:
    """Yield lists of consecutive commits with about ``EVENTS_PER_STEP`` events."""
    window: list[CommitRow] = []
    count = 0
    for commit in commits:
        window.append(commit)
        count += len(commit.digests) // DIGEST_BYTES
        if count >= EVENTS_PER_STEP:
            yield window
            window, count = [], 0
    if window:
        yield window


# The rows of the events


def _counted_tables(after: int) -> list[Any]:
    """Return one query per table, which selects the sequence numbers of its events with seq > ``after``."""
    users, erased = tables.users.c, tables.erasures.c
    named = union(
        select(users.seq.label("seq")).where(users.seq > after),
        select(users.assigned_seq.label("seq")).where(users.assigned_seq > after),
    ).subquery()
    queries = [except_(select(named.c.seq), select(erased.seq).where(erased.seq > after)).subquery()]
    others = (tables.decisions, tables.observations, tables.erasures)
    return queries + [select(table.c.seq).where(table.c.seq > after).subquery() for table in others]


def _locate(connection: Connection, after: int, last: int) -> Iterator[Damage]:
    """Yield the events with seq > ``after`` that are missing, occur several times, or follow the end of the log."""
    found: Counter[int] = Counter()
    for query in _counted_tables(after):
        found.update(connection.execute(select(query.c.seq)).scalars())
    c = tables.commits.c
    control = select(c.previous_seq + 1).where(c.kind != RECORDS, c.previous_seq >= after)
    found.update(connection.execute(control).scalars())
    for seq in range(after + 1, last + 1):
        if found[seq] != 1:
            yield Damage(seq, f"occurs {found[seq]} times" if found[seq] else "missing")
    yield from (Damage(seq, f"follows the end of the log, event {last}") for seq in sorted(found) if seq > last)


def _check_replayed(connection: Connection, commits: list[CommitRow], salts: dict[int, bytes]) -> Iterator[Damage]:
    """Yield the users and observations of some commits whose content does not match their digest."""
    after, digests = commits[0].previous_seq, b"".join(commit.digests for commit in commits)
    until = after + len(digests) // DIGEST_BYTES
    for seq, digest in _replayed_digests(connection, after, until, salts):
        start = (seq - after - 1) * DIGEST_BYTES
        if digest not in (None, digests[start : start + DIGEST_BYTES]):
            yield Damage(seq, _EDITED)


def _check_window(connection: Connection, commits: list[CommitRow], salts: dict[int, bytes]) -> Iterator[Damage]:
    """Yield the damage of the events of some commits: rows that are missing, duplicate, or do not match a digest."""
    after = commits[0].previous_seq
    digests = b"".join(commit.digests for commit in commits)
    until = after + len(digests) // DIGEST_BYTES
    computed: dict[int, list[bytes | None]] = {}
    damaged: list[Damage] = []
    row_digests = chain(
        _replayed_digests(connection, after, until, salts), _decision_digests(connection, after, until, salts)
    )
    for seq, digest in row_digests:
        computed.setdefault(seq, []).append(digest)
    for commit in commits:
        if commit.kind != RECORDS:
            seq = commit.previous_seq + 1
            computed.setdefault(seq, []).append(_control_digest(connection, seq, commit.kind))
    for number, seq in enumerate(range(after + 1, until + 1)):
        rows = computed.get(seq, [])
        if not rows:
            damaged.append(Damage(seq, "missing"))
        elif len(rows) > 1:
            damaged.append(Damage(seq, f"occurs {len(rows)} times"))
        elif rows[0] not in (None, digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]):
            damaged.append(Damage(seq, _EDITED))
    yield from sorted(damaged)


def _rows(connection: Connection, table: Table, after: int, until: int) -> Any:
    return connection.execute(select(table).where(table.c.seq > after, table.c.seq <= until))


def _replayed_digests(
    connection: Connection, after: int, until: int, salts: dict[int, bytes]
) -> Iterator[tuple[int, bytes | None]]:
    """Yield the sequence number and the digest of each user and observation with ``after`` < seq ≤ ``until``.

    The digest of an erased event, also of an erased decision, is None.
    """
    erased = {row.seq for row in _rows(connection, tables.erasures, after, until)}
    yield from ((seq, None) for seq in erased)
    users = tables.users.c
    in_range = users.seq.between(after + 1, until) | users.assigned_seq.between(after + 1, until)
    for row in connection.execute(select(tables.users).where(in_range)):
        events = {row.seq: (b"", None)} | {row.assigned_seq: (row.salt or b"", row.id)}
        for seq, (salt, name) in events.items():
            if after < seq <= until and seq not in erased:
                yield seq, digest_user(salt, seq, row.user_index, name)
    for row in _rows(connection, tables.observations, after, until):
        yield row.seq, digest_observation(salts.get(row.user_index, b""), ObservationRow(*row))


def _decision_digests(
    connection: Connection, after: int, until: int, salts: dict[int, bytes]
) -> Iterator[tuple[int, bytes]]:
    """Yield the sequence number and the digest of each decision with ``after`` < seq ≤ ``until``."""
    dropped = tables.read_setting(connection, tables.DROPPED_SETTING) or 0
    for row in _rows(connection, tables.decisions, after, until):
        is_valid = row.request or row.seq <= dropped
        yield row.seq, digest_decision(salts.get(row.user_index, b""), DecisionRow(*row)) if is_valid else b""


def _control_digest(connection: Connection, seq: int, kind: int) -> bytes:
    if kind != ERASURE:
        return digest_rebuild(seq)
    erased = tables.erasures.c
    return digest_erasure(seq, connection.execute(select(erased.seq).where(erased.erasure_seq == seq)).scalars())
