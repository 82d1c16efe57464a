"""
Write your own policy
=====================

A policy is a class with two methods, ``recommend`` and ``update``. This example implements Thompson sampling, explains the code, and compares the
policy with two built-in policies.

"""

# %%
# The two methods
# ---------------
#
# In each round, a user arrives, and the policy chooses one of several arms. A custom policy is a subclass of :class:`locb.Policy` that implements:
#
# - ``recommend(user, contexts)``, which returns the index of the arm to show. ``user`` is an integer from 0 to ``n_users`` - 1. ``contexts`` is an
#   array with one row per arm and ``dim`` columns, one per feature.
# - ``update(user, context, reward)``, which learns from the reward. ``context`` is the row of the arm that was shown.
#
# The policy of this example keeps a Bayesian linear model per user. The expected reward of an arm with features x is the product of x with the vector
# θ, the preferences of the user. Let A be the identity matrix plus the sum of x xᵀ over all arms that the user was shown, and b the sum of reward ·
# x. If θ has the prior N(0, scale² I) and the noise of a reward has the variance scale², the posterior distribution of θ is N(A⁻¹ b, scale² A⁻¹).
# *Thompson sampling* draws one sample of θ from the posterior, and chooses the arm with the highest expected reward for this sample.

import numpy as np

import locb


class ThompsonSampling(locb.Policy):
    """Linear Thompson sampling with one model per user."""

    def __init__(self, *, n_users, dim, scale=0.3, seed=0):
        super().__init__(n_users=n_users, dim=dim)
        self.scale = scale
        self.rng = np.random.default_rng(seed)
        self.gram = np.tile(np.eye(dim), (n_users, 1, 1))  # A of each user
        self.vector = np.zeros((n_users, dim))  # b of each user

    def recommend(self, user, contexts):
        """Return the index of the best arm for one sample of the posterior distribution."""
        covariance = np.linalg.inv(self.gram[user])
        theta = self.rng.multivariate_normal(covariance @ self.vector[user], self.scale**2 * covariance)
        return int(np.argmax(contexts @ theta))

    def update(self, user, context, reward):
        """Add the observation to the sums of the user."""
        self.gram[user] += np.outer(context, context)
        self.vector[user] += reward * context


# %%
# How the policy works:
#
# - ``__init__`` passes the number of users and of features to the base class, and creates the arrays. Before the first reward, the posterior of each
#   user is the prior. ``scale`` is the standard deviation of the noise; a larger value leads to more exploration. ``seed`` makes the samples
#   repeatable.
# - ``recommend`` computes the posterior mean and covariance of the user, draws a sample ``theta``, and returns the arm with the largest product
#   ``contexts @ theta``. Arms whose reward is uncertain are sometimes chosen, because the samples vary.
# - ``update`` adds one observation to A and b of the user. The policy does not store past rounds.
#
# Compare the policy
# ------------------
#
# To use the class by name, assign it to ``locb.POLICIES``. On the command line, give the file and the class instead:
# ``locb compare --policies locb,linucb-ind,own_policy.py:ThompsonSampling``.
#
# *Regret* is the expected reward lost compared with always choosing the best arm.

locb.POLICIES["thompson"] = ThompsonSampling

env = locb.Synthetic(n_users=50, n_clusters=5, seed=7)
runs = {
    name: locb.simulate(locb.make_policy(name, n_users=env.n_users, dim=env.dim), env, rounds=6_000, seed=1)
    for name in ("locb", "linucb-ind", "thompson")
}
for name, run in runs.items():
    print(f"{name:12} regret {run.regret[-1]:6.0f}   {1e6 * run.seconds / 6_000:7.1f} µs per round")

# %%
# The built-in policies are faster, because they are compiled and a whole run is one call. The chart shows the regret over the rounds.

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
