"""Reader of logs in Vowpal Wabbit's dsjson format: one JSON object per decision, with costs and probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from locb.common.validation import ParameterError, check_int
from locb.datasets.column_values import encode_text, parse_times
from locb.datasets.source_files import Source
from locb.logs.arm_features import DEFAULT_DIM
from locb.logs.log import MIN_PROPENSITY, Log, SkippedRows
from locb.logs.readers.columns import normalize
from locb.logs.readers.log_parts import LogParts
from locb.logs.readers.offers import OfferBuilder

EXAMPLES = 3
USER_KEYS = ("id", "userid", "user", "uid", "customerid", "visitorid")


@dataclass(frozen=True)
class DsjsonOptions:
    """Options of :func:`read_dsjson`."""

    user: str | None = None
    dim: int = DEFAULT_DIM

    def __post_init__(self) -> None:
        if not isinstance(self.user, str | None):
            raise ParameterError("user", f" must be one path in the context, such as User.id, not {self.user!r}")


class _Event(msgspec.Struct, rename={"cost": "_label_cost", "probability": "_label_probability"}):
    c: dict[str, msgspec.Raw]
    cost: float | None = None
    probability: float | None = None
    a: list[int] | None = None
    p: list[float] | None = None
    label_action: int | None = msgspec.field(name="_label_Action", default=None)
    pdrop: float | None = None
    Timestamp: str | None = None


@dataclass
class _Collected:
    """Decisions and skipped lines so far."""

    users: list[str] = field(default_factory=list)
    offer: list[int] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    propensities: list[float] = field(default_factory=list)
    times: list[str | None] = field(default_factory=list)
    skipped: dict[str, list[str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    dropping: int = 0

    def skip(self, reason: str, where: str) -> None:
        self.counts[reason] = self.counts.get(reason, 0) + 1
        if self.counts[reason] <= EXAMPLES:
            self.skipped.setdefault(reason, []).append(where)


def read_dsjson(files: list[Path], options: DsjsonOptions) -> Log:
    """Read a log in dsjson format. The reward is the negative cost; an event without an outcome has cost 0.

    The chosen arm is the first element of ``a``, or ``_label_Action``. The id of an arm is its ``_tag``, or a feature
    with the name id. Features of an arm are hashed into ``dim`` features with :func:`locb.features`.

    Parameters
    ----------
    files : list of Path
        Files, optionally gzipped.
    options : DsjsonOptions
        ``user``: path of the user in the context ``c``, such as "User.id". By default, a field with a usual name is
        used, such as an id in a shared namespace; if there is none, all shared features together identify the user.
        ``dim``: number of features per arm.
    """
    builder, found = OfferBuilder(check_int("dim", options.dim, 1)), _Collected()
    offers: dict[bytes, tuple[int, int]] = {}  # index and size of a list of arms, by its JSON
    path = None if options.user is None else options.user.split(".")
    searched = path is not None
    for where, event in _events(files, found):
        multi = event.c.get("_multi")
        if multi is None or "_slots" in event.c:
            found.skip("the event has no single list of actions (_multi)", where)
            continue
        raw = bytes(multi)
        try:
            if raw not in offers:
                arms = [_flatten(action) for action in msgspec.json.decode(raw)]
                offers[raw] = builder.add([(_arm_id(arm), arm) for arm in arms]), len(arms)
        except (ValueError, AttributeError, TypeError) as error:
            found.skip(f"the actions cannot be used: {error}", where)
            continue
        index, size = offers[raw]
        action = event.a[0] if event.a else event.label_action
        if action is None or not 1 <= action <= size:
            found.skip("the chosen action is missing or not among the actions", f"{where}: {action}")
            continue
        probability = event.p[0] if event.p else event.probability
        if probability is not None and not MIN_PROPENSITY <= probability <= 1.0:
            found.skip(f"the probability is not from {MIN_PROPENSITY:g} to 1", f"{where}: {probability:g}")
            continue
        if not searched:
            path, searched = _find_user(event.c), True
        user = _shared(event.c) if path is None else _lookup(event.c, path)
        if user is None:
            found.skip(f"the user ({'.'.join(path or ())}) is missing", where)
            continue
        found.users.append(user)
        found.offer.append(index)
        found.chosen.append(action - 1)
        found.rewards.append(np.nan if event.cost is None else 0.0 - event.cost)
        found.propensities.append(np.nan if probability is None else probability)
        found.times.append(event.Timestamp)
        found.dropping += bool(event.pdrop)
    return _finish(builder, found, path)


def _events(files: list[Path], found: _Collected) -> Iterator[tuple[str, _Event]]:
    decode = msgspec.json.Decoder(_Event).decode
    for file in files:
        source = Source(file)
        with source.open() as stream:
            for number, line in enumerate(stream, 1):
                where = f"line {number}" if len(files) == 1 else f"{file.name} line {number}"
                if not line.strip():
                    continue
                try:
                    yield where, decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    found.skip("the line is not a dsjson event", f"{where}: {error}")


def _finish(builder: OfferBuilder, found: _Collected, path: list[str] | None) -> Log:
    import polars as pl

    offers, arm_ids, features = builder.build()
    times = None
    if found.times and all(time is not None for time in found.times):
        times, wrong = parse_times(pl.Series(found.times))
        times = None if wrong.any() else times
    shared = any(user != "{}" for user in found.users)
    parts = LogParts(
        users=encode_text(np.array(found.users)) if shared else None,
        offer=np.array(found.offer, np.int64),
        offers=offers,
        arm_ids=arm_ids if (offers.arms >= 0).all() else (),
        features=features,
        chosen=np.array(found.chosen, np.int64),
        rewards=np.array(found.rewards),
        propensities=np.array(found.propensities),
        times=times,
    )
    user = ".".join(path) if path else "all shared features" if shared else "none: decisions are treated as independent"
    columns = {"user": user, "chosen": "a[0]", "arms": "c._multi", "reward": "−_label_cost", "propensity": "p[0]"}
    columns["time"] = "none: line order" if times is None else "Timestamp"
    notes = []
    if found.dropping:
        notes.append(f"{found.dropping:,} events have pdrop above 0; weights do not compensate for the dropped events")
    skipped = [SkippedRows(reason, found.counts[reason], tuple(found.skipped[reason])) for reason in found.counts]
    return parts.finish(columns, skipped, notes)


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested features as a flat mapping, with names such as "Action.topic"."""
    flat: dict[str, Any] = {}
    items = value.items() if isinstance(value, dict) else ((str(index), part) for index, part in enumerate(value))
    for name, part in items:
        full = f"{prefix}.{name}" if prefix else name
        if isinstance(part, dict | list):
            flat |= _flatten(part, full)
        elif part is not None:
            flat[full] = part
    return flat


def _arm_id(features: dict[str, Any]) -> str | None:
    tag = features.pop("_tag", None)
    if tag is not None:
        return str(tag)
    return next((str(value) for name, value in features.items() if normalize(name.split(".")[-1]) == "id"), None)


def _shared(context: dict[str, msgspec.Raw]) -> str:
    shared = {name: msgspec.json.decode(raw) for name, raw in context.items() if not name.startswith("_")}
    return msgspec.json.encode(shared, order="sorted").decode()


def _find_user(context: dict[str, msgspec.Raw]) -> list[str] | None:
    """Return the path of the first shared field with a usual name of users; None if there is none."""
    for namespace, raw in context.items():
        value = msgspec.json.decode(raw)
        if namespace.startswith("_"):
            continue
        if not isinstance(value, dict | list) and normalize(namespace) in USER_KEYS:
            return [namespace]
        if isinstance(value, dict):
            for name, inner in value.items():
                if normalize(name) in USER_KEYS and not isinstance(inner, dict | list):
                    return [namespace, name]
    return None


def _lookup(context: dict[str, msgspec.Raw], path: list[str]) -> str | None:
    if path[0] not in context:
        return None
    value = msgspec.json.decode(context[path[0]])
    for name in path[1:]:
        value = value.get(name) if isinstance(value, dict) else None
    return None if value is None or isinstance(value, dict | list) else str(value)
