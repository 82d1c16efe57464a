"""Columns of a log while a reader builds it, and the end of every reader: warnings, features of ids, order of time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints
from locb.common.validation import check_array
from locb.logs.arm_features import identity_features
from locb.logs.log import Log, LogWarning, Offers, SkippedRows
from locb.logs.row_arrays import argsort_ascending


@dataclass
class LogParts:
    """Columns of a log while a reader builds it: one entry per usable row of the source."""

    users: tuple[list[str], Ints | IndexArray] | None  # as of ``encode_text``; None if the log does not name users
    offer: Ints | IndexArray
    offers: Offers
    arm_ids: Sequence[str]
    features: Floats | None  # None if arms have only ids
    chosen: Ints | IndexArray
    rewards: Floats
    propensities: Floats
    times: Floats | None = None

    def finish(self, columns: dict[str, str], skipped: Sequence[SkippedRows], notes: Sequence[str]) -> Log:
        """Return the log, sorted by time. Issue a warning for each reason to skip rows.

        Raises
        ------
        ValueError
            If no row is left.
        """
        if not len(self.chosen):
            reasons = "; ".join(str(rows) for rows in skipped) or "the source has no rows"
            raise ValueError(f"the log has no usable row: {reasons}")
        for rows in skipped:
            warnings.warn(str(rows), LogWarning, stacklevel=4)
        user_ids, users = self.users or (["all"], np.broadcast_to(np.int32(0), len(self.chosen)))
        features = identity_features(self.arm_ids) if self.features is None else self.features
        log = Log(
            users=users,
            user_ids=user_ids,
            offer=self.offer,
            offers=self.offers,
            arm_ids=self.arm_ids,
            features=check_array("features", features, (None, None)),
            chosen=self.chosen,
            rewards=self.rewards,
            propensities=self.propensities,
            times=self.times,
            has_users=self.users is not None,
            columns=columns,
            skipped=tuple(skipped),
            notes=tuple(notes),
        )
        order = None if self.times is None else argsort_ascending(self.times)
        return log if order is None else log.select(order)
