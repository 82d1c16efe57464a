"""Declaration of policy parameters: types, defaults, ranges and descriptions in one place.

A policy declares each parameter once, in the signature of its ``__init__``::

    Gamma = Annotated[float, Parameter("Upper limit of the distance between two users.", above=0.0)]


    class MyPolicy(Policy):
        @validate_parameters
        def __init__(self, *, n_users: NUsers, dim: Dim, gamma: Gamma = 0.2) -> None:
            super().__init__(n_users=n_users, dim=dim)

The declaration gives the name, type, default, range and description. Validation, ``get_params``, ``repr`` and saved
files use the declaration. So do the "Parameters" section of the docstring, the command-line help and the documentation.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from locb.common.validation import MAX_REWARD, ParameterError, ParameterName, check_choice, check_float, check_int
from locb.kernels.common.arm_scoring import TIE_FIRST, TIE_RANDOM

REQUIRED: Final = inspect.Parameter.empty  # marks a parameter without a default
MAX_REWARDS: Final = {"float64": MAX_REWARD, "float32": 1e30}  # largest absolute reward by ``dtype`` of the policy
TIE_RULES: Final = {"first": TIE_FIRST, "random": TIE_RANDOM}
_SECTION = re.compile(r"^[A-Z][A-Za-z ]+\n-{3,}$", re.MULTILINE)
_PARAMETERS = re.compile(r"^Parameters\n-{3,}$", re.MULTILINE)
_Init = TypeVar("_Init", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class Parameter:
    """Declaration of one parameter of a policy.

    Parameters
    ----------
    description : str
        Description of the parameter in the documentation and in the command-line help.
    minimum, maximum : float, optional
        Inclusive bounds.
    above, below : float, optional
        Exclusive bounds.
    choices : tuple of str, optional
        Allowed values.
    check : callable, optional
        Function that replaces the check by type, bounds and choices. It returns the value to use or raises ValueError.
    type : str, optional
        Name of the type in the documentation. By default, it is taken from the annotation.
    name : str, optional
        Name of the parameter, taken from the signature.
    default : object, optional
        Default of the parameter, taken from the signature.
    optional : bool, default=False
        Whether None is allowed, taken from the annotation.

    Examples
    --------
    >>> Parameter("Weight of the bonus.", minimum=0.0, name="alpha", type="float", default=1.0).range
    '≥ 0'
    """

    description: str
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    check: Callable[[Any], Any] | None = None
    type: str = ""
    name: str = ""
    default: Any = REQUIRED
    optional: bool = False

    @property
    def range(self) -> str:
        """The allowed values as text; empty if the type is the only restriction."""
        if self.choices:
            return ", ".join(f'"{choice}"' for choice in self.choices)
        bounds = (("≥", self.minimum), (">", self.above), ("≤", self.maximum), ("<", self.below))
        return ", ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)

    @property
    def type_text(self) -> str:
        """The type in numpydoc form, such as ``float or None``."""
        return f"{self.type} or None" if self.optional else self.type

    @property
    def default_text(self) -> str:
        """The default as text; ``required`` for a parameter without a default."""
        if self.default is REQUIRED:
            return "required"
        return f'"{self.default}"' if isinstance(self.default, str) else repr(self.default)

    def validate(self, value: Any) -> Any:
        """Return ``value`` as a plain Python value, such as an int for a NumPy integer.

        Raises
        ------
        ValueError
            If the value has the wrong type, is out of range or is not one of the choices.
        """
        if value is None and self.optional:
            return None
        if self.check is not None:
            return self.check(value)
        if self.choices:
            return check_choice(self.name, value, self.choices)
        if self.type == "int":
            return check_int(self.name, value, _as_int(self.minimum), _as_int(self.maximum))
        if self.type == "float":
            return self._validate_float(value)
        if self.type == "bool":
            if not isinstance(value, bool | np.bool_):
                raise ParameterError(self.name, f" must be True or False, not {value!r}")
            return bool(value)
        return value

    def _validate_float(self, value: Any) -> float:
        is_open = self.above is not None or self.below is not None
        low, high = (self.above, self.below) if is_open else (self.minimum, self.maximum)
        limit = MAX_REWARDS["float64"]
        low, high = -limit if low is None else low, limit if high is None else high
        return check_float(self.name, value, low, high, open_ends=is_open)


def check_dtype(value: Any) -> str:
    """Return ``value``, a dtype or its name, as "float64" or "float32"; raise a ValueError for any other dtype."""
    for name in MAX_REWARDS:
        if isinstance(value, str | type | np.dtype) and value in (name, np.dtype(name), np.dtype(name).type):
            return name
    raise ParameterError("dtype", f" must be 'float64' or 'float32', not {value!r}")


def check_reward_range(value: Any) -> tuple[float, float]:
    """Return a range of rewards as a pair of floats (low, high).

    Raises a ValueError unless high exceeds low by at least 1e-9 of the larger absolute value, and by at least 1e-100.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray) or len(value) != 2:
        raise ParameterError("reward_range", f" must be a pair (low, high) of numbers, not {value!r}")
    low, high = (check_float("reward_range", bound, -MAX_REWARD) for bound in value)
    least = max(1e-100, 1e-9 * max(abs(low), abs(high)))  # a narrower range would lose the digits of the rewards
    if not high - low >= least:
        found = f" must be (low, high), where high exceeds low by at least {least:g}, not ({low:.15g}, {high:.15g})"
        raise ParameterError("reward_range", found)
    return low, high


def screen_width(safe: bool, alpha: float) -> float:
    """Return the factor of √(xᵀA⁻¹x) in the width of the safety screen: ``alpha``, or 0 without a screen.

    Symbols are defined in ``locb.kernels``.
    """
    if safe and alpha == 0.0:
        raise ParameterError("alpha", " must be above 0 with ", ParameterName("safe"), "=True, not 0")
    return alpha if safe else 0.0


def _as_int(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


DEFAULT_SEEDS = 30  # number of seed users if neither n_seeds nor seeds is given

# Parameters that several policies share.
NUsers = Annotated[int, Parameter("Number of users; users are the integers 0 … n_users − 1.", minimum=1)]
Dim = Annotated[int, Parameter("Number of features of a context.", minimum=1)]
Alpha = Annotated[float, Parameter("Weight of the exploration bonus.", minimum=0.0)]
DrawScale = Annotated[
    float, Parameter("Factor of the standard deviation of the draws of Thompson sampling.", minimum=0.0)
]
Sigma = Annotated[float, Parameter("Sub-Gaussian scale of the noise; 0.5 is valid for rewards in [0, 1].", minimum=0.0)]
NSeeds = Annotated[
    int | None,
    Parameter(
        "Number of seed users, around whom clusters are built. They are drawn at random; in a service, they are the "
        f"first users who arrive. None means {DEFAULT_SEEDS}, or all users if there are fewer.",
        minimum=1,
    ),
]
Seeds = Annotated[
    Iterable[int] | None,
    Parameter(
        "The seed users, as an alternative to ``n_seeds``. Give only one of the two.",
        type="list of int",
        check=lambda users: users,
    ),
]
Safe = Annotated[
    bool,
    Parameter(
        "Whether to use a safety screen: if the user's own rewards indicate that another arm may be clearly better, "
        "the arm of LinUCB-IND with the same alpha replaces the arm with the highest score. This limits the regret of "
        "wrong clusters. Needs alpha above 0."
    ),
]
Ties = Annotated[
    str,
    Parameter(
        "Which of the arms within 1e-9 of the highest score to choose: the first, or a random one. A service accepts "
        "only the value first.",
        choices=tuple(TIE_RULES),
    ),
]
Dtype = Annotated[
    str,
    Parameter(
        "Number type of the state of each user. float32 halves the memory and limits rewards to ±1e30.",
        choices=tuple(MAX_REWARDS),
        check=check_dtype,
    ),
]
RewardRange = Annotated[
    tuple[float, float] | None,
    Parameter(
        "Lowest and highest reward. The policy learns (reward − low) / (high − low), without clipping, and reports all "
        "results in the original units. Other parameters, such as gamma and sigma, apply to the mapped rewards. None "
        "means that rewards are not mapped, and that the policy warns once if they are not on a scale of about 0 to 1. "
        "ELOC learns the scale, and warns only with screen='theory'.",
        type="(float, float)",
        check=check_reward_range,
    ),
]
Seed = Annotated[int, Parameter("Random seed of the policy.", minimum=0)]


def declared_parameters(init: Callable[..., None]) -> tuple[Parameter, ...]:
    """Return the parameters that the signature of an ``__init__`` declares.

    A parameter of the signature without a ``Parameter`` in its annotation has no description and is not validated.
    """
    function = inspect.unwrap(init)
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception:  # an annotation of a custom policy that only type checkers can resolve
        hints = {}
    found = []
    for name, argument in list(inspect.signature(function).parameters.items())[1:]:
        if argument.kind not in (argument.VAR_KEYWORD, argument.VAR_POSITIONAL):
            found.append(_bind(name, hints.get(name, Any), argument.default))
    return tuple(found)


def _bind(name: str, annotation: Any, default: Any) -> Parameter:
    declared = Parameter("")
    if get_origin(annotation) is Annotated:
        annotation, *metadata = get_args(annotation)
        declared = next((entry for entry in metadata if isinstance(entry, Parameter)), declared)
    optional = False
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not types.NoneType]
        optional = len(members) < len(get_args(annotation))
        annotation = members[0] if len(members) == 1 else annotation
    type_name = declared.type or getattr(annotation, "__name__", None) or str(annotation)
    return replace(declared, name=name, type=type_name, default=default, optional=optional)


def validate_parameters(init: _Init) -> _Init:
    """Decorate the ``__init__`` of a policy: validate its arguments and record them for ``get_params``.

    The body of ``__init__`` receives the validated values, which are already in ``self._parameters`` when it runs.
    """
    parameters = declared_parameters(init)
    names = {parameter.name for parameter in parameters}

    @functools.wraps(init)
    def validating(self: Any, /, **given: Any) -> None:
        if given.keys() <= names:  # otherwise, the call of ``init`` raises a TypeError for the unknown argument
            given = {p.name: p.validate(given[p.name]) for p in parameters if p.name in given}
            values = {p.name: given.get(p.name, p.default) for p in parameters}
            self._parameters = getattr(self, "_parameters", {}) | values
        init(self, **given)

    return cast(_Init, validating)


def plain_signature(init: Callable[..., None]) -> inspect.Signature:
    """Return the signature of ``init`` without ``self``, with plain types instead of ``Annotated`` types."""
    signature = inspect.signature(init)
    try:
        hints = get_type_hints(inspect.unwrap(init))
    except Exception:  # an annotation of a custom policy that only type checkers can resolve
        hints = {}
    arguments = list(signature.parameters.values())[1:]
    plain = [argument.replace(annotation=hints.get(argument.name, argument.annotation)) for argument in arguments]
    return signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)


def document_parameters(doc: str | None, parameters: Iterable[Parameter]) -> str | None:
    """Return the class docstring ``doc`` with a "Parameters" section in numpydoc form, before the other sections.

    A docstring that already has such a section, or None, is returned unchanged.
    """
    if doc is None or _PARAMETERS.search(inspect.cleandoc(doc)):
        return doc
    doc = inspect.cleandoc(doc)
    lines = ["Parameters", "----------"]
    for parameter in parameters:
        kind = "{" + parameter.range + "}" if parameter.choices else parameter.type_text
        default = "" if parameter.default is REQUIRED else f", default={parameter.default_text}"
        lines.append(f"{parameter.name} : {kind}{default}")
        if parameter.description:
            lines.append(f"    {describe(parameter)}")
    section = "\n".join(lines)
    following = _SECTION.search(doc)
    if following is None:
        return f"{doc}\n\n{section}\n"
    return f"{doc[: following.start()]}{section}\n\n{doc[following.start() :]}\n"


def describe(parameter: Parameter) -> str:
    """Return the description of a parameter, followed by its bounds."""
    bounds = parameter.range if not parameter.choices else ""
    return f"{parameter.description} Must be {bounds}." if bounds else parameter.description


def parameter_table(policy: Any) -> str:
    """Return the parameters of a policy class as a Markdown table.

    Parameters
    ----------
    policy : type or PolicySpec
        A subclass of ``Policy``, or its entry in the registry.
    """
    rows = ["| parameter | type | default | range | description |", "| --- | --- | --- | --- | --- |"]
    for parameter in policy.parameters:
        choices = parameter.range.replace('"', "`") or "any"
        default = parameter.default_text.replace('"', "")
        default = default if parameter.default is REQUIRED else f"`{default}`"
        text = parameter.description.replace("``", "`")
        rows.append(f"| `{parameter.name}` | {parameter.type_text} | {default} | {choices} | {text} |")
    return "\n".join(rows) + "\n"


def format_parameter(parameter: Parameter) -> str:
    """Return a parameter as one line of text, for command-line help."""
    limits = f"; {parameter.range}" if parameter.range else ""
    description = parameter.description.replace("``", "")
    return f"{parameter.name} ({parameter.type_text}, default {parameter.default_text}{limits}): {description}"
