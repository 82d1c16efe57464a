"""Phases of SCLUB: phase s has 2^s rounds. At the start of a phase, all users become unchecked."""

from locb.common.arrays import Floats
from locb.common.jit import no_alloc
from locb.kernels.common.linear_algebra import solve_ridge
from locb.kernels.sclub.state import EXCLUDED, N_SLOTS, PHASE, PHASE_END, SCLUBState


@no_alloc
def begin_phase(state: SCLUBState, workspace: Floats) -> None:
    """Start the next phase: mark all users as unchecked, and record the estimate and the rounds of every cluster."""
    int_params = state.int_params
    int_params[PHASE] += 1
    int_params[PHASE_END] += 1 << int_params[PHASE]
    state.checked[:] = 0
    for c in range(int_params[N_SLOTS]):
        state.scan_points[c >> 6, 0, c & 63] = EXCLUDED
        if state.sizes[c] == 0:
            continue
        solve_ridge(state.cluster_sums, c, state.cluster_estimates, c, workspace)
        state.unchecked[c] = state.sizes[c]
        state.phase_served[c] = state.cluster_served[c]
        for q in range(workspace.shape[1]):
            state.phase_theta[c, q] = state.cluster_estimates[c, q]
