"""
Compare policies
================

Run several policies on the same rounds, and compare their regret and the groups that they find.

"""

# %%
# A comparison
# ------------
#
# :func:`locb.compare` simulates 100 users in five clusters (:class:`locb.Synthetic`). Two users of one cluster have similar preferences. In each
# round one user arrives, and the policy chooses one of ten items, called *arms*. The reward is 0 or 1. The simulation is repeated three times with
# different random seeds. All policies of a repeat get the same users, arms and rewards.

import locb

ROUNDS = 20_000
POLICIES = ["eloc", "locb", "sclub", "linucb-ind", "club"]
comparison = locb.compare(policies=POLICIES, rounds=ROUNDS, repeats=3, jobs=1)

for result in comparison.results:
    regret = result.final_regret
    print(f"{result.policy:12} regret {regret.mean():6.0f}   reward per round {result.reward.mean():.3f}")
print(comparison.verdict())
comparison  # a notebook shows a table

# %%
# Regret over the rounds
# ----------------------
#
# Regret is the expected reward of the best arm minus that of the chosen arm, summed over all rounds. A flat line means that the policy has learned
# to choose the best arms. The shaded areas are 95% confidence intervals of the mean.

chart = comparison.plot()

# %%
# Groups
# ------
#
# LinUCB-IND learns a separate model for each user and finds no groups. All other policies of this comparison find groups. F1 is the agreement of the
# found groups with the true clusters, from 0 to 1; 1 is a perfect match.

for result in comparison.results:
    print(f"{result.policy:12} groups {result.n_clusters.mean():5.1f}   F1 {result.f1.mean():.3f}")
