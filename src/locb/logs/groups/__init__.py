"""Groups of like-minded users in a log: sums per user in one pass, groups with probabilities, and certificates."""
