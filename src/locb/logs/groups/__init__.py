"""Groups of users with similar preferences in a log: sums per user, membership probabilities and certificates."""
