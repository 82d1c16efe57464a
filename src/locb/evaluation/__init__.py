"""Results of experiments: runs, comparisons, claims, cluster scores and confidence radii."""
