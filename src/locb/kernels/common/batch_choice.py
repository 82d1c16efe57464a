"""The choice of arms for many users at once, in blocks and in several threads."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.validation import ParameterError, check_array
from locb.kernels.common.handles import Handle

BLOCK = 256  # choices per call of a kernel. Between two blocks, Ctrl-C interrupts the calculation.
MAX_THREADS = 4
MIN_CHOICES_PER_THREAD = 2_048  # starting a thread takes as long as some hundred choices


def thread_count(n_choices: int) -> int:
    """Return the number of threads to use for a number of choices."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(available, MAX_THREADS, n_choices // MIN_CHOICES_PER_THREAD))


def choose_arms(handles: Sequence[Handle], users: Ints, contexts: NDArray[np.generic]) -> Ints:
    """Return the arm that a policy chooses for each of n users, or −1 if all scores are NaN.

    Parameters
    ----------
    handles : sequence of Handle
        One handle per thread, with scratch of its own. All handles have the state of the policy. With one handle, the
        choices are made in the order of ``users``.
    users : (n,) array of int
        The users. They have been checked.
    contexts : (n, k, d) or (k, d) array
        The contexts of each user, or of all users. Their shape has been checked.

    Raises
    ------
    ValueError
        If a context is not finite or too large.
    """
    chosen = np.full(len(users), -1)
    starts = iter(range(0, len(users), BLOCK))
    stop = threading.Event()
    contexts_of = _blocks(contexts, min(BLOCK, len(users)))

    def run(handle: Handle) -> None:
        for start in starts:
            if stop.is_set():
                return
            block = slice(start, start + BLOCK)
            handle.choose(users[block], contexts_of(block), chosen[block])

    if len(handles) == 1:
        run(handles[0])
        return chosen
    with ThreadPoolExecutor(len(handles) - 1) as pool:
        try:
            others = [pool.submit(run, handle) for handle in islice(handles, 1, None)]
            run(handles[0])
            for other in others:
                other.result()
        finally:  # also after an error or Ctrl-C
            stop.set()
    return chosen


def _blocks(contexts: NDArray[np.generic], length: int) -> Callable[[slice], Floats]:
    """Return a function that returns the checked contexts of a block of at most ``length`` users."""
    if contexts.ndim == 2:
        repeated = np.tile(check_array("contexts", contexts, (None, None)), (length, 1, 1))
        return lambda _block: repeated

    def checked(block: slice) -> Floats:
        try:
            return check_array("contexts", contexts[block], (None, None, None))
        except ParameterError:
            return check_array("contexts", contexts, (None, None, None))  # the message has the index in ``contexts``

    return checked
