"""
Certify groups
==============

A certificate is an upper bound on the distance between any two users of a group. It holds with probability 1 - delta, for all groups at once.

"""

# %%
# When is a certificate informative?
# ----------------------------------
#
# Preferences have at most norm 1, so two users are never farther apart than 2. A certificate of 2 or more therefore contains no information.
# A certificate decreases with the number of rounds per user. This environment has ten users in two clusters and little noise, so its certificates
# become informative soon.

import locb

env = locb.Synthetic(n_users=10, n_clusters=2, raw_dim=2, n_arms=5, noise=0.05, seed=3)
policy = locb.LOCB(
    n_users=env.n_users,
    dim=env.dim,
    seeds=[int(members[0]) for members in env.true_clusters()],  # one seed per true cluster
    gamma=0.6,
    sigma=0.05,  # scale of the noise
    radius="ellipsoid",
    stop="certificate",
)

rows = []
stream = env.rounds(24_000, seed=1)
for start in range(0, 24_000, 400):
    part = slice(start, start + 400)
    policy.play(locb.Rounds(stream.users[part], stream.contexts[part], stream.rewards[part], stream.means[part]))
    for cluster in policy.clusters():
        final = "final" if cluster.returned_at else "growing"
        bound = min(policy.certificate(cluster), 2.5)
        rows.append({"round": start + 400, "seed": str(cluster.seed), "certificate": bound, "state": final})

# %%
# Certificates over time
# ----------------------
#
# With ``stop="certificate"``, LOCB makes a group final as soon as the rewards prove that its members are closer than ``gamma``.

import altair as alt

lines = alt.Chart(alt.InlineData(values=rows), width=520, height=300, title="Certificate of each group")
chart = lines.mark_line(strokeWidth=2.5).encode(
    x=alt.X("round:Q", axis=alt.Axis(format=",d")),
    y=alt.Y("certificate:Q", title="bound of the distance"),
    color=alt.Color("seed:N", title="group of user"),
    strokeDash=alt.StrokeDash("state:N", sort=["final", "growing"]),
)

# %%
# Compare with the truth
# ----------------------
#
# The true preferences are known in a simulation. The true largest distance is always below the certificate.

from itertools import combinations

import numpy as np

for cluster in policy.clusters():
    widest = max(
        (float(np.linalg.norm(env.theta[i] - env.theta[j])) for i, j in combinations(cluster.members, 2)), default=0.0
    )
    bound = policy.certificate(cluster)
    state = f"final since round {cluster.returned_at:,}" if cluster.returned_at else "growing"
    print(f"user {cluster.seed}: {len(cluster)} users, {state}, certificate {bound:.3f}, true distance {widest:.3f}")
    assert widest <= bound

# %%
# ``locb verify`` checks the same statement in many environments, for all radii of LOCB.
