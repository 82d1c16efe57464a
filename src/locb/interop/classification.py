"""Data for classification, such as those of scikit-learn, as an environment."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.common.arrays import Ints
from locb.common.rounds import Rounds
from locb.common.validation import ParameterError, check_array
from locb.environments import Environment


class Classification(Environment):
    """Environment in which each arm is a class, and the reward is 1 for the class of a random row of the data, else 0.

    The features of an arm are those of the row, in the block of the arm: (number of features + 1) × number of classes.
    A policy thus learns a linear model per class. Rows are scaled to a norm of at most 1, and a constant is added.

    Parameters
    ----------
    x : (r, p) floats
        Features of r rows; or a data set of scikit-learn with ``data`` and ``target``.
    y : (r,), optional
        Class of each row. Omit it if ``x`` is a data set.
    users : (r,), optional
        User of each row. By default, all rows have the same user.

    Attributes
    ----------
    classes : array
        The classes, in the order of the arms.
    user_ids : array
        The users, in the order of their indices.

    Examples
    --------
    >>> env = Classification([[0.0, 1.0], [2.0, 0.0]], ["a", "b"])
    >>> env, env.rounds(1).rewards.sum().item()
    (Classification(1 user, 2 arms per round, 6 features), 1.0)
    """

    def __init__(self, x: Any, y: Any = None, *, users: Any = None) -> None:
        if y is None:
            if not hasattr(x, "data") or not hasattr(x, "target"):
                raise ParameterError(
                    "y", " is required, because x is not a data set with the attributes data and target"
                )
            x, y = x.data, x.target
        rows = check_array("x", x, (None, None))
        for name, values in (("y", y), ("users", users)):
            if values is not None and np.shape(values) != (len(rows),):
                raise ParameterError(name, f" must have one value for each of {len(rows)} rows, not {np.shape(values)}")
        self.classes, self._labels = np.unique(np.asarray(y), return_inverse=True)
        if len(self.classes) < 2:
            raise ParameterError("y", f" must have at least 2 classes, not {len(self.classes)}")
        given = np.zeros(len(rows), np.int64) if users is None else np.asarray(users)
        self.user_ids, self._users = np.unique(given, return_inverse=True)
        largest = float(np.linalg.norm(rows, axis=1).max())
        self._rows = np.column_stack([rows / (largest or 1.0), np.ones(len(rows))])
        self.n_users, self.n_arms = len(self.user_ids), len(self.classes)
        self.dim = self._rows.shape[1] * self.n_arms

    def draw(self, rng: np.random.Generator, count: int) -> Rounds:
        """Return rounds of ``count`` random rows, drawn with replacement."""
        drawn = rng.integers(len(self._rows), size=count)
        width = self._rows.shape[1]
        contexts = np.zeros((count, self.n_arms, self.dim))
        for arm in range(self.n_arms):
            contexts[:, arm, arm * width : (arm + 1) * width] = self._rows[drawn]
        rewards = (self._labels[drawn, None] == np.arange(self.n_arms)).astype(np.float64)
        return Rounds(self._users[drawn], contexts, rewards)

    def true_clusters(self) -> list[Ints]:
        """Return no clusters, because they are not known."""
        return []
