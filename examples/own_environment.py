"""
Write your own environment
==========================

An environment generates the rounds on which policies are compared. Subclass :class:`locb.Environment` to simulate your own application.

"""

# %%
# The environment
# ---------------
#
# A news site has six sections. At each visit, the site offers four random sections to the policy, which chooses one section to show. The reward is 1
# if the reader clicks, otherwise 0. There are two groups of readers: one prefers sports and science, the other politics and culture. The click rate
# of a section depends only on the group of the reader.
#
# An environment sets three attributes: ``n_users``, ``dim`` (the number of features per arm) and ``n_arms`` (the number of arms per round). It
# implements two methods:
#
# - ``draw(rng, count)`` returns ``count`` rounds, generated with the NumPy random generator ``rng``. :class:`locb.Rounds` contains the user of each
#   round, and the features, the reward and the expected reward of each arm.
# - ``true_clusters()`` returns the users of each true cluster. It is optional.

import numpy as np

import locb

SECTIONS = ("sports", "science", "politics", "culture", "travel", "food")
CLICK_RATES = np.array(
    [
        [0.60, 0.50, 0.10, 0.10, 0.30, 0.20],  # readers 0 to 149
        [0.10, 0.20, 0.55, 0.60, 0.20, 0.30],  # readers 150 to 299
    ]
)


class NewsSite(locb.Environment):
    """News site whose readers form two groups with different preferences for sections."""

    n_users, dim, n_arms = 300, len(SECTIONS), 4

    def draw(self, rng, count):
        """Return rounds in which four random sections are offered to random readers."""
        users = rng.integers(self.n_users, size=count)
        offered = rng.permuted(np.tile(np.arange(self.dim), (count, 1)), axis=1)[:, : self.n_arms]
        contexts = np.eye(self.dim)[offered]  # one-hot features of shape (count, n_arms, dim)
        means = CLICK_RATES[(users >= 150).astype(int)[:, None], offered]
        rewards = (rng.random(means.shape) < means).astype(float)
        return locb.Rounds(users, contexts, rewards, means)

    def true_clusters(self):
        """Return the readers of each group."""
        return [np.arange(150), np.arange(150, 300)]


# %%
# Policies in this environment
# ----------------------------
#
# Functions such as :func:`locb.simulate` accept the new environment. The same ``seed`` gives the three policies the same rounds. *Regret* is the
# expected reward lost compared with always choosing the best arm. The last line of the code prints F1, precision and recall of the groups
# that ELOC finds, compared with the true clusters.

env = NewsSite()
policies = {
    "ELOC": locb.ELOC(n_users=env.n_users, dim=env.dim, n_seeds=10),
    "LinUCB per reader": locb.LinUCB(n_users=env.n_users, dim=env.dim),
    "LinUCB for all": locb.LinUCB(n_users=env.n_users, dim=env.dim, shared=True),
}
runs = {name: locb.simulate(policy, env, rounds=10_000, seed=1) for name, policy in policies.items()}
for name, run in runs.items():
    print(f"{name:18} click rate {run.rewards.mean():.3f}, regret {run.regret[-1]:.0f}")
print(locb.match_clusters(policies["ELOC"].clusters(), env.true_clusters()))

# %%
# Learning over time
# ------------------
#
# The chart shows the cumulative regret of each policy. A flat line means that the policy has learned to choose the best arms.

import altair as alt

rows = [
    {"policy": name, "round": step, "regret": float(run.regret[step - 1])}
    for name, run in runs.items()
    for step in range(100, 10_001, 100)
]
chart = (
    alt.Chart(alt.InlineData(values=rows), width=560, height=300, title="Cumulative regret on the news site")
    .mark_line(strokeWidth=2.5)
    .encode(x=alt.X("round:Q", axis=alt.Axis(format=",d")), y="regret:Q", color="policy:N")
)

# %%
# Repeats and confidence intervals
# --------------------------------
#
# :func:`locb.compare` takes the environment, or its class, and runs several policies with repeats and a grid of parameters.

comparison = locb.compare(
    NewsSite, ["eloc", "linucb-ind"], grid={"alpha": [0.3, 1.0]}, n_seeds=10, rounds=5_000, repeats=3, jobs=1
)
comparison
