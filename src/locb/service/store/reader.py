"""Queries of the event log."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Engine, case, func, select
from sqlalchemy.exc import SQLAlchemyError

from locb.recommender.events import CORRECTION, DEFAULT, DecisionRow, FoundDecision
from locb.service.packed_responses import Renderer, seeds_of, unpack
from locb.service.store import integrity, sqlite, user_decisions
from locb.service.store import schema as tables
from locb.service.store.chain import Damage
from locb.service.store.database import StoreError, interrupt, pooled_connection, summarize_error
from locb.service.store.fencing import read_head
from locb.service.store.schema import RewardedDecision
from locb.service.store.totals import Totals, compute_totals

CHUNK_ROWS = 20_000  # rows that are read at a time
LARGE_CHUNK_ROWS = 10  # rows that are read at a time if their total size is limited
MAX_PARAMETERS = 500  # values per IN clause: SQLite limits the parameters of a statement


class LogReader:
    """Read access to the event log. Each query has its own connection, so any thread can call the methods.

    ``seq`` is the sequence number of an event. Ranges of events are given as ``after`` < seq ≤ ``until``; an ``until``
    of None means the end of the log.
    """

    _engine: Engine

    def ping(self) -> None:
        """Wait for a response of the database."""
        with self._reading() as connection:
            connection.execute(select(1))

    def interrupt(self) -> None:
        """End all reads and writes that wait for a PostgreSQL server; they raise ``StoreError``."""
        interrupt(self._engine)

    @property
    def backend(self) -> str:
        """Name of the database system: "sqlite" or "postgresql"."""
        return self._engine.dialect.name

    def size_bytes(self) -> int:
        """Return the size in bytes of the database file and its WAL file, or of the tables in PostgreSQL."""
        if self.backend == "sqlite":
            return sqlite.file_size(str(self._engine.url.database))
        with self._reading() as connection:
            sizes = [func.pg_total_relation_size(table.name) for table in tables.metadata.sorted_tables]
            return sum(int(size) for size in connection.execute(select(*sizes)).one())

    def settings(self) -> dict[str, Any]:
        """Return all settings of the store by name."""
        query = select(tables.settings).where(tables.settings.c.name != user_decisions.END_SETTING)
        with self._reading() as connection:
            return {name: json.loads(value) for name, value in connection.execute(query)}

    def dropped_until(self) -> int:
        """Return the sequence number of the last event whose payload was dropped; 0 if there is none."""
        with self._reading() as connection:
            return int(tables.read_setting(connection, tables.DROPPED_SETTING) or 0)

    def find(
        self, ids: Sequence[bytes], with_response: Container[bytes] = (), render: Renderer | None = None
    ) -> list[FoundDecision]:
        """Return the decisions with these ids, in any order. Ids that are not in the log are omitted.

        Decisions whose id is in ``with_response`` have the JSON that ``render`` returns; empty if it was dropped.
        """
        with self._reading() as connection:
            return _find(connection, tables.decisions.c.id, ids, with_response, render)

    def users(self) -> list[tuple[int, int, bytes | None]]:
        """Return (user_index, seq, name) of every user index, in order; the name is None if no user has the index."""
        table = tables.users
        query = select(table.c.user_index, table.c.seq, table.c.id).order_by(table.c.user_index)
        with self._reading() as connection:
            return [(user_index, seq, name) for user_index, seq, name in connection.execute(query)]

    def observations(self, after: int, until: int | None = None) -> Iterator[list[Any]]:
        """Yield chunks of (seq, user_index, kind, previous_reward, reward, context) in the order of the log."""
        c = tables.observations.c
        query = select(c.seq, c.user_index, c.kind, c.previous_reward, c.reward, c.context)
        return self._chunks(query, c.seq, after, until)

    def decisions(self, after: int = 0, until: int | None = None) -> Iterator[list[Any]]:
        """Yield chunks of decisions in the order of the log, with the columns of ``DecisionRow``."""
        return self._chunks(select(*tables.DECISION_COLUMNS), tables.decisions.c.seq, after, until)

    def recent_decisions(
        self, user_index: int, limit: int, max_bytes: float = math.inf, render: Renderer | None = None
    ) -> list[FoundDecision]:
        """Return the last ``limit`` decisions of a user, newest first, with the JSON responses that ``render`` returns.

        Decisions after the first one are omitted if the requests and responses exceed ``max_bytes`` in total.
        """
        found: list[FoundDecision] = []
        with self._reading() as connection:
            numbers = user_decisions.recent(connection, user_index, limit)
            for start in range(0, len(numbers), LARGE_CHUNK_ROWS):
                chunk = numbers[start : start + LARGE_CHUNK_ROWS]
                part = _find(connection, tables.decisions.c.seq, chunk, None, render)
                for row in sorted(part, key=lambda row: -row.decision.seq):
                    max_bytes -= len(row.decision.request) + len(row.response or b"")
                    if max_bytes < 0 and found:
                        return found
                    found.append(row)
        return found

    def totals(self, after: int, until: int, last: int) -> Totals:
        """Return the totals of the events with ``after`` < seq ≤ ``until``, as ``compute_totals`` does."""
        with self._reading() as connection:
            return compute_totals(connection, after, until, last)

    def counts(self, until: int) -> tuple[int, int]:
        """Return the number of decisions and of rewards with seq ≤ ``until``; corrections are not counted."""
        decisions, observations = tables.decisions.c, tables.observations.c
        decided = select(func.count()).where(decisions.seq <= until)
        rewarded = select(func.count()).where(observations.seq <= until, observations.kind < CORRECTION)
        with self._reading() as connection:
            return int(connection.execute(decided).scalar_one()), int(connection.execute(rewarded).scalar_one())

    def recent_responses(self, until: int, limit: int) -> list[tuple[int, float, bytes]]:
        """Return (seq, time, packed response) of the last ``limit`` decisions with seq ≤ ``until``, newest first."""
        c = tables.decisions.c
        query = select(c.seq, c.time, c.response).where(c.seq <= until, c.request != b"").order_by(c.seq.desc())
        with self._reading() as connection:
            return [(*row,) for row in connection.execute(query.limit(limit))]

    def recent_requests(self, limit: int, max_bytes: int) -> list[tuple[bytes, bytes]]:
        """Return the last recommend requests (MessagePack) with their packed responses, newest first.

        The result has at most ``limit`` requests, and ends with the request that exceeds ``max_bytes`` in total.
        """
        c = tables.decisions.c
        found: list[tuple[bytes, bytes]] = []
        with self._reading() as connection:
            query = select(c.request, c.response).where(c.request != b"").order_by(c.seq.desc()).limit(limit)
            for request, response in connection.execution_options(yield_per=1).execute(query):
                found.append((request, response))
                max_bytes -= len(request) + len(response)
                if max_bytes < 0:
                    break
        return found

    def first_reward_times(self, decisions: Sequence[int]) -> dict[int, float]:
        """Return the Unix time at which the first reward or default reward of each decision was learned.

        ``decisions`` and the keys of the result are sequence numbers. Decisions without a reward are omitted.
        """
        c = tables.observations.c
        found: dict[int, float] = {}
        with self._reading() as connection:
            for chunk in _parameter_chunks(decisions):
                query = select(c.decision_seq, c.time).where(c.kind < CORRECTION, c.decision_seq.in_(chunk))
                found |= {row.decision_seq: row.time for row in connection.execute(query)}
        return found

    def unrewarded_decisions(self) -> Iterator[list[Any]]:
        """Yield small chunks of decisions that wait for a reward, with the columns of ``DecisionRow``.

        Deferred decisions that are not activated, and decisions whose payload was dropped, are omitted.
        """
        c, observations = tables.decisions.c, tables.observations
        query = (
            select(*tables.DECISION_COLUMNS)
            .outerjoin(observations, observations.c.decision_seq == c.seq)
            .where(observations.c.seq.is_(None), c.active_at.is_not(None), c.request != b"")
        )
        return self._chunks(query, c.seq, 0, None, LARGE_CHUNK_ROWS)

    def decisions_with_rewards(self, chunk_rows: int | None = None) -> Iterator[list[RewardedDecision]]:
        """Yield chunks of decisions, each with its user, request, response and observations.

        ``chunk_rows`` is the number of decisions per chunk, by default ``CHUNK_ROWS``.
        """
        c, users, observed = tables.decisions.c, tables.users, tables.observations
        query = (
            select(
                c.seq, c.id, users.c.id.label("user"), c.time, c.request, c.response,
                observed.c.seq.label("observation_seq"), observed.c.kind, observed.c.reward,
                observed.c.time.label("observation_time"),
                case((c.request == b"", observed.c.context)).label("context"),
            )
            .join(users, users.c.user_index == c.user_index)
            .outerjoin(observed, observed.c.decision_seq == c.seq)
        )  # fmt: skip
        size = chunk_rows or CHUNK_ROWS
        rows = chain.from_iterable(self._chunks(query, c.seq, 0, None, size))
        found = (_rewarded_decision(list(group)) for _, group in groupby(rows, attrgetter("seq")))
        while chunk := list(islice(found, size)):
            yield chunk

    def base_policy(self) -> bytes:
        """Return the file of the saved policy from which the service started; empty if there is none."""
        with self._reading() as connection:
            return tables.read_base_policy(connection)

    # Integrity

    def check_sequence(self, after: int, with_replayed: bool = False) -> list[Damage]:
        """Return the damage of the hash chain, and gaps and duplicates in the events with seq > ``after``.

        With ``with_replayed``, also return users and observations whose content does not match their digest.
        """
        with self._reading() as connection:
            return list(integrity.check_sequence(connection, after, with_replayed))

    def check_recent(self, count: int) -> list[Damage]:
        """Return the damage of the content of the last ``count`` events."""
        with self._reading() as connection:
            last = read_head(connection).last_seq
            return list(integrity.check_contents(connection, max(0, last - count)))

    def check_all(self, limit: int) -> list[Damage]:
        """Return up to ``limit`` places where the log is damaged. This reads the whole log."""
        with self._reading() as connection:
            return list(islice(integrity.check_all(connection), limit))

    def _chunks(
        self, query: Any, seq: Any, after: int, until: int | None, chunk_rows: int | None = None
    ) -> Iterator[list[Any]]:
        query = query.where(seq > after).order_by(seq)
        if until is not None:
            query = query.where(seq <= until)
        with self._reading() as connection:
            result = connection.execution_options(yield_per=chunk_rows or CHUNK_ROWS).execute(query)
            for rows in result.partitions():
                yield list(rows)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """Open a connection for one query."""
        try:
            with pooled_connection(self._engine) as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StoreError(summarize_error(error)) from error


def _rewarded_decision(rows: Sequence[Any]) -> RewardedDecision:
    """Return a decision with its observations, from rows that have the decision and one observation each, or none."""
    first = rows[0]
    observed = sorted(tuple(row)[6:10] for row in rows if row.observation_seq is not None)
    default = next(((reward, time) for _, kind, reward, time in observed if kind == DEFAULT), (None, None))
    last = next(((reward, time) for _, kind, reward, time in observed[::-1] if kind != DEFAULT), (None, None))
    decision = first.seq, first.id, first.user, first.time, first.request, first.response
    return RewardedDecision(*decision, default[0], default[1], last[0], last[1], observed, first.context)


def _parameter_chunks(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), MAX_PARAMETERS):
        yield values[start : start + MAX_PARAMETERS]


def _find(
    connection: Connection,
    column: Any,
    values: Sequence[Any],
    with_response: Container[bytes] | None,
    render: Renderer | None,
) -> list[FoundDecision]:
    """Return the decisions with these values in a column, each with its last observation.

    Decisions whose id is in ``with_response`` have their JSON response; None stands for all ids.
    """
    found: list[FoundDecision] = []
    c = tables.observations.c
    for chunk in _parameter_chunks(values):
        matches = select(*tables.DECISION_COLUMNS).where(column.in_(chunk))
        rows = [DecisionRow(*row) for row in connection.execute(matches)]
        observed = select(c.decision_seq, c.kind, c.reward).where(c.decision_seq.in_([row.seq for row in rows]))
        last = {seq: (kind, reward) for seq, kind, reward in connection.execute(observed.order_by(c.seq))}
        wanted = [row for row in rows if with_response is None or row.id in with_response]
        rendered = {} if render is None else _render(connection, wanted, render)
        found += [FoundDecision(row, *last.get(row.seq, (None, None)), rendered.get(row.seq)) for row in rows]
    return found


def _render(connection: Connection, rows: Sequence[DecisionRow], render: Renderer) -> dict[int, bytes]:
    """Return the JSON response of each decision by its seq; empty if it was dropped."""
    dropped = {row.seq: b"" for row in rows if not row.request}
    rows = [row for row in rows if row.request]
    seeds = sorted(set().union(*(seeds_of(unpack(row.response)) for row in rows)))
    users = tables.users.c
    names: dict[int, tuple[int, str]] = {}  # event that assigned the index, and the name
    for chunk in _parameter_chunks(seeds):
        query = select(users.user_index, users.assigned_seq, users.id).where(users.user_index.in_(chunk))
        assigned = connection.execute(query.where(users.id.is_not(None)))
        names |= {user_index: (seq, name.decode()) for user_index, seq, name in assigned}

    def name_at(seq: int, user_index: int) -> str | None:
        """Return the user at an index, or None if another user had the index at the time of the event ``seq``."""
        assigned_seq, name = names.get(user_index, (seq, None))
        return name if assigned_seq < seq else None

    return dropped | {row.seq: render(row.id, row.request, row.response, partial(name_at, row.seq)) for row in rows}
