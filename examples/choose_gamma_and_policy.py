"""
Choose gamma and a policy
=========================

``gamma`` is the intended maximum distance between the preferences of two users of a group of LOCB. This example measures the effect of ``gamma`` on
regret and on the groups. The example also shows in which environments a policy with groups has lower regret than a policy without groups.

"""

# %%
# The effect of gamma
# -------------------
#
# ``gamma`` is a parameter of LOCB. If ``gamma`` is too small, LOCB needs many rounds before a group is final, that is, before
# its members no longer change. If ``gamma`` is too large, groups become final before LOCB can distinguish their users. In this environment, two users
# of one true cluster are at most 0.2 apart (``spread``).
#
# *Regret* is the expected reward lost compared with always choosing the best arm. *F1* is the agreement of the found groups with the true clusters,
# from 0 to 1.

import locb

ROUNDS = 20_000
env = locb.Synthetic(n_users=100, n_clusters=5, spread=0.2, seed=7)
truth = env.true_clusters()

rows = []
for gamma in (0.05, 0.1, 0.2, 0.4, 0.8, 1.6):
    policy = locb.LOCB(n_users=env.n_users, dim=env.dim, gamma=gamma)
    run = locb.simulate(policy, env, rounds=ROUNDS, seed=1)
    f1 = locb.match_clusters(policy.clusters(), truth).f1
    rows.append({"gamma": gamma, "regret": float(run.regret[-1]), "F1": f1})
    print(f"gamma {gamma:4}: regret {run.regret[-1]:6.0f}, F1 {f1:.2f}")

# %%
import altair as alt

base = alt.Chart(alt.InlineData(values=rows), width=280, height=240).mark_line(point=True, strokeWidth=2)
x = alt.X(
    "gamma:Q",
    scale=alt.Scale(type="log", domain=[0.04, 2.0], nice=False),
    axis=alt.Axis(values=[0.05, 0.1, 0.2, 0.4, 0.8, 1.6], grid=False),
)
chart = base.encode(x=x, y="regret:Q") | base.encode(x=x, y="F1:Q")

# %%
# For a data set (:class:`locb.Interactions`), ``env.scaled_gamma()`` returns the smallest ``gamma`` at which half of the users are in true clusters
# of two or more users. Try values of ``gamma`` around this value. ELOC has no such parameter: it learns how different users are.
#
# Which policy?
# -------------
#
# Policies with groups have lower regret if users are similar and rewards are noisy. Without similar users, or with little noise, LinUCB-IND, which
# learns a separate model for each user, can have the same regret or less. LinUCB-ONE learns one model for all users. Compare the policies in
# environments that resemble your application.

scenarios = {
    "5 clusters, noisy rewards": {"n_clusters": 5},
    "5 clusters, little noise": {"n_clusters": 5, "noise": 0.05},
    "no similar users": {"n_clusters": 100},
    "all users similar": {"n_clusters": 1, "spread": 0.02},
}
rows = []
for scenario, settings in scenarios.items():
    env = locb.Synthetic(n_users=100, seed=7, **settings)
    for name in ("eloc", "locb", "linucb-ind", "linucb-one"):
        policy = locb.make_policy(name, n_users=env.n_users, dim=env.dim)
        run = locb.simulate(policy, env, rounds=ROUNDS, seed=1)
        rows.append({"scenario": scenario, "policy": name, "regret": float(run.regret[-1])})

# %%
# The chart shows the regret of each policy in each environment. Bars are cut at a regret of 3,000.

chart = (
    alt.Chart(alt.InlineData(values=rows), width=300, height=110)
    .mark_bar(clip=True)
    .encode(
        x=alt.X("regret:Q", scale=alt.Scale(domain=[0, 3_000])),
        y=alt.Y("policy:N", title=None, sort=["eloc", "locb", "linucb-ind", "linucb-one"]),
        color=alt.Color("policy:N", legend=None),
        facet=alt.Facet("scenario:N", columns=2, title=None, sort=list(scenarios)),
    )
)

# %%
# ELOC is a good default, because it adapts the weight of the groups to the rewards of each user. LOCB, the algorithm of the paper, takes less time
# per round. To run this comparison with repeats and confidence intervals, use ``locb compare``.
