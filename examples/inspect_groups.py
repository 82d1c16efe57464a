"""
Inspect groups in a notebook
============================

Look at the users and the groups of a policy: tables with your own ids, and charts.

"""

# %%
# A policy and its users
# ----------------------
#
# The readers of this example have names. ``locb`` numbers users from 0, so the list of names translates between names and numbers.

import locb

env = locb.Synthetic(n_users=80, n_clusters=4, seed=3)
names = [f"reader-{index:02}" for index in range(env.n_users)]
policy = locb.ELOC(n_users=env.n_users, dim=env.dim)
run = locb.simulate(policy, env, rounds=20_000, seed=1)
policy  # a notebook shows the parameters, the users and the groups as tables

# %%
# Tables
# ------
#
# ``groups_frame`` has one row per group and member, and ``users_frame`` one row per user. ``similar_users_frame`` has one row per user who is similar
# to a given user.

print(policy.groups_frame(names).head(3))
print(policy.similar_users_frame(7, limit=3, ids=names))

# %%
# Why this arm?
# -------------
#
# An explanation has the estimate and the bonus of each arm, and the groups of users whose rewards contribute to the estimate.

explained = policy.explain(7, env.rounds(1, seed=5).contexts[0])
print(explained.to_frame().sort("score", descending=True).head(3))
print(explained.sources_frame(names).head(3))

# %%
# Charts
# ------
#
# Each point is a user. The position is a projection of the estimated preferences to two dimensions. Groups may overlap; the colour is that of one
# group of the user.

chart = policy.plot_users(names)

# %%
# The chart shows the sizes of the groups.

chart = policy.plot_groups(names)

# %%
# To compare two runs on the same rounds, add their charts of regret.

separate = locb.simulate(locb.LinUCB(n_users=env.n_users, dim=env.dim), env, rounds=20_000, seed=1)
chart = run.plot_regret() + separate.plot_regret()
