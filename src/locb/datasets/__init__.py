"""Data sets as their publishers ship them, each an ``Interactions`` world."""

from locb.datasets.movielens import movielens
from locb.datasets.table import table
from locb.datasets.yahoo import yahoo
from locb.datasets.yelp import yelp

__all__ = ["movielens", "table", "yahoo", "yelp"]
