"""Files of saved recommenders: the policy, the users, the catalogue and the recent decisions. No file uses pickle."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from locb.policies.base import file_format
from locb.policies.base.file_format import FileKind
from locb.policies.base.persistence import PersistentPolicy, restore_policy
from locb.policies.base.policy import ServablePolicy
from locb.recommender.commands import CachedDecision
from locb.recommender.events import DecisionRow
from locb.recommender.policy_model import Model
from locb.recommender.results import Recommendation

RECOMMENDER = FileKind("locb recommender", 1, "recommender", "keep the version of locb that saved it")
POLICY_PREFIX = "policy."  # of the names of the arrays of the policy


@dataclass(slots=True)
class StoredDecision:
    """Recent decision: its row, its reward, and the recommendation that a repeated request gets."""

    row: DecisionRow
    decision: CachedDecision
    recommendation: Recommendation


@dataclass(slots=True)
class SavedState:
    """Content of a file.

    Attributes
    ----------
    model : Model
        Name and parameters of the policy.
    policy : ServablePolicy
        The policy.
    users : list of str or None
        Id of the user at each index of the policy.
    arms : dict of str to features
        The catalogue.
    seq : int
        Sequence number of the last event.
    max_decisions : int
        Maximum number of decisions that are kept.
    decisions : dict of str to StoredDecision
        The decisions that are kept, oldest first.
    """

    model: Model
    policy: ServablePolicy
    users: list[str | None]
    arms: dict[str, Any]
    seq: int
    max_decisions: int
    decisions: Mapping[str, StoredDecision]


def write(path: str | os.PathLike[str], state: SavedState) -> None:
    """Write a file atomically. Raise a ValueError if the policy is a custom policy that cannot be saved."""
    policy: Any = state.policy
    if not isinstance(policy, PersistentPolicy):
        allowed = "only compiled policies can be saved, such as those in locb.POLICIES"
        raise ValueError(f"a recommender with the policy {type(policy).__name__} cannot be saved: {allowed}")
    stored = list(state.decisions.values())
    contexts = b"".join([kept.decision.context for kept in stored])
    header = {
        "model": asdict(state.model),
        "policy": policy._header(),
        "policy_version": file_format.VERSION,
        "users": state.users,
        "arms": list(state.arms.items()),
        "seq": state.seq,
        "max_decisions": state.max_decisions,
        "decisions": [_decision_fields(kept) for kept in stored],
    }
    arrays: dict[str, NDArray[Any]] = {f"{POLICY_PREFIX}{name}": array for name, array in policy._arrays().items()}
    arrays["contexts"] = np.frombuffer(contexts, np.float64).reshape(len(stored), state.model.dim)
    file_format.write(path, header, arrays, RECOMMENDER)


def read(path: str | os.PathLike[str]) -> SavedState:
    """Read a file. Raise a ValueError if it is damaged, is not a saved recommender, or has another format version."""
    header, arrays = file_format.read(path, RECOMMENDER)
    try:
        if header["policy_version"] != file_format.VERSION:
            found = f"format {header['policy_version']} of saved policies, not format {file_format.VERSION}"
            raise ValueError(f"{path} has {found}: {RECOMMENDER.if_older}")
        names = {name.removeprefix(POLICY_PREFIX): name for name in arrays if name.startswith(POLICY_PREFIX)}
        own = {short: arrays[name] for short, name in names.items()}
        policy = restore_policy(path, header["policy"], own)
        model, users, contexts = Model(**header["model"]), header["users"], arrays["contexts"]
        if len(users) != policy.n_users or model.dim != policy.dim:
            raise TypeError(f"{len(users)} users of {policy.n_users}, {model.dim} features of {policy.dim}")
        rows = zip(header["decisions"], contexts, strict=True)
        decisions = {fields["decision"]["decision_id"]: _to_decision(fields, context) for fields, context in rows}
        arms, seq, max_decisions = dict(header["arms"]), int(header["seq"]), int(header["max_decisions"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: {error!r}; use another copy of the file") from error
    return SavedState(model, cast(ServablePolicy, policy), users, arms, seq, max_decisions, decisions)


def _decision_fields(kept: StoredDecision) -> dict[str, Any]:
    row, decision = kept.row, kept.decision
    return {
        "decision": kept.recommendation.to_dict(),
        "user": kept.recommendation.user,
        "request": row.request.hex(),
        "seq": row.seq,
        "user_index": row.user_index,
        "time": row.time,
        "chosen": row.chosen,
        "kind": decision.kind,
        "reward": decision.reward,
    }


def _to_decision(fields: Mapping[str, Any], context: NDArray[np.float64]) -> StoredDecision:
    recommendation = Recommendation.from_dict(fields["user"], fields["decision"])
    seq, index, time = fields["seq"], fields["user_index"], fields["time"]
    request = bytes.fromhex(fields["request"])
    row = DecisionRow(seq, recommendation.decision_id.encode(), index, time, time, fields["chosen"], request, b"")
    decision = CachedDecision(seq, index, context.tobytes(), time, time, fields["kind"], fields["reward"])
    return StoredDecision(row, decision, recommendation)
