"""
Find groups of users in a log
=============================

Find groups of users with similar preferences in a fixed log, and compare them with the true groups, which are known here.

"""

# %%
# A log
# -----
#
# The environment is synthetic: 400 users in five groups. In each of 60,000 rows, a user is shown one random item and likes it or not. The features
# of the item are in columns. :func:`locb.find_groups` also reads files, and does not need to hold them in memory.

import locb
from locb.report.charts.group_charts import gamma_chart

env = locb.Synthetic(n_users=400, n_clusters=5, raw_dim=4, n_arms=1, noise="bernoulli", seed=3)
rounds = env.rounds(60_000, seed=1)
names = [f"x{column}" for column in range(rounds.dim)]
rows = {"user": rounds.users, "reward": rounds.rewards[:, 0]}
rows |= dict(zip(names, rounds.contexts[:, 0].T, strict=True))
found = locb.find_groups(rows, features=names)
print(found)
print(found.groups)

# %%
# Compare with the truth
# ----------------------

members = [found.members(group)["user"].to_numpy() for group in range(found.groups.height)]
print(locb.match_clusters(members, env.true_clusters()))

# %%
# Choose gamma
# ------------
#
# Gamma is the intended largest distance between two users of a group. Here, ``find_groups`` has chosen gamma with held-out users. The *evidence* of a
# gamma states how well the groups that were found with this gamma predict the rewards of these users. The dashed line marks the chosen gamma: the
# largest one whose evidence is within one standard error of the highest evidence.

best = found.gammas["evidence"].max()
points = [
    {**row, "loss": row["evidence"] - best, "low": row["evidence"] - best - row["error"]}
    | {"high": row["evidence"] - best + row["error"]}
    for row in found.gammas.iter_rows(named=True)
]
chart = gamma_chart(found.settings["gamma"]).properties(datasets={"rows": points})

# %%
# Users with few rows
# -------------------
#
# With 2,000 rows, about five per user, the five groups cannot be separated. A third of the users have too few rows for an assignment to a group.

few = {name: values[:2000] for name, values in rows.items()}
print(locb.find_groups(few, features=names, gamma=0.2, replicates=0))
