"""ELOC's weights of the components of a user's posterior: responsibilities, and the gate.

Terms and symbols are defined in ``locb.kernels.eloc.state`` and ``locb.kernels``.
"""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import inline
from locb.kernels.eloc.state import (
    EVERYONE,
    GAP,
    MAX_EVIDENCE_GAP,
    MAX_GAP,
    MIN_RELATIVE_WEIGHT,
    MIXTURE,
    POPULATION,
)


@inline
def compute_responsibilities(
    components: Ints, prior_weights: Floats, log_evidence: Floats, responsibilities: Floats
) -> None:
    """Compute the responsibilities of the components, proportional to π exp(ℓ), where ℓ is the log evidence.

    Responsibilities below MIN_RELATIVE_WEIGHT of the largest become 0.
    """
    best = -np.inf
    for c in range(1, components[0] + 1):
        best = max(best, log_evidence[components[c]])
    largest = 0.0
    for c in range(1, components[0] + 1):
        s = components[c]
        responsibilities[s] = 0.0
        if log_evidence[s] >= best - MAX_EVIDENCE_GAP:
            responsibilities[s] = prior_weights[s] * math.exp(log_evidence[s] - best)
            largest = max(largest, responsibilities[s])
    total = 0.0
    for c in range(1, components[0] + 1):
        s = components[c]
        if responsibilities[s] < MIN_RELATIVE_WEIGHT * largest:
            responsibilities[s] = 0.0
        total += responsibilities[s]
    for c in range(1, components[0] + 1):
        responsibilities[components[c]] /= total


@inline
def compute_gate_weights(learned_scalars: Floats, gate_weights: Floats) -> None:
    """Compute the gate's weights of everyone, the population and the mixture from their log weights; the sum is 1.

    The log weight of everyone is reduced if the evidence of all users contradicts it.
    """
    for a in range(3):
        gate_weights[a] = learned_scalars[a]
    gate_weights[EVERYONE] -= max(0.0, learned_scalars[GAP] - MAX_GAP)
    best = max(gate_weights[EVERYONE], gate_weights[POPULATION], gate_weights[MIXTURE])
    total = 0.0
    for a in range(3):
        gate_weights[a] = math.exp(gate_weights[a] - best)
        total += gate_weights[a]
    for a in range(3):
        gate_weights[a] /= total


@inline
def component_weight(s: int, responsibilities: Floats, gate_weights: Floats) -> float:
    """Return the total weight of component s in the posterior.

    The total weight is the gate's weight of the mixture times the responsibility of component s. Two components follow
    the K neighbourhoods: everyone (s = K) and the population (s = K + 1). Both also have a gate weight of their own.
    """
    weight: float = gate_weights[MIXTURE] * responsibilities[s]
    if s == responsibilities.size - 2:
        weight += gate_weights[EVERYONE]
    elif s == responsibilities.size - 1:
        weight += gate_weights[POPULATION]
    return weight
