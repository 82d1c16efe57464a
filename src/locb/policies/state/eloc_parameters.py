"""Parameters that only ELOC has: their declarations, with types, ranges and descriptions."""

from __future__ import annotations

from typing import Annotated, Any

from locb.common.validation import ParameterError, check_float
from locb.kernels.eloc.state import AUTO_MEMORIES, SCREEN_NOISE, SCREEN_OFF, SCREEN_THEORY
from locb.policies.parameters import Parameter

AUTO = "auto"
SCREENS = {"noise": SCREEN_NOISE, "theory": SCREEN_THEORY, "off": SCREEN_OFF}


def check_memory(value: Any) -> float | str:
    """Return ``value`` as a float above 1 or "auto"; raise a ValueError for any other value."""
    if isinstance(value, str) and value != AUTO:
        raise ParameterError("memory", f" must be a number above 1, 'auto' or None, not {value!r}")
    return value if isinstance(value, str) else check_float("memory", value, 1.0, open_ends=True)


Beta = Annotated[float, Parameter("Weight of the exploration bonus.", minimum=0.0)]
Memory = Annotated[
    float | str | None,
    Parameter(
        "For preferences that change: each round of a user multiplies the weight of the user's earlier observations by "
        f'1 − 1/memory. "auto" learns from the errors of predictions whether to forget, and chooses between '
        f"{' and '.join(f'{memory:g}' for memory in AUTO_MEMORIES)}. None means that all observations keep their full "
        "weight. A number must be above 1.",
        type='float or "auto"',
        check=check_memory,
    ),
]
Robust = Annotated[
    bool,
    Parameter(
        "Whether to limit outliers. Rewards with at most two distinct values, such as clicks, are learned unchanged."
    ),
]
Screen = Annotated[
    str,
    Parameter(
        "Safety screen: replaces the arm with the highest score if the user's own rewards indicate that another arm "
        'may be clearly better. "noise": bounds from estimated noise; "theory": with a regret guarantee; "off": none.',
        choices=tuple(SCREENS),
    ),
]
NormBound = Annotated[float, Parameter('For screen="theory": assumed upper bound on the norm of θ.', above=0.0)]
Delta = Annotated[
    float,
    Parameter(
        'For certificates and screen="theory": maximum probability that the guarantee fails.', above=0.0, below=1.0
    ),
]
