"""
Use coba and locb side by side
==============================

Run policies of ``locb`` in an experiment of coba, and an environment of coba in ``locb``. On the same rounds, a policy gets the same rewards in coba
as in ``locb``.

"""

# %%
# Policies of locb in coba
# ------------------------
#
# :class:`locb.interop.CobaEnvironment` offers the rounds of an environment of ``locb`` to the learners of coba. The context is the user, and each
# action is a tuple of features. :class:`locb.interop.CobaLearner` is a learner with a policy of ``locb``.

import coba as cb
import numpy as np

import locb
from locb.interop import CobaEnvironment, CobaLearner, from_coba

ROUNDS = 4_000
env = locb.Synthetic(n_users=40, n_clusters=4, seed=7)
learners = [
    CobaLearner("locb", dim=env.dim, n_users=40),
    CobaLearner("linucb-ind", dim=env.dim, n_users=40),
    cb.LinUCBLearner(features=["a"]),
    cb.RandomLearner(),
]
result = cb.Experiment([CobaEnvironment(env, rounds=ROUNDS, seed=1)], learners).run(quiet=True)

rewards = [[], [], [], []]
for row in result.interactions.to_dicts():
    rewards[row["learner_id"]].append(row["reward"])
for name, earned in zip(["locb", "linucb-ind", "LinUCB of coba (one model)", "random"], rewards, strict=True):
    print(f"{name:28} reward per round {np.mean(earned):.3f}")

# %%
# The same rewards
# ----------------
#
# ``locb.simulate`` plays the same rounds with LOCB, and gives the same rewards.

run = locb.simulate(locb.LOCB(n_users=40, dim=env.dim), env, rounds=ROUNDS, seed=1)
print("identical:", run.rewards.tolist() == rewards[0])

# %%
# An environment of coba in locb
# ------------------------------
#
# ``from_coba`` reads the interactions of an environment of coba. The contexts and actions have named features, which are hashed to ``dim`` features.

(site,) = cb.Environments.from_linear_synthetic(2_000, n_actions=5, seed=1)
recorded = from_coba(site, dim=128)
comparison = locb.compare(recorded, ["linucb-ind"], grid={"alpha": [0.1, 0.3, 1.0]}, rounds=2_000, repeats=1, jobs=1)
for entry in comparison.results:
    print(entry)
chart = comparison.plot()
