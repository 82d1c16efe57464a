"""Tables and rows of the event log.

New users, decisions and observations are the events of the log. A common sequence number, ``seq``, orders all events.
An observation is a reward that the policy learns for a decision. Its kind is REWARD, DEFAULT or CORRECTION.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    text,
)

FORMAT = 3  # version of these tables; the service does not open a store with another version

# Kinds of observations: the first reward of a decision; a default reward, learned when no reward arrives in time; and a
# correction, which replaces the reward that was learned before. The second correction of a decision has the kind
# CORRECTION + 1, the third one CORRECTION + 2, and so on.
REWARD, DEFAULT, CORRECTION = 0, 1, 2
MAX_KIND = 32_767  # of the column type

metadata = MetaData()

# Ids are stored as UTF-8 bytes, because the text type of PostgreSQL rejects some strings.
users = Table(
    "locb_users",
    metadata,
    Column("user_index", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),  # event with which the policy was extended to this index
    Column("id", LargeBinary, unique=True),  # null: the index is unassigned
)

decisions = Table(
    "locb_decisions",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("id", LargeBinary, nullable=False, unique=True),
    Column("user_index", Integer, nullable=False),
    Column("time", Double, nullable=False),  # Unix time in seconds
    Column("active_at", Double),  # Unix time at which the wait for the reward starts; null until activated
    Column("chosen", Integer, nullable=False),  # index of the chosen arm among the arms that are not excluded
    Column("context", LargeBinary, nullable=False),  # features of the chosen arm, float64
    Column("request", LargeBinary, nullable=False),  # MessagePack
    Column("response", LargeBinary, nullable=False),  # JSON
    # Rows of more than 2 KB stay uncompressed while they fit into a page: compression takes longer than the write.
    postgresql_with={"toast_tuple_target": 8160},
)

user_decisions = Table(
    "locb_user_decisions",
    metadata,
    Column("user_index", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)

# Replay reads only this table. The requests and responses in the table of decisions are ten times larger.
observations = Table(
    "locb_observations",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("decision_seq", BigInteger, nullable=False),
    Column("user_index", Integer, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("previous_reward", Double, nullable=False),  # for a correction, the reward that it replaces; else 0
    Column("reward", Double, nullable=False),
    Column("time", Double, nullable=False),
    Column("context", LargeBinary, nullable=False),
)

# The database itself rejects a second observation of the same kind for a decision. REWARD and DEFAULT count as the same
# kind, because the later of the two must be a correction.
Index(
    "locb_observations_once",
    observations.c.decision_seq,
    text("(CASE WHEN kind = 0 THEN 1 ELSE kind END)"),
    unique=True,
)

settings = Table(
    "locb_settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)


class DecisionRow(NamedTuple):
    """Row of the table of decisions."""

    seq: int
    id: bytes
    user_index: int
    time: float
    active_at: float | None
    chosen: int
    context: bytes
    request: bytes
    response: bytes


class ObservationRow(NamedTuple):
    """Row of the table of observations."""

    seq: int
    decision_seq: int
    user_index: int
    kind: int
    previous_reward: float
    reward: float
    time: float
    context: bytes


class FoundDecision(NamedTuple):
    """Decision with the kind and reward of its last observation; both are None if there is no observation."""

    decision: DecisionRow
    kind: int | None
    reward: float | None


@dataclass(slots=True)
class Records:
    """Rows that are committed in one transaction."""

    users: list[tuple[int, int, bytes | None]] = field(default_factory=list)  # user_index, seq, id
    decisions: list[DecisionRow] = field(default_factory=list)
    observations: list[ObservationRow] = field(default_factory=list)
    activations: list[tuple[float, int]] = field(default_factory=list)  # Unix time, seq of the decision
