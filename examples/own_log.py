"""
Use your own log
================

Turn a table of users, items and ratings into an environment, and compare policies in this environment.

"""

# %%
# A log file
# ----------
#
# The table can be a CSV, TSV, Parquet or JSON-lines file with one row per rating or click. This example writes a small synthetic file: 60 customers
# of two kinds rate products of four categories with 1 to 5 stars.

import csv
import tempfile
from pathlib import Path

import numpy as np

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
categories = ("garden", "kitchen", "music", "games")
preferences = {"handy": (0.9, 0.8, 0.2, 0.1), "playful": (0.1, 0.3, 0.8, 0.9)}

with (folder / "ratings.csv").open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["customer", "product", "stars", "category"])
    for customer in range(60):
        kind = "handy" if customer < 30 else "playful"
        for product in rng.choice(200, size=80, replace=False):
            category = product % 4
            stars = 4 + rng.integers(2) if rng.random() < preferences[kind][category] else 1 + rng.integers(3)
            writer.writerow([f"c{customer}", f"p{product}", stars, categories[category]])

# %%
# The environment
# ---------------
#
# :func:`locb.datasets.table` reads the file. With ``offer="one-liked"``, a rating of more than three stars is a like. The features of an item are
# computed by a truncated singular value decomposition of the likes and of the columns in ``features``. By default, these likes come from a random
# half of the records, and only the other half is used in rounds, because the features would otherwise reveal the rewards. A round offers ten products
# (*arms*) to a customer: one product that the customer liked, with reward 1, and nine products that the customer did not like, with reward 0. By
# default, ``offer="recorded"``, a round offers products that the customer has rated, and the rewards are the ratings.

import locb

env = locb.datasets.table(
    folder / "ratings.csv",
    user="customer",
    item="product",
    rating="stars",
    offer="one-liked",
    features=["category"],
    n_users=60,
    cache_dir=folder / "cache",
)
print(env.about["records"], "records,", env.n_users, "users,", env.dim, "features")

# %%
# Which policy?
# -------------
#
# LOCB and ELOC find groups of similar customers. LinUCB-IND learns a separate model for each customer, and LinUCB-ONE learns one model for all
# customers.

results = []
for name in ("locb", "eloc", "linucb-ind", "linucb-one"):
    policy = locb.make_policy(name, n_users=env.n_users, dim=env.dim)
    run = locb.simulate(policy, env, rounds=10_000, seed=1)
    results.append({"policy": name, "share": float(run.rewards[-5_000:].mean())})
    print(f"{name:12} finds the liked product in {results[-1]['share']:.0%} of the last 5,000 rounds")

# %%
# With ten arms per round, a random choice finds the liked product in 10% of the rounds. Here, each customer has about 170 rounds, which is enough to
# learn most preferences separately. With fewer rounds per customer, groups have a larger effect.

import altair as alt

bars = alt.Chart(alt.InlineData(values=results), width=460, height=200, title="Liked product chosen, last 5,000 rounds")
chart = bars.mark_bar(size=28).encode(
    x=alt.X("share:Q", title="share of rounds", axis=alt.Axis(format="%"), scale=alt.Scale(domainMin=0)),
    y=alt.Y("policy:N", sort="-x", title=None),
)
