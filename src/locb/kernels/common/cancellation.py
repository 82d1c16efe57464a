"""When sums that parts were subtracted from must be added up anew, so that rounding stays small beside what is left."""

from locb.common.arrays import Floats
from locb.common.jit import inline, no_alloc
from locb.kernels.common.linear_algebra import packed_trace

USERS, TRACE, VECTOR = 0, 1, 2  # columns of peaks (groups, 3): the most there was since the sums were last added up
FEW = 32  # the sums of so few users are always added up anew
HARMLESS, HARMLESS_HALF = 1e6, 64.0  # for float64 and float32: the rounding of this is some 1e-10, or some 1e-5


@inline
def length_of(sums: Floats, row: int, d: int) -> float:
    """Σ|b| of a row (b, G)."""
    total = 0.0
    for a in range(d):
        total += abs(sums[row, a])
    return total


@no_alloc
def record_peaks(peaks: Floats, sums: Floats, row: int, users: int, d: int) -> None:
    """Remember how large a group and its sums are now, if they are larger than before. Call it before subtracting."""
    peaks[row, USERS] = max(peaks[row, USERS], users)
    peaks[row, TRACE] = max(peaks[row, TRACE], packed_trace(sums, row, d))
    peaks[row, VECTOR] = max(peaks[row, VECTOR], length_of(sums, row, d))


@no_alloc
def needs_recomputation(peaks: Floats, sums: Floats, own: Floats, row: int, users: int, d: int) -> bool:
    """Whether half of the users or of the trace is gone, or nearly all of b, which may also be small by chance.

    As A = I + G, no estimate is harmed by what rounding leaves of numbers below HARMLESS. Without that, a large group
    of which only the served user has a history would be added up whenever that user leaves.
    """
    floor = HARMLESS_HALF if own.itemsize == 4 else HARMLESS  # what is subtracted was kept in the users' number type
    few = users <= max(FEW, 0.5 * peaks[row, USERS])
    light = packed_trace(sums, row, d) < 0.5 * peaks[row, TRACE] and peaks[row, TRACE] > floor
    short = length_of(sums, row, d) < 0.0625 * peaks[row, VECTOR] and peaks[row, VECTOR] > floor
    return bool(few or light or short)
