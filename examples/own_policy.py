"""
Write your own policy
=====================

A policy is a class with two methods. :func:`locb.simulate`, :func:`locb.compare` and ``locb compare`` accept any such class.

"""

# %%
# Thompson sampling
# -----------------
#
# This policy keeps a Bayesian linear model per user. In each round it draws one sample of the user's preferences and chooses the arm that is best
# for that sample.

import numpy as np

import locb


class ThompsonSampling(locb.Policy):
    """Linear Thompson sampling with one model per user."""

    def __init__(self, *, n_users, dim, scale=0.3, seed=0):
        super().__init__(n_users=n_users, dim=dim)
        self.scale = scale
        self.rng = np.random.default_rng(seed)
        self.gram = np.tile(np.eye(dim), (n_users, 1, 1))  # (n, d, d)
        self.vector = np.zeros((n_users, dim))  # (n, d)

    def recommend(self, user, contexts):
        """Return the best arm for one sample of the posterior distribution."""
        covariance = np.linalg.inv(self.gram[user])
        theta = self.rng.multivariate_normal(covariance @ self.vector[user], self.scale**2 * covariance)
        return int(np.argmax(contexts @ theta))

    def update(self, user, context, reward):
        """Add the observation to the sums of the user."""
        self.gram[user] += np.outer(context, context)
        self.vector[user] += reward * context


# %%
# Compare it
# ----------
#
# Register the class under a name to use it in a comparison. On the command line, use
# ``locb compare --policies locb,linucb-ind,own_policy.py:ThompsonSampling``.

locb.POLICIES["thompson"] = ThompsonSampling

env = locb.Synthetic(n_users=50, n_clusters=5, seed=7)
runs = {
    name: locb.simulate(locb.make_policy(name, n_users=env.n_users, dim=env.dim), env, rounds=6_000, seed=1)
    for name in ("locb", "linucb-ind", "thompson")
}
for name, run in runs.items():
    print(f"{name:12} regret {run.regret[-1]:6.0f}   {1e6 * run.seconds / 6_000:7.1f} µs per round")

# %%
# The compiled policies are faster because a whole run is one call. A policy in Python is fast enough for an experiment.

import altair as alt

rows = [
    {"policy": name, "round": step, "regret": float(run.regret[step - 1])}
    for name, run in runs.items()
    for step in range(50, 6_001, 50)
]
chart = (
    alt.Chart(alt.InlineData(values=rows), width=560, height=300, title="A custom policy and two built-in policies")
    .mark_line(strokeWidth=2.5)
    .encode(x=alt.X("round:Q", axis=alt.Axis(format=",d")), y="regret:Q", color="policy:N")
)
