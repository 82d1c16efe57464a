"""The tables of the log. Every event has one place in one order, ``seq``, whichever table it stands in."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)

# What taught the policy: a reward; the default, when none came in time; a reward that came after its default.
REWARD, DEFAULT, CORRECTION = 0, 1, 2

metadata = MetaData()

# Ids are kept as bytes of UTF-8: PostgreSQL's text cannot hold every string.
users = Table(
    "locb_users",
    metadata,
    Column("place", Integer, primary_key=True, autoincrement=False),  # the user's number in the policy
    Column("seq", BigInteger, nullable=False),  # when the policy got this place
    Column("id", LargeBinary, unique=True),  # null: nobody has the place now
)

decisions = Table(
    "locb_decisions",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("id", LargeBinary, nullable=False, unique=True),
    Column("place", Integer, nullable=False),
    Column("time", Double, nullable=False),
    Column("active_at", Double),  # from when on a reward is waited for; null until activated
    Column("chosen", Integer, nullable=False),  # which of the arms that were not excluded
    Column("context", LargeBinary, nullable=False),  # of the chosen arm, float64
    Column("request", LargeBinary, nullable=False),  # as asked, MessagePack
    Column("answer", LargeBinary, nullable=False),  # as answered, JSON
    # Rows of more than 2 KB stay as they are while they fit into a page: to compress one takes longer than to write it.
    postgresql_with={"toast_tuple_target": 8160},
)

decided = Table(
    "locb_decided",
    metadata,
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)

# All that replaying needs stands here: the requests and answers are ten times as much to read.
observations = Table(
    "locb_lessons",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("decision", BigInteger, nullable=False),
    Column("place", Integer, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("learned", Double, nullable=False),  # for a correction: the reward that it takes the place of
    Column("reward", Double, nullable=False),
    Column("time", Double, nullable=False),
    Column("context", LargeBinary, nullable=False),
    UniqueConstraint("decision", "kind"),  # nothing can be learned twice, whatever the service does
)

settings = Table(
    "locb_settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
