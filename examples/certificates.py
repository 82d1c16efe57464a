"""
Certify groups
==============

A certificate is an upper bound on the distance between the preferences of any two users of a group. With a probability of at least 1 - delta, the
bounds of all groups hold simultaneously. ``delta`` is a parameter of the policy, 0.1 by default.

"""

# %%
# When is a certificate informative?
# ----------------------------------
#
# A certificate assumes that the preferences of a user are a vector of norm 1 or less, so that no two users are farther apart than 2. A certificate of
# 2 or more is therefore not informative. A certificate decreases as the number of rounds per user grows. This environment has ten users in two
# clusters and little noise, so its certificates become informative after a few thousand rounds in total.
#
# LOCB builds a group around each of its *seed users*. A group is *final* when its members no longer change. Two parameters are needed here:
#
# - ``radius="ellipsoid"`` selects the confidence radius on which certificates are based;
# - ``stop="certificate"`` makes a group final when its certificate is below ``gamma``, the maximum distance between the preferences of two users of a
#   group.

import locb

env = locb.Synthetic(n_users=10, n_clusters=2, raw_dim=2, n_arms=5, noise=0.05, seed=3)
policy = locb.LOCB(
    n_users=env.n_users,
    dim=env.dim,
    seeds=[int(members[0]) for members in env.true_clusters()],  # one seed user per true cluster
    gamma=0.6,
    sigma=0.05,  # noise scale: the standard deviation of the Gaussian noise
    radius="ellipsoid",
    stop="certificate",
)

rows = []
stream = env.rounds(24_000, seed=1)
for start in range(0, 24_000, 400):
    part = slice(start, start + 400)
    policy.play(locb.Rounds(stream.users[part], stream.contexts[part], stream.rewards[part], stream.means[part]))
    for cluster in policy.clusters():
        final = "final" if cluster.returned_at else "forming"
        bound = min(policy.certificate(cluster), 2.5)  # larger values are cut, for the chart
        rows.append({"round": start + 400, "seed": str(cluster.seed), "certificate": bound, "state": final})

# %%
# Certificates over time
# ----------------------
#
# The chart shows the certificate of each group over the rounds. A dashed line is a group that is still forming, that is, its members can change.

import altair as alt

lines = alt.Chart(alt.InlineData(values=rows), width=520, height=300, title="Certificate of each group")
chart = lines.mark_line(strokeWidth=2.5).encode(
    x=alt.X("round:Q", axis=alt.Axis(format=",d")),
    y=alt.Y("certificate:Q", title="upper bound on the distance"),
    color=alt.Color("seed:N", title="seed user"),
    strokeDash=alt.StrokeDash("state:N", sort=["final", "forming"]),
)

# %%
# Compare with the truth
# ----------------------
#
# In a simulation the true preferences are known. For each group, the largest true distance between two users is at most the certificate.

from itertools import combinations

import numpy as np

for cluster in policy.clusters():
    widest = max(
        (float(np.linalg.norm(env.theta[i] - env.theta[j])) for i, j in combinations(cluster.members, 2)), default=0.0
    )
    bound = policy.certificate(cluster)
    state = f"final since round {cluster.returned_at:,}" if cluster.returned_at else "forming"
    print(f"group of user {cluster.seed}: {len(cluster)} users, {state}")
    print(f"  certificate {bound:.3f}, largest true distance {widest:.3f}")
    assert widest <= bound

# %%
# The command ``locb verify`` makes the same comparison in many environments.
