"""Reading the log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Condition
from typing import Any

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from locb.service.store import schema as tables
from locb.service.store import user_decisions as decided
from locb.service.store.database import StoreError, reason
from locb.service.store.rows import DecisionRow, FoundDecision
from locb.service.store.totals import Totals, add_up

CHUNK = 20_000  # rows read at a time


class Reader:
    """What a log can be asked. Each question has a connection of its own, so that any thread may ask."""

    _engine: Engine

    def __init__(self) -> None:
        self._reads = 0  # under way, in whatever thread
        self._readers = Condition()

    def settings(self) -> dict[str, Any]:
        """All settings by name."""
        chosen = select(tables.settings).where(tables.settings.c.name != decided.MARK)
        with self._reading() as connection:
            return {name: json.loads(value) for name, value in connection.execute(chosen)}

    def find(self, names: Sequence[bytes]) -> list[FoundDecision]:
        """The decisions of these names that are in the log."""
        with self._reading() as connection:
            return _find(connection, tables.decisions.c.id, names)

    def users(self) -> list[tuple[int, int, bytes | None]]:
        """Place, seq and name of every place."""
        with self._reading() as connection:
            chosen = select(tables.users.c.place, tables.users.c.seq, tables.users.c.id).order_by(tables.users.c.place)
            return [(place, seq, name) for place, seq, name in connection.execute(chosen)]

    def observations(self, after: int, until: int | None = None) -> Iterator[list[Any]]:
        """Chunks of (seq, place, kind, learned, reward, context) in the order of the log."""
        table = tables.observations
        chosen = select(table.c.seq, table.c.place, table.c.kind, table.c.learned, table.c.reward, table.c.context)
        return self._chunks(chosen, table.c.seq, after, until)

    def decisions(self, after: int = 0, until: int | None = None) -> Iterator[list[Any]]:
        """Chunks of decisions in the order of the log, each as a ``DecisionRow``."""
        return self._chunks(select(tables.decisions), tables.decisions.c.seq, after, until)

    def decisions_of(self, place: int, limit: int) -> list[FoundDecision]:
        """The last decisions for one user, the newest first."""
        with self._reading() as connection:
            found = _find(connection, tables.decisions.c.seq, decided.last_of(connection, place, limit))
        return sorted(found, key=lambda one: -one.decision.seq)

    def totals(self, after: int, until: int) -> Totals:
        """What stands after a place up to another, added up."""
        with self._reading() as connection:
            return add_up(connection, after, until)

    def counts(self, until: int) -> tuple[int, int]:
        """How many decisions and rewards stand up to a place; corrections are not counted."""
        decisions, observations = tables.decisions, tables.observations
        with self._reading() as connection:
            made = select(func.count()).where(decisions.c.seq <= until)
            learned = select(func.count()).where(observations.c.seq <= until, observations.c.kind != tables.CORRECTION)
            return int(connection.execute(made).scalar_one()), int(connection.execute(learned).scalar_one())

    def last_answers(self, until: int, limit: int) -> list[tuple[int, float, bytes]]:
        """Seq, time and answer of the last decisions up to a place, the newest first."""
        table = tables.decisions
        newest = select(table.c.seq, table.c.time, table.c.answer).where(table.c.seq <= until)
        with self._reading() as connection:
            return [(*row,) for row in connection.execute(newest.order_by(table.c.seq.desc()).limit(limit))]

    def last_requests(self, limit: int) -> list[bytes]:
        """The last requests for decisions, the newest first."""
        table = tables.decisions
        with self._reading() as connection:
            newest = select(table.c.request).order_by(table.c.seq.desc()).limit(limit)
            return [request for (request,) in connection.execute(newest)]

    def default_times(self, decisions: Sequence[int]) -> dict[int, float]:
        """When the defaults of these decisions were learned, by the place of the decision."""
        table = tables.observations
        found: dict[int, float] = {}
        with self._reading() as connection:
            for start in range(0, len(decisions), 500):
                wanted = table.c.decision.in_(decisions[start : start + 500])
                chosen = select(table.c.decision, table.c.time).where(table.c.kind == tables.DEFAULT, wanted)
                found |= {row.decision: row.time for row in connection.execute(chosen)}
        return found

    def unrewarded(self) -> Iterator[list[Any]]:
        """Chunks of (seq, id, place, active_at, context) of active decisions from which nothing was learned yet."""
        table, observations = tables.decisions, tables.observations
        chosen = (
            select(table.c.seq, table.c.id, table.c.place, table.c.active_at, table.c.context)
            .outerjoin(observations, observations.c.decision == table.c.seq)
            .where(observations.c.seq.is_(None), table.c.active_at.is_not(None))
        )
        return self._chunks(chosen, table.c.seq, 0, None)

    def records(self) -> Iterator[list[Any]]:
        """Chunks of decisions, each once, with user, request, answer, the default and the reward learned from them."""
        table, people = tables.decisions, tables.users
        default, real = tables.observations.alias(), tables.observations.alias()
        chosen = (
            select(
                table.c.seq, table.c.id, people.c.id.label("user"), table.c.time, table.c.context, table.c.request,
                table.c.answer, default.c.reward.label("default"), default.c.time.label("default_time"),
                real.c.reward.label("reward"), real.c.time.label("reward_time"),
            )
            .join(people, people.c.place == table.c.place)
            .outerjoin(default, (default.c.decision == table.c.seq) & (default.c.kind == tables.DEFAULT))
            .outerjoin(real, (real.c.decision == table.c.seq) & (real.c.kind != tables.DEFAULT))
        )  # fmt: skip
        return self._chunks(chosen, table.c.seq, 0, None)

    def _chunks(self, chosen: Any, seq: Any, after: int, until: int | None) -> Iterator[list[Any]]:
        chosen = chosen.where(seq > after).order_by(seq)
        if until is not None:
            chosen = chosen.where(seq <= until)
        with self._reading() as connection:
            result = connection.execution_options(yield_per=CHUNK).execute(chosen)
            for rows in result.partitions():
                yield list(rows)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A connection of one's own."""
        with self._readers:
            self._reads += 1
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StoreError(reason(error)) from error
        finally:
            with self._readers:
                self._reads -= 1
                self._readers.notify_all()

    def _wait_for_readers(self, seconds: float) -> None:
        """Until nobody reads any more, or for so long."""
        with self._readers:
            self._readers.wait_for(lambda: self._reads == 0, seconds)


def _find(connection: Connection, column: Any, values: Sequence[Any]) -> list[FoundDecision]:
    """The decisions that have these values there, each with its last lesson."""
    found: list[FoundDecision] = []
    observations = tables.observations
    for start in range(0, len(values), 500):  # SQLite bounds how many values a statement takes
        wanted = select(tables.decisions).where(column.in_(values[start : start + 500]))
        rows = [DecisionRow(*row) for row in connection.execute(wanted)]
        last = select(observations.c.decision, observations.c.kind, observations.c.reward).order_by(observations.c.seq)
        told = {
            decision: (kind, reward)
            for decision, kind, reward in connection.execute(
                last.where(observations.c.decision.in_([row.seq for row in rows]))
            )
        }
        found += [FoundDecision(row, *told.get(row.seq, (None, None))) for row in rows]
    return found
