"""Cancellation errors: when to recompute the sums of a cluster from which users were removed.

A cluster keeps the sums (b, G) of its users (see ``locb.kernels``). When users leave the cluster, their sums are
subtracted. The rounding error does not shrink with the sums: it stays as large as for the largest sums so far, the
*peak*. Once the sums are small relative to the peak, they are recomputed from the users.
"""

from locb.common.arrays import Floats
from locb.common.jit import inline, no_alloc
from locb.kernels.common.linear_algebra import packed_trace

# Columns of ``peak_magnitudes`` (clusters, 3): the largest number of users, trace of G and Σ|b| since the sums were
# last recomputed.
USERS, TRACE, VECTOR = 0, 1, 2
ALWAYS_RECOMPUTED_USERS = 32  # sums of at most this many users are always recomputed
# Peaks up to these values cause a rounding error of about 1e-10 (float64) or 1e-5 (float32), which is harmless.
HARMLESS_FLOAT64, HARMLESS_FLOAT32 = 1e6, 64.0


@inline
def l1_norm(sums: Floats, row: int, d: int) -> float:
    """Return Σ|b|, the sum of the absolute values of b, of a row (b, G)."""
    total = 0.0
    for a in range(d):
        total += abs(sums[row, a])
    return total


@no_alloc
def record_peaks(peak_magnitudes: Floats, sums: Floats, row: int, users: int, d: int) -> None:
    """Update the peaks of the cluster in ``row`` with its number of users and its sums.

    Must be called before each subtraction.
    """
    peak_magnitudes[row, USERS] = max(peak_magnitudes[row, USERS], users)
    peak_magnitudes[row, TRACE] = max(peak_magnitudes[row, TRACE], packed_trace(sums, row, d))
    peak_magnitudes[row, VECTOR] = max(peak_magnitudes[row, VECTOR], l1_norm(sums, row, d))


@no_alloc
def needs_recomputation(
    peak_magnitudes: Floats, cluster_sums: Floats, sums: Floats, row: int, users: int, d: int
) -> bool:
    """Return whether the sums of a cluster are so small relative to their peak that they must be recomputed.

    The sums must be recomputed in three cases: at most 32 users or half of the peak number of users are left; the trace
    of G is below half of its peak; Σ|b| is below 1/16 of its peak. The last limit is lower, because b may be small by
    chance.

    A peak up to the HARMLESS constants does not count, because A = I + G, so the rounding error of such a peak does not
    affect an estimate. Without this rule, a large cluster in which only one user has observations would be recomputed
    whenever that user leaves.
    """
    harmless = HARMLESS_FLOAT32 if sums.itemsize == 4 else HARMLESS_FLOAT64  # by the number type of the users' sums
    few = users <= max(ALWAYS_RECOMPUTED_USERS, 0.5 * peak_magnitudes[row, USERS])
    trace, peak_trace = packed_trace(cluster_sums, row, d), peak_magnitudes[row, TRACE]
    norm, peak_norm = l1_norm(cluster_sums, row, d), peak_magnitudes[row, VECTOR]
    small_trace = trace < 0.5 * peak_trace and peak_trace > harmless
    small_vector = norm < 0.0625 * peak_norm and peak_norm > harmless
    return bool(few or small_trace or small_vector)
