"""
Recommend by name
=================

Use your own ids of users and items, and features with names, in one Python process.

"""

# %%
# A recommender and its catalogue
# -------------------------------
#
# :class:`locb.Recommender` has the behaviour of the service, without HTTP and without a database. Users, items (*arms*) and decisions have strings as
# ids. The features of an arm are values by name, or a vector of numbers. You do not declare users or features in advance. The keyword arguments after
# ``arms`` are parameters of the policy.

import random

import locb

films = {
    "Night Train": {"genre": "crime", "new": True},
    "Two Gardens": {"genre": "drama", "new": False},
    "Laugh Track": {"genre": "comedy", "new": True},
    "Deep Orbit": {"genre": "science fiction", "new": False},
}
recommender = locb.Recommender("eloc", arms=films, n_seeds=12)
print(recommender)

# %%
# Decisions and rewards
# ---------------------
#
# ``recommend`` creates unknown users. When you know the reward, pass it to ``reward`` with the id of the decision. If you repeat a reward, it counts
# once; a different reward of the same decision is an error.

decision = recommender.recommend("ann", decision_id="first visit")  # without decision_id, an id is generated
recommender.reward("first visit", 1.0)
recommender.reward("first visit", 1.0)
try:
    recommender.reward("first visit", 0.0)
except ValueError as error:
    print(error)
print(decision)

# %%
# Forty simulated users make 1,500 visits. Users 0 to 19 mostly like crime and science fiction, the others drama and comedy.

random.seed(1)
likes = {"crime": 0.8, "science fiction": 0.7, "drama": 0.2, "comedy": 0.1}
hits = []
for _ in range(1_500):
    number = random.randrange(40)
    decision = recommender.recommend(f"user {number}")
    chance = likes[films[decision.arm]["genre"]]
    reward = float(random.random() < (chance if number < 20 else 1 - chance))
    recommender.reward(decision.decision_id, reward)
    hits.append(reward)
print(f"liked: {sum(hits[:300]) / 300:.0%} of the first 300 films, {sum(hits[-300:]) / 300:.0%} of the last 300")

# %%
# The whole ranking, or other arms
# --------------------------------
#
# ``count`` is the maximum length of the ranking; None means all arms. ``exclude`` has the ids of arms that must not be recommended. ``arms`` has the
# ids of some arms of the catalogue, or new arms with their features.

print(recommender.recommend("user 3", exclude=["Night Train"], count=None).to_frame())
print(recommender.recommend("user 30", {"Cold Case": {"genre": "crime", "new": True}, "Waltz": {"genre": "drama"}}))

# %%
# Why this film?
# --------------
#
# ``explain`` returns what ``recommend`` would return now, and stores no decision. The estimate is the sum of the contributions of the features and an
# intercept. The sources are the groups of users whose rewards the estimate is based on.

explained = recommender.explain("user 30")
print(explained)
print(explained.contributions_frame())
print(explained.sources_frame().head(3))

# %%
# Groups
# ------
#
# The groups have the ids of the users. ``groups`` returns all groups, ``groups_of`` those that contain a user. Groups with the same users are one group.

group = min(recommender.groups_of("user 30"), key=lambda group: len(group.users))
print(group, *group.users, sep=", ")
for other in recommender.similar_users("user 30", limit=3):
    print(other)
recommender.groups_frame().head(3)

# %%
# The map shows the estimated preferences of all users. Users with similar preferences are near each other.

chart = recommender.plot_users()

# %%
# Save and continue
# -----------------
#
# The file contains the policy, the users, the catalogue and the recent decisions, so that rewards of earlier decisions can still arrive. The format
# has a version and does not use pickle.

import tempfile
from pathlib import Path

path = Path(tempfile.mkdtemp()) / "films.locb"
open_decision = recommender.recommend("user 3")
recommender.save(path)
recommender = locb.Recommender.load(path)
recommender.reward(open_decision.decision_id, 1.0)
print(recommender)

# %%
# From here to a service
# ----------------------
#
# :class:`locb.client.Client` also has the methods ``recommend`` and ``reward``. It calls a service, which stores every decision and reward on disk
# before it responds. The same requests and rewards give the same recommendations: the service and the recommender run the same code.
