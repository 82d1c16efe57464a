"""Results of experiments: runs, comparisons, claims, cluster scores and theorem bounds."""
