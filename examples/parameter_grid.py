"""
Run a grid of parameters
========================

Find good parameters of several policies in your own environment with one call of :func:`locb.compare`.

"""

# %%
# Environments and policies
# -------------------------
#
# An environment or a policy is a name, a class, an object, or a function that returns one. Here, there are two environments: one with noisy rewards,
# and one with little noise. The dictionary gives them names. Each repeat creates both environments with another random seed.

from functools import partial

import locb

environments = {
    "noisy": partial(locb.Synthetic, n_users=60, n_clusters=4),
    "little noise": partial(locb.Synthetic, n_users=60, n_clusters=4, noise=0.1),
}

# %%
# The grid
# --------
#
# Each policy runs with all combinations of the values of those parameters that it has. ``gamma`` is limited to LOCB. ELOC has none of the parameters,
# so it runs once.

grid = {"alpha": [0.1, 0.3, 1.0], "locb": {"gamma": [0.1, 0.3]}}
comparison = locb.compare(environments, ["locb", "linucb-ind", "eloc"], grid=grid, rounds=5_000, repeats=3, jobs=1)
comparison

# %%
# The best parameters
# -------------------
#
# ``best`` returns the result with the lowest mean regret. ``to_frame`` returns all numbers as a Polars data frame.

for name in environments:
    for policy in ("locb", "linucb-ind", "eloc"):
        best = comparison.best(policy, environment=name)
        print(f"{name:13} {policy:11} regret {best.final_regret.mean():6.0f} with {best.parameters}")
print(comparison.to_frame().group_by("environment", "policy", "alpha", maintain_order=True).mean().head(4))

# %%
# The chart shows each policy with its best parameters, with the 95% confidence interval of the mean.

chart = comparison.plot()
