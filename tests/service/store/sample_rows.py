"""Sample rows of the event log."""

import struct

from locb.service.store.schema import REWARD, DecisionRow, ObservationRow, Records

CONTEXT = struct.pack("<2d", 0.6, 0.8)


def decision(seq: int, name: str, user_index: int = 0, **fields: object) -> DecisionRow:
    row = DecisionRow(seq, name.encode(), user_index, 100.0 + seq, 100.0 + seq, 1, CONTEXT, b"request", b"response")
    return row._replace(**fields)


def observation(seq: int, of: int, kind: int = REWARD, reward: float = 1.0, **fields: object) -> ObservationRow:
    row = ObservationRow(seq, of, 0, kind, 0.0, reward, 200.0 + seq, CONTEXT)
    return row._replace(**fields)


def user_row(user_index: int, seq: int, name: str | None) -> tuple[int, int, bytes | None]:
    return user_index, seq, None if name is None else name.encode()


def sample_records() -> Records:
    """Return two users, three decisions, and a reward for the first one."""
    return Records(
        users=[user_row(0, 1, "ann"), user_row(1, 3, "bob")],
        decisions=[decision(2, "a"), decision(4, "b", 1), decision(5, "c", 1)],
        observations=[observation(6, 2)],
    )
