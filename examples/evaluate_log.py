"""
Evaluate a policy on a log
==========================

Estimate what other policies would have earned on a log of decisions, and compare the estimates with the truth, which is known here.

"""

# %%
# A log
# -----
#
# At each visit of one of its 80 customers, a shop shows one of five banners. The current policy prefers some banners, and chooses the others with
# smaller probabilities. The shop logs the probability of each chosen banner, the *propensity*. The environment is synthetic, so that the truth is
# known. :meth:`locb.Log.read` reads a log of your own from files or data frames.

import numpy as np

import locb

env = locb.Synthetic(n_users=80, n_clusters=4, raw_dim=4, n_arms=5, noise="bernoulli", seed=7)
rounds = env.rounds(8000, seed=1)
rng = np.random.default_rng(0)
taste = np.array([0.8, -0.6, 0.3, 0.1, 0.0])  # weights of the features in the current policy
scores = np.exp(2.0 * rounds.contexts @ taste)
probabilities = 0.6 * scores / scores.sum(axis=1, keepdims=True) + 0.4 / rounds.n_arms
chosen = (rng.random(len(rounds))[:, None] > np.cumsum(probabilities, axis=1)).sum(axis=1).clip(max=rounds.n_arms - 1)
log = locb.Log.from_rounds(rounds, chosen, probabilities[np.arange(len(rounds)), chosen])
print(log)

# %%
# Policies
# --------
#
# *Fixed* policies do not change. This example evaluates two of them: ``popular``, a function that chooses the arm with the highest expected reward of
# the average customer, and ``random``. LinUCB is a *learning* policy: it starts without knowledge and learns from the rewards that it gets.

average = env.theta.mean(axis=0)


def popular(user, arms, contexts):
    """Choose the arm with the highest expected reward of the average customer."""
    return int(np.argmax(contexts @ average))


evaluation = locb.evaluate(log, {"popular": popular, "random": "random", "linucb-one": "linucb-one"})
print(evaluation)
chart = evaluation.plot()

# %%
# The chart shows the estimates of each estimator: the mean reward of the policy minus that of the current policy, ``logged``. Each verdict comes from
# the first estimate of the policy, and states the estimated difference per decision with its 95% interval. The *weight* of a decision is the
# probability with which the policy chooses the logged arm, divided by the propensity. Weights show whether an estimate is reliable: the mean weight
# must be near 1, and the number of effective decisions (decisions of equal weight that would give the same precision) must be at least 30.

for name in ("popular", "random", "linucb-one"):
    weights = evaluation[name].weights
    print(f"{name}: mean weight {weights.mean.value:.3f}, {weights.effective:,.0f} effective decisions")

# %%
# The truth
# ---------
#
# The true value of a fixed policy is the mean of the expected rewards of its choices. For the policy ``popular``, the output has the value and the 95%
# interval of each estimator. The interval of the doubly robust estimator, ``dr``, contains the true value.

choices = np.argmax(rounds.contexts @ average, axis=1)
truth = rounds.means[np.arange(len(rounds)), choices].mean()
for value in evaluation["popular"].values:
    low, high = value.value.low, value.value.high
    print(f"{value.estimator:6} {value.value.value:.3f}  [{low:.3f}, {high:.3f}]   truth {truth:.3f}")
assert evaluation["popular"].value("dr").value.low < truth < evaluation["popular"].value("dr").value.high
