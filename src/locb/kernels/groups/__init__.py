"""Kernels of groups of users in a log: sums per user, evidence of groups, and connected components."""
