"""Readers of data sets in their published formats. Each reader returns a :class:`locb.Interactions` environment."""

from locb.datasets.movielens import movielens
from locb.datasets.table import table
from locb.datasets.yahoo import yahoo
from locb.datasets.yelp import yelp

__all__ = ["movielens", "table", "yahoo", "yelp"]
