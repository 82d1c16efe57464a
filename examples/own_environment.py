"""
Write your own environment
==========================

Subclass :class:`locb.Environment` to evaluate policies on a simulation of your own application.

"""

# %%
# The environment
# ---------------
#
# A news site shows one of six sections. Some readers prefer sports and science, others politics and culture. Each group has a fixed
# preference for each section; a click is the reward.
#
# An environment sets ``n_users``, ``dim`` and ``n_arms``, and implements ``draw``, which returns rounds, and ``true_clusters``.

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
        contexts = np.eye(self.dim)[offered]  # one-hot: (count, n_arms, dim)
        means = CLICK_RATES[(users >= 150).astype(int)[:, None], offered]
        rewards = (rng.random(means.shape) < means).astype(float)
        return locb.Rounds(users, contexts, rewards, means)

    def true_clusters(self):
        """Return the members of both groups."""
        return [np.arange(150), np.arange(150, 300)]


# %%
# Policies in this environment
# ----------------------------
#
# All functions that accept an environment accept this one. The same ``seed`` gives both policies the same rounds.

env = NewsSite()
policies = {
    "ELOC": locb.ELOC(n_users=env.n_users, dim=env.dim, n_seeds=10, gamma=0.5),
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
