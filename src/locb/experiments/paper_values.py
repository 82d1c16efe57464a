"""Settings and reported numbers of the LOCB paper (Ban and He, WWW'21), shown next to measured values.

The paper does not state sigma, the noise scale, of its accuracy experiments. This project uses 1.
"""

from __future__ import annotations

REPEATS = 5
# Parameters of LOCB, see locb.LOCB.
DELTA = 0.1
GAMMA = 0.2
SIGMA = 1.0
TAUS = (8.0, 10.0, 12.0)
TAU = 10.0  # for experiments with a single value of tau
ALPHAS = (0.8, 1.0, 1.2)
# Thresholds of CLUB and SCLUB, which the paper does not state. The defaults of locb are 1 and 1.5.
# Large thresholds give accurate clusters, and small thresholds a low regret. The less noise, the smaller are the best
# thresholds. Below an alpha2 of about 0.1, CLUB soon separates all users, and its regret no longer changes.
ALPHA2S = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
ALPHA_THETAS = (0.75, 1.5, 3.0, 4.5, 6.0)
REGRET_THRESHOLDS = {
    "club": ("alpha2", (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0)),
    "sclub": ("alpha_theta", (0.09375, 0.1875, 0.375, 0.75, 1.5, 3.0)),
}
ACCURACY_SEEDS = 100  # number of seed users in the accuracy experiments
REGRET_SEEDS = 30  # number of seed users in the regret experiments
SEED_COUNTS = (5, 10, 20, 50, 100)  # numbers of seed users in the experiments that vary this number
GAMMAS = (0.4, 0.3, 0.2, 0.15, 0.1)
MAP_USERS = 60  # number of users in Figure 1
NO_CHANGE = 10.0  # N-CLUB and N-LOCB stop after NO_CHANGE / DELTA rounds without a change of the clusters

# Noise of the synthetic environment, by data set. Section 3 of the paper defines Gaussian noise without a standard
# deviation, and the rewards of its real data are 0 or 1. The standard deviation of a reward of 0 or 1 is up to 0.5.
# With Gaussian noise of that size, policies have about the same regret as with rewards of 0 or 1, so 0.1 and 0.2 show
# the effect of less noise.
NOISES: dict[str, str | float] = {
    "synthetic": "bernoulli",
    "synthetic-gaussian-0.1": 0.1,
    "synthetic-gaussian-0.2": 0.2,
}
DATA = {
    "synthetic": "Synthetic, rewards of 0 or 1",
    "synthetic-gaussian-0.1": "Synthetic, Gaussian noise 0.1",
    "synthetic-gaussian-0.2": "Synthetic, Gaussian noise 0.2",
    "yelp": "Yelp",
    "movielens": "MovieLens",
    "yahoo": "Yahoo",
}
# Prefix N-: stopped after NO_CHANGE / DELTA rounds without a change. Prefix ST-: stopped in the round in which the last
# cluster of LOCB becomes final, which means that it does not change any more.
METHODS = ("N-CLUB", "ST-CLUB", "ST-SCLUB", "N-LOCB", "LOCB")
# LOCB without the re-test of all members before a cluster becomes final: the rule that the paper prints.
PRINTED = "LOCB as printed"
# ELOC, stopped in the same round as LOCB. It is not part of the paper.
OTHER_METHODS = ("ST-ELOC",)

# Tables 1 and 2 of the paper: (F1, precision, recall) by data set and method.
ACCURACY = {
    "synthetic": {
        "N-CLUB": (0.390, 0.246, 0.943),
        "ST-CLUB": (0.578, 0.549, 0.612),
        "ST-SCLUB": (0.714, 0.745, 0.687),
        "N-LOCB": (0.662, 0.618, 0.714),
        "LOCB": (0.880, 0.913, 0.856),
    },
    "yelp": {
        "N-CLUB": (0.484, 0.334, 0.884),
        "ST-CLUB": (0.626, 0.593, 0.663),
        "ST-SCLUB": (0.768, 0.863, 0.693),
        "N-LOCB": (0.675, 0.620, 0.743),
        "LOCB": (0.879, 0.908, 0.853),
    },
    "movielens": {
        "N-CLUB": (0.417, 0.286, 0.773),
        "ST-CLUB": (0.520, 0.429, 0.663),
        "ST-SCLUB": (0.538, 0.739, 0.424),
        "N-LOCB": (0.472, 0.432, 0.524),
        "LOCB": (0.814, 0.892, 0.749),
    },
    "yahoo": {
        "N-CLUB": (0.454, 0.334, 0.709),
        "ST-CLUB": (0.528, 0.385, 0.841),
        "ST-SCLUB": (0.632, 0.781, 0.532),
        "N-LOCB": (0.615, 0.553, 0.692),
        "LOCB": (0.869, 0.935, 0.813),
    },
}
# Tables 3 and 4 of the paper: F1 of LOCB, in the order of SEED_COUNTS and of GAMMAS.
F1_BY_SEEDS = {
    "yelp": (0.457, 0.733, 0.823, 0.853, 0.916),
    "movielens": (0.304, 0.550, 0.747, 0.832, 0.895),
}
F1_BY_GAMMA = {
    "yelp": (0.732, 0.908, 0.916, 0.812, 0.708),
    "movielens": (0.654, 0.864, 0.895, 0.762, 0.643),
}
