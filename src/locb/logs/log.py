"""The log of decisions: which arms were offered, which arm was chosen, and which reward followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from locb.common.arrays import Bools, Floats, IndexArray, Ints
from locb.common.rounds import Rounds
from locb.common.validation import ParameterError
from locb.logs.row_arrays import blocks, by_block, take

MIN_PROPENSITY = 1e-9  # a smaller propensity is an error of the log, because such an arm is practically never chosen


class LogWarning(UserWarning):
    """Warning that rows of a log cannot be used. The message has the number of rows and the first examples."""


@dataclass(frozen=True)
class SkippedRows:
    """Rows of a source that are not part of the log, for one reason.

    Attributes
    ----------
    reason : str
        Why the rows cannot be used.
    count : int
        Number of rows.
    examples : tuple of str
        Location and value of the first rows.
    """

    reason: str
    count: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = "1 row" if self.count == 1 else f"{self.count:,} rows"
        examples = f" (for example {'; '.join(self.examples)})" if self.examples else ""
        return f"skipped {rows}: {self.reason}{examples}"


@dataclass(frozen=True)
class Offers:
    """Distinct lists of arms. Decisions that offer the same arms share one list.

    The arms of list o are the positions ``offsets[o]`` to ``offsets[o + 1]`` − 1 of ``arms`` and ``rows``.
    """

    offsets: Ints  # (lists + 1,)
    arms: IndexArray  # index of each arm in ``Log.arm_ids``; −1 for an arm without an id
    rows: IndexArray  # index of each arm in ``Log.features``

    @cached_property
    def sizes(self) -> Ints:
        """Number of arms of each list."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, repr=False)
class Log:
    """Log of n decisions, in the order of time. :meth:`read` reads a log from files or data frames.

    A large array of :meth:`read` is in a temporary file that is mapped into memory, and is deleted with the array.

    Attributes
    ----------
    users : (n,) ints
        User of each decision, an index of ``user_ids``.
    user_ids : sequence of str
        Name of each user.
    offer : (n,) ints
        Which arms each decision offers, an index of ``offers``.
    offers : Offers
        Distinct lists of arms.
    arm_ids : sequence of str
        Name of each arm; empty if arms have no names.
    features : (rows, d) floats
        Features of arms, with which policies choose.
    chosen : (n,) ints
        Position of the chosen arm among the arms of each decision.
    rewards : (n,) floats
        Reward of each decision; NaN if there is none.
    propensities : (n,) floats
        Probability with which the chosen arm was chosen; NaN if it is not known.
    times : (n,) floats or None
        Time of each decision in seconds since 1970 (UTC), ascending; None if it is not known.
    has_users : bool
        Whether the log names users. If not, all decisions belong to one user, and intervals treat decisions as
        independent.
    columns : dict of str to str
        Column or source of each part of the log, such as {"user": "customer"}.
    skipped : sequence of SkippedRows
        Rows that are not part of the log, by reason.
    notes : sequence of str
        Assumptions of the reader.
    """

    users: Ints | IndexArray
    user_ids: Sequence[str]
    offer: Ints | IndexArray
    offers: Offers
    arm_ids: Sequence[str]
    features: Floats
    chosen: Ints | IndexArray
    rewards: Floats
    propensities: Floats
    times: Floats | None = None
    has_users: bool = True
    columns: dict[str, str] | None = None
    skipped: Sequence[SkippedRows] = ()
    notes: Sequence[str] = ()

    @staticmethod
    def read(source: Any, *, format: str = "auto", **options: Any) -> Log:  # noqa: A002 - the established name
        """Read a log. Rows that cannot be used are counted in ``skipped``, and give a :class:`LogWarning`.

        Parameters
        ----------
        source : path, list of paths, or data frame
            File (CSV, TSV, other text, JSON lines, Parquet; .gz is allowed), folder, pattern such as ``logs/*.csv``,
            Polars, pandas or Arrow table, or mapping of column names to values. Also the store of a service, which may
            be running: its data folder, SQLite file, or address such as ``postgresql://user@host/name``.
        format : {"auto", "table", "dsjson", "open-bandit", "yahoo", "store"}, default "auto"
            Format of the source. By default, it is detected.
        **options
            For "table" and "store": ``user`` (a column, or several columns that identify the user together),
            ``chosen``, ``arms``, ``reward``, ``propensity``, ``time``, ``features`` (columns that describe the chosen
            arm), ``dim``, ``decimal``, ``missing_reward``, ``separator``, ``header`` and ``allow_skipped``. Columns
            that are not given are found by their names. See :func:`locb.logs.readers.table_logs.read_table`.
            For "dsjson": ``user``, ``dim``. For "open-bandit": ``position``, ``items``, ``allow_skipped``. For "yahoo":
            ``n_clusters``.

        Raises
        ------
        FileNotFoundError
            If a file does not exist.
        ValueError
            If the source has no usable row or lacks a column, more than half of the rows of a table cannot be used
            (unless ``allow_skipped`` is True), or an option is invalid.

        Examples
        --------
        >>> Log.read({"user": ["a", "b"], "arm": ["x", "y"], "reward": ["1,50 €", "0"], "propensity": [0.5, 0.5]})
        Log(2 decisions, 2 users, 2 arms, 2 features, rewards 0 to 1.5 with mean 0.75, propensities 0.5 to 0.5)
        """
        try:
            from locb.logs.readers.read import read_log

            return read_log(source, format, options)
        except ModuleNotFoundError as error:
            raise ValueError(f"logs need the package {error.name}: run pip install 'locb[data]'") from error

    @staticmethod
    def from_rounds(rounds: Rounds, chosen: Any, propensities: Any = None) -> Log:
        """Return the log of a policy that chose ``chosen`` (T,) in T rounds, with probabilities ``propensities`` (T,).

        Examples
        --------
        >>> rounds = Rounds(users=[0, 1], contexts=[[[1, 0], [0, 1]]] * 2, rewards=[[1, 0], [0, 1]])
        >>> Log.from_rounds(rounds, [0, 0], [0.5, 0.5]).rewards.tolist()
        [1.0, 0.0]
        """
        from locb.logs.log_rounds import rounds_to_log

        return rounds_to_log(rounds, chosen, propensities)

    def to_rounds(self) -> Rounds:
        """Return the decisions as rounds, in which only the reward of the logged arm is known.

        A policy that plays these rounds learns from those in which it chooses the logged arm (replay). The mean of the
        observed rewards is an unbiased estimate only if the log chose arms uniformly at random; otherwise use
        :func:`locb.evaluate`.

        Examples
        --------
        >>> log = Log.read({"user": ["a", "b"], "arm": ["x", "y"], "reward": [2, None]})
        >>> log.to_rounds()
        Rounds(2 rounds, 2 arms, 2 features, 2 items, one observed reward per round)
        """
        from locb.logs.log_rounds import log_to_rounds

        return log_to_rounds(self)

    def __len__(self) -> int:
        return len(self.users)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.user_ids)

    @property
    def dim(self) -> int:
        """Number of features per arm."""
        return int(self.features.shape[1])

    @property
    def n_arms(self) -> Ints:
        """Number of arms that each decision offers, (n,)."""
        sizes: Ints = take(self.offers.sizes, self.offer)
        return sizes

    @property
    def has_propensities(self) -> bool:
        """Whether the propensity of at least one decision is known."""
        return any(np.isfinite(self.propensities[rows]).any() for rows in blocks(len(self)))

    @property
    def is_uniform(self) -> bool:
        """Whether, in every decision, the propensity is 1 divided by the number of arms (within 1%)."""
        sizes = self.offers.sizes
        return bool(len(self)) and all(
            np.allclose(self.propensities[rows] * sizes[self.offer[rows]], 1.0, rtol=0.01) for rows in blocks(len(self))
        )

    def rows_of(self, positions: Ints | IndexArray) -> IndexArray:
        """Return the row of ``features`` of one arm of each decision; ``positions`` (n,) are positions of arms."""
        rows: IndexArray = self._of_arms(self.offers.rows, positions)
        return rows

    def arms_of(self, positions: Ints | IndexArray) -> IndexArray:
        """Return the index in ``arm_ids`` of one arm of each decision; ``positions`` (n,) are positions of arms."""
        arms: IndexArray = self._of_arms(self.offers.arms, positions)
        return arms

    def _of_arms(self, values: IndexArray, positions: Ints | IndexArray) -> Any:
        starts = self.offers.offsets
        return by_block(values.dtype, len(self), lambda rows: values[starts[self.offer[rows]] + positions[rows]])

    def contexts(self, decision: int) -> Floats:
        """Return the features of the arms of a decision, (k, d)."""
        start, stop = self.offers.offsets[self.offer[decision] : self.offer[decision] + 2]
        rows: Floats = self.features[self.offers.rows[start:stop]]
        return rows

    def select(self, rows: Bools | Ints | slice) -> Log:
        """Return the decisions ``rows``: a mask (n,), indices, or a slice. Users and arms keep their indices."""
        times = None if self.times is None else take(self.times, rows)
        fields = vars(self) | {"times": times}
        fields |= {name: take(fields[name], rows) for name in ("users", "offer", "chosen", "rewards", "propensities")}
        return Log(**{name: fields[name] for name in Log.__dataclass_fields__})

    def summary(self) -> dict[str, str]:
        """Return facts about the log by name, as text."""
        rewards = take(self.rewards, np.isfinite(self.rewards))
        known = take(self.propensities, np.isfinite(self.propensities))
        sizes = self.n_arms
        facts = {"decisions": f"{len(self):,}"}
        facts["users"] = f"{self.n_users:,}" if self.has_users else "not named"
        low, high = (int(sizes.min()), int(sizes.max())) if len(self) else (0, 0)
        per_decision = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        facts["arms"] = f"{len(self.arm_ids):,}" if self.arm_ids else f"{per_decision} per decision"
        if self.arm_ids and (low, high) != (len(self.arm_ids),) * 2:
            facts["arms"] += f" ({per_decision} per decision)"
        facts["features"] = f"{self.dim:,}"
        facts["rewards"] = "none"
        if rewards.size:
            facts["rewards"] = f"{rewards.min():.4g} to {rewards.max():.4g} with mean {rewards.mean():.4g}"
            missing = len(self) - rewards.size
            facts["rewards"] += f", {missing:,} missing" if missing else ""
        facts["propensities"] = f"{known.min():.4g} to {known.max():.4g}" if known.size else "not known"
        if known.size and known.size < len(self):
            facts["propensities"] += f", {len(self) - known.size:,} missing"
        if self.times is not None and len(self):
            facts["time"] = f"{_day(self.times[0])} to {_day(self.times[-1])}"
        if self.skipped:
            count = sum(rows.count for rows in self.skipped)
            facts["skipped"] = "1 row" if count == 1 else f"{count:,} rows"
        return facts

    def __repr__(self) -> str:
        facts = self.summary()
        parts = [f"{facts.pop(name)} {name}" for name in ("decisions", "users", "arms", "features")]
        parts[2] = parts[2].replace("per decision arms", "arms per decision")
        return f"Log({', '.join([*parts, *(f'{name} {value}' for name, value in facts.items())])})"

    def _repr_html_(self) -> str:
        rows = [*self.summary().items(), *(self.columns or {}).items(), *(("skipped", str(s)) for s in self.skipped)]
        rows += [("note", note) for note in self.notes]
        cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
        return f"<table><caption>locb.Log</caption>{cells}</table>"


def check_propensities(values: Floats) -> None:
    """Raise a ValueError unless all known propensities are from ``MIN_PROPENSITY`` to 1."""
    wrong = np.flatnonzero((values < MIN_PROPENSITY) | (values > 1.0))
    if wrong.size:
        raise ParameterError(
            "propensities",
            f" must be from {MIN_PROPENSITY:g} to 1, but propensities[{wrong[0]}] is {values[wrong[0]]:g}",
        )


def _day(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g}"
