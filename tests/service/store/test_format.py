"""Stores of another format are refused, and not changed."""

import sqlite3
from pathlib import Path

import pytest

from locb.service.config import ServiceConfig
from locb.service.core.service import Service
from locb.service.store.log import EventLog
from locb.service.store.schema import FORMAT, StoreFormatError

# The tables of format 1, as that version created them.
FORMAT_1 = """
CREATE TABLE locb_users (place INTEGER NOT NULL, seq BIGINT NOT NULL, id BLOB, PRIMARY KEY (place), UNIQUE (id));
CREATE TABLE locb_decisions (seq BIGINT NOT NULL, id BLOB NOT NULL, place INTEGER NOT NULL, time DOUBLE NOT NULL,
    active_at DOUBLE, chosen INTEGER NOT NULL, context BLOB NOT NULL, request BLOB NOT NULL, answer BLOB NOT NULL,
    PRIMARY KEY (seq), UNIQUE (id));
CREATE TABLE locb_decided (place INTEGER NOT NULL, seq BIGINT NOT NULL, PRIMARY KEY (place, seq)) WITHOUT ROWID;
CREATE TABLE locb_lessons (seq BIGINT NOT NULL, decision BIGINT NOT NULL, place INTEGER NOT NULL,
    kind SMALLINT NOT NULL, learned DOUBLE NOT NULL, reward DOUBLE NOT NULL, time DOUBLE NOT NULL,
    context BLOB NOT NULL, PRIMARY KEY (seq), UNIQUE (decision, kind));
CREATE TABLE locb_settings (name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name));
INSERT INTO locb_users VALUES (0, 1, CAST('ann' AS BLOB));
INSERT INTO locb_decisions VALUES (2, CAST('a' AS BLOB), 0, 1.0, 1.0, 0, zeroblob(16), zeroblob(1), zeroblob(1));
INSERT INTO locb_lessons VALUES (3, 2, 0, 0, 0.0, 1.0, 2.0, zeroblob(16));
INSERT INTO locb_settings VALUES ('format', '1'), ('store', '"0123abcd"'), ('anew', '0'), ('seq', '0'),
    ('model', '{"policy": "linucb-ind", "dim": 2, "places": 1, "parameters": {}}');
"""


def create(folder: Path, script: str) -> None:
    database = sqlite3.connect(folder / "log.db")
    database.executescript(script)
    database.close()


def dump(folder: Path) -> list[str]:
    database = sqlite3.connect(folder / "log.db")
    try:
        return list(database.iterdump())
    finally:
        database.close()


def test_store_of_format_1_is_refused_and_not_changed(tmp_path: Path) -> None:
    create(tmp_path, FORMAT_1)
    before = dump(tmp_path)
    for _ in range(2):  # the refusal unlocks the folder
        with pytest.raises(StoreFormatError) as caught:
            Service(ServiceConfig(tmp_path))
    assert str(caught.value) == (
        f"the store has format 1, but this version of locb supports only format {FORMAT}: "
        "keep the version of locb that wrote it, or start a new store with another --data-dir or --store"
    )
    assert dump(tmp_path) == before


def test_store_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.write_settings({"format": FORMAT + 1})
    log.close()
    with pytest.raises(StoreFormatError, match=f"format {FORMAT + 1}, .* install the version of locb that wrote it"):
        EventLog(tmp_path)


def test_store_of_the_current_format_is_opened(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.write_settings({"format": FORMAT})
    log.close()
    opened = EventLog(tmp_path)
    assert opened.settings() == {"format": FORMAT}
    opened.close()
