"""Tables and rows of the event log.

The events of the log are new users, decisions, observations, erasures, and rebuilds of the policy after an erasure. A
common sequence number, ``seq``, numbers all events without gaps. An observation is a reward that the policy learns for
a decision. Its kind is REWARD, DEFAULT or CORRECTION.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    delete,
    insert,
    inspect,
    select,
    text,
)

from locb.recommender.events import DecisionRow

FORMAT = 5  # version of these tables; the service does not open a store with another version

# Kinds of commits: any number of users, decisions and observations; one erasure; one rebuild of the policy.
RECORDS, ERASURE, REBUILD = 0, 1, 2

START_SETTING = (
    "start"  # the setting that describes the start from a log or a saved policy; absent without --start-from
)
BASE_PART_BYTES = 1 << 22  # bytes per row of the table of the saved policy
DROPPED_SETTING = "dropped_until"  # the setting with the last event whose payload was dropped; absent if there is none

metadata = MetaData()

# In SQLite only a primary key of type INTEGER is stored without a separate index.
Position = BigInteger().with_variant(Integer, "sqlite")

# Ids are stored as UTF-8 bytes, because the text type of PostgreSQL rejects some strings.
users = Table(
    "locb_users",
    metadata,
    Column("user_index", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False, unique=True),  # first event with this index
    Column("assigned_seq", BigInteger, nullable=False, unique=True),  # event that assigned the index to this user
    Column("id", LargeBinary, unique=True),  # null: the index is unassigned
    Column("salt", LargeBinary),  # of the digests of this user's events, see ``chain``; erased with the user
)

decisions = Table(
    "locb_decisions",
    metadata,
    Column("seq", Position, primary_key=True, autoincrement=False),
    Column("id", LargeBinary, nullable=False, unique=True),
    Column("user_index", Integer, nullable=False),
    Column("time", Double, nullable=False),  # Unix time in seconds
    Column("active_at", Double),  # Unix time at which the wait for the reward starts; null until activated
    Column("chosen", Integer, nullable=False),  # index of the chosen arm among the arms that are not excluded
    # The payload. When it is dropped (``chain.drop_payloads``), the request is empty, and the response is its digest.
    Column("request", LargeBinary, nullable=False),  # MessagePack
    Column("response", LargeBinary, nullable=False),  # packed, see ``packed_responses``
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

# Replay reads only this table. The requests and responses in the table of decisions are larger.
observations = Table(
    "locb_observations",
    metadata,
    Column("seq", Position, primary_key=True, autoincrement=False),
    Column("decision_seq", BigInteger, nullable=False),
    Column("user_index", Integer, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("previous_reward", Double, nullable=False),  # for a correction, the reward that it replaces; else 0
    Column("reward", Double, nullable=False),
    Column("time", Double, nullable=False),
    Column("context", LargeBinary, nullable=False),  # features of the chosen arm, float64
)

# The database itself rejects a second observation of the same kind for a decision. REWARD and DEFAULT count as the same
# kind, because the later of the two must be a correction.
Index(
    "locb_observations_once",
    observations.c.decision_seq,
    text("(CASE WHEN kind = 0 THEN 1 ELSE kind END)"),
    unique=True,
)

# One row per commit that has events. The primary key makes two commits after the same event impossible.
commits = Table(
    "locb_commits",
    metadata,
    Column("previous_seq", Position, primary_key=True, autoincrement=False),  # last event before the commit
    Column("epoch", BigInteger, nullable=False),  # of the process that wrote it
    Column("kind", SmallInteger, nullable=False),
    Column("digests", LargeBinary, nullable=False),  # one digest per event, in the order of seq
    Column("hash", LargeBinary, nullable=False),  # running hash of all commits so far
)

# One row: the end of the log, and the epoch of the only process that may write. Every transaction checks this row.
head = Table(
    "locb_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
)

# One row: the process with this epoch was alive at this time. Only used with PostgreSQL.
lease = Table(
    "locb_lease",
    metadata,
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("alive_at", Double, nullable=False),  # Unix time of the database server
)

# Events whose rows were deleted because their user was erased.
erasures = Table(
    "locb_erasures",
    metadata,
    Column("seq", Position, primary_key=True, autoincrement=False),
    Column("erasure_seq", BigInteger, nullable=False),
)

settings = Table(
    "locb_settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

# The file of the saved policy from which the service started (``--start-from``), in parts; empty without such a policy.
base_policy = Table(
    "locb_base_policy",
    metadata,
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)


DECISION_COLUMNS = [decisions.c[name] for name in DecisionRow._fields]


class UserRow(NamedTuple):
    """Row of the table of users."""

    user_index: int
    seq: int
    assigned_seq: int
    id: bytes | None
    salt: bytes | None


class CommitRow(NamedTuple):
    """Row of the table of commits."""

    previous_seq: int
    epoch: int
    kind: int
    digests: bytes
    hash: bytes


class Head(NamedTuple):
    """End of the log: epoch of the writer, sequence number of the last event, and running hash."""

    epoch: int
    last_seq: int
    hash: bytes


class RewardedDecision(NamedTuple):
    """Decision with its user and its observations; the rewards and their times are None if there are none.

    ``reward`` is the last reward that is not a default reward. ``observations`` has the sequence number, the kind, the
    reward and the time of each observation, in the order of the log. ``context`` has the features of the chosen arm if
    the request was dropped, and there is an observation.
    """

    seq: int
    id: bytes
    user: bytes | None
    time: float
    request: bytes
    response: bytes
    default: float | None
    default_time: float | None
    reward: float | None
    reward_time: float | None
    observations: list[tuple[int, int, float, float]]
    context: bytes | None


class StoreFormatError(ValueError):
    """The store was written by another version of locb, in a format that this version does not support."""


def check_format(connection: Connection) -> None:
    """Raise ``StoreFormatError`` unless the store is new or has the supported format."""
    if not inspect(connection).has_table(settings.name):
        return
    found = read_setting(connection, "format")
    if found is None or found == FORMAT:
        return
    advice = (
        "install the version of locb that wrote it"
        if found > FORMAT
        else "keep the version of locb that wrote it, or start a new store with another --data-dir or --store"
    )
    raise StoreFormatError(
        f"the store has format {found}, but this version of locb supports only format {FORMAT}: {advice}"
    )


def read_setting(connection: Connection, name: str) -> Any:
    """Return the value of a setting, or None if it does not exist."""
    value = connection.execute(select(settings.c.value).where(settings.c.name == name)).scalar()
    return None if value is None else json.loads(value)


def write_settings(connection: Connection, values: dict[str, Any]) -> None:
    """Write settings in the current transaction. All other settings keep their values."""
    for name, value in values.items():
        connection.execute(delete(settings).where(settings.c.name == name))
        connection.execute(insert(settings).values(name=name, value=json.dumps(value)))


def read_base_policy(connection: Connection) -> bytes:
    """Return the file of the saved policy from which the service started; empty if there is none."""
    query = select(base_policy.c.content).order_by(base_policy.c.part)
    return b"".join(connection.execute(query).scalars())


def write_base_policy(connection: Connection, content: bytes) -> None:
    """Write the file of a saved policy in the current transaction."""
    for part, start in enumerate(range(0, len(content), BASE_PART_BYTES)):
        row = {"part": part, "content": content[start : start + BASE_PART_BYTES]}
        connection.execute(insert(base_policy).values(row))
