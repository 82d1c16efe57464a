"""Cancellation errors of sums from which parts were subtracted.

A group keeps the sums of its users' observations. When users leave, their parts are subtracted. The rounding error
stays as large as it was for the largest sums, so it matters once little is left. Then the sums are recomputed from the
users.
"""

from locb.common.arrays import Floats
from locb.common.jit import inline, no_alloc
from locb.kernels.common.linear_algebra import packed_trace

# Columns of ``peak_magnitudes`` (groups, 3): the largest values since the sums were last recomputed.
USERS, TRACE, VECTOR = 0, 1, 2
ALWAYS_RECOMPUTED_USERS = 32  # with at most this many users left, the sums are always recomputed
# Peaks below these cause a rounding error of about 1e-10 (float64) or 1e-5 (float32), which is harmless.
HARMLESS_FLOAT64, HARMLESS_FLOAT32 = 1e6, 64.0


@inline
def l1_norm(sums: Floats, row: int, d: int) -> float:
    """Return Σ|b| of a row (b, G)."""
    total = 0.0
    for a in range(d):
        total += abs(sums[row, a])
    return total


@no_alloc
def record_peaks(peak_magnitudes: Floats, sums: Floats, row: int, users: int, d: int) -> None:
    """Raise the peaks of a group to its current size and sums. Must be called before each subtraction."""
    peak_magnitudes[row, USERS] = max(peak_magnitudes[row, USERS], users)
    peak_magnitudes[row, TRACE] = max(peak_magnitudes[row, TRACE], packed_trace(sums, row, d))
    peak_magnitudes[row, VECTOR] = max(peak_magnitudes[row, VECTOR], l1_norm(sums, row, d))


@no_alloc
def needs_recomputation(
    peak_magnitudes: Floats, cluster_sums: Floats, sums: Floats, row: int, users: int, d: int
) -> bool:
    """Return whether half of the users, half of the trace or nearly all of b has been subtracted since the peak.

    The threshold for b is lower, because b may also be small by chance. As A = I + G, the rounding error of numbers
    below the HARMLESS constants does not affect an estimate. Without this condition, a large group in which only the
    served user has observations would be recomputed whenever that user leaves.
    """
    harmless = HARMLESS_FLOAT32 if sums.itemsize == 4 else HARMLESS_FLOAT64  # of the users' number type
    few = users <= max(ALWAYS_RECOMPUTED_USERS, 0.5 * peak_magnitudes[row, USERS])
    trace, peak_trace = packed_trace(cluster_sums, row, d), peak_magnitudes[row, TRACE]
    norm, peak_norm = l1_norm(cluster_sums, row, d), peak_magnitudes[row, VECTOR]
    small_trace = trace < 0.5 * peak_trace and peak_trace > harmless
    small_vector = norm < 0.0625 * peak_norm and peak_norm > harmless
    return bool(few or small_trace or small_vector)
