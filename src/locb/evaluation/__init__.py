"""Result types of experiments: runs, comparisons, claims with verdicts, cluster scores, and bounds of the theorems."""
