"""Sample rows of the event log."""

import struct

from locb.recommender.events import REWARD, DecisionRow, ObservationRow, Records
from locb.service.packed_responses import PackedExplanation, PackedResponse, PackedSource, pack, pack_cluster
from locb.service.schemas import Arm, RecommendRequest

CONTEXT = struct.pack("<2d", 0.6, 0.8)
REQUEST = pack(RecommendRequest("ann", [Arm("x", [1.0, 0.0]), Arm("y", [0.6, 0.8])]))


def packed_response(*sources: PackedSource) -> bytes:
    """Return a response that recommends the second arm to a user in the cluster of the user with the index 0."""
    explanation = PackedExplanation([0.25, 0.5], 0.0, list(sources))
    return pack(PackedResponse([1], [0.75], [0.125], pack_cluster(0, 2, False), explanation))


RESPONSE = packed_response()


def decision(seq: int, name: str, user_index: int = 0, **fields: object) -> DecisionRow:
    row = DecisionRow(seq, name.encode(), user_index, 100.0 + seq, 100.0 + seq, 1, REQUEST, RESPONSE)
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
