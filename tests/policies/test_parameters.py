"""Parameters are declared once; signature, validation, get_params, repr and documentation match the declaration."""

import inspect
from typing import Annotated, Any

import numpy as np
import pytest

import locb
from locb.policies import REGISTRY, Parameter, parameter_table, validate_parameters
from locb.policies.parameters import REQUIRED, Dim, NUsers
from policies.helpers import KINDS, N, make, make_rounds, state_of

CLASSES = [locb.LOCB, locb.ELOC, locb.CLUB, locb.SCLUB, locb.LinUCB]
PLAIN_TYPES = {"int": int, "float": float, "bool": bool, "str": str}


@pytest.mark.parametrize("policy_class", CLASSES)
def test_the_signature_is_the_declaration(policy_class: Any) -> None:
    signature = inspect.signature(policy_class)
    assert list(signature.parameters) == [parameter.name for parameter in policy_class.parameters]
    for parameter, argument in zip(policy_class.parameters, signature.parameters.values(), strict=True):
        assert argument.kind is inspect.Parameter.KEYWORD_ONLY
        assert argument.default is parameter.default or argument.default == parameter.default
        if parameter.type in PLAIN_TYPES:
            plain = PLAIN_TYPES[parameter.type]
            assert argument.annotation == (plain | None if parameter.optional else plain)


@pytest.mark.parametrize("policy_class", CLASSES)
def test_every_parameter_is_described_and_every_default_is_valid(policy_class: Any) -> None:
    for parameter in policy_class.parameters:
        assert parameter.description.endswith("."), parameter.name
        if parameter.default is not REQUIRED:
            assert parameter.validate(parameter.default) == parameter.default


@pytest.mark.parametrize("policy_class", CLASSES)
def test_the_docstring_has_every_parameter_once(policy_class: Any) -> None:
    doc = inspect.getdoc(policy_class)
    assert doc is not None
    assert doc.count("Parameters\n----------") == 1
    assert doc.index("Parameters\n----------") < doc.index("Examples\n--------")
    for parameter in policy_class.parameters:
        assert doc.count(f"\n{parameter.name} : ") == 1
    lines = parameter_table(policy_class).splitlines()
    assert len(lines) == 2 + len(policy_class.parameters)


def test_the_docstring_in_numpydoc_form() -> None:
    doc = locb.LOCB.__doc__
    assert doc is not None
    assert "\nn_users : int\n    Number of users" in doc
    assert (
        "\ngamma : float, default=0.2\n"
        "    Intended maximum distance between preferences of two cluster members. Must be > 0.\n"
    ) in doc
    assert "\nn_seeds : int or None, default=None\n" in doc
    assert '\nstop : {"radius", "certificate", "published"}, default="radius"\n' in doc


@pytest.mark.parametrize("kind", KINDS)
def test_copy_from_get_params_plays_the_same(kind: str) -> None:
    policy, other = make(kind), make(kind, 0)
    copy = type(policy)(**policy.get_params())
    assert list(policy.get_params()) == [parameter.name for parameter in type(policy).parameters]
    assert copy.get_params() == policy.get_params()
    assert copy.served.sum() == 0
    if "ties" not in KINDS[kind]:  # drawing seed users changes the generator for random ties
        assert np.array_equal(copy.play(make_rounds(100)), other.play(make_rounds(100)))


def test_clone_of_scikit_learn_is_an_untrained_copy() -> None:
    base = pytest.importorskip("sklearn.base", reason="scikit-learn is not installed: run pip install locb[data]")
    for policy in (
        locb.LOCB(n_users=5, dim=2, gamma=0.3, n_seeds=2),
        locb.ELOC(n_users=5, dim=2),
        locb.LinUCB(n_users=5, dim=2),
    ):
        policy.update(1, [1.0, 0.0], 1.0)
        copy = base.clone(policy)
        assert type(copy) is type(policy)
        assert copy.get_params(deep=False) == policy.get_params()
        assert (copy.served.sum(), policy.served.sum()) == (0, 1)


def test_get_params_follows_the_policy() -> None:
    policy = locb.LOCB(n_users=3, dim=2, n_seeds=2, late_seeds=2, seed=1)
    policy.add_users(1)
    parameters = policy.get_params()
    assert parameters["n_users"] == 4
    assert parameters["late_seeds"] == 1
    assert parameters["seeds"] == [cluster.seed for cluster in policy.clusters()]
    parameters["seeds"].clear()  # a copy
    assert len(policy.get_params()["seeds"]) == 3


def test_values_are_recorded_in_plain_form() -> None:
    policy = locb.LinUCB(n_users=np.int32(3), dim=2, alpha=np.float32(0.5), shared=np.bool_(True), dtype=np.float32)
    assert repr(policy) == "LinUCB(n_users=3, dim=2, alpha=0.5, shared=True, dtype='float32')"
    kinds = {name: type(value) for name, value in policy.get_params().items() if value is not None}
    expected = {"n_users": int, "dim": int, "alpha": float, "shared": bool, "ties": str, "dtype": str, "seed": int}
    assert kinds == expected
    with pytest.raises(ValueError, match="shared must be True or False, not 1"):
        locb.LinUCB(n_users=3, dim=2, shared=1)


def test_wrong_arguments_are_the_usual_type_errors() -> None:
    with pytest.raises(TypeError, match=r"__init__\(\) got an unexpected keyword argument 'speed'"):
        locb.CLUB(n_users=3, dim=2, speed=1)
    with pytest.raises(TypeError, match=r"missing 1 required keyword-only argument: 'dim'"):
        locb.CLUB(n_users=3)


class Custom(locb.Policy):
    """Custom policy whose ``__init__`` is decorated with ``validate_parameters``."""

    @validate_parameters
    def __init__(
        self,
        *,
        n_users: NUsers,
        dim: Dim,
        epsilon: Annotated[float, Parameter("Exploration rate.", minimum=0.0, maximum=1.0)] = 0.1,
        plain: int = 3,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim)

    def recommend(self, user: int, contexts: Any) -> int:
        return 0

    def update(self, user: int, context: Any, reward: float) -> None:
        pass


def test_custom_policy_declares_parameters() -> None:
    policy = Custom(n_users=2, dim=3, epsilon=1)
    assert policy.get_params() == {"n_users": 2, "dim": 3, "epsilon": 1.0, "plain": 3}
    assert type(policy)(**policy.get_params()).get_params() == policy.get_params()
    assert repr(policy) == "Custom(n_users=2, dim=3, epsilon=1.0)"
    assert "epsilon : float, default=0.1\n    Exploration rate. Must be ≥ 0, ≤ 1." in (Custom.__doc__ or "")
    with pytest.raises(ValueError, match="epsilon must be between 0 and 1, not 2"):
        Custom(n_users=2, dim=3, epsilon=2)


def test_get_params_without_recorded_parameters() -> None:
    class Bare(Custom):
        def __init__(self, *, n_users: int, dim: int, secret: int) -> None:
            super().__init__(n_users=n_users, dim=dim)

    with pytest.raises(AttributeError, match="Bare does not record secret: decorate its __init__ with"):
        Bare(n_users=2, dim=3, secret=1).get_params()


def test_a_subclass_has_its_own_signature() -> None:
    class Narrow(locb.LOCB):
        """LOCB with one seed user and fewer parameters."""

        @validate_parameters
        def __init__(self, *, n_users: NUsers, dim: Dim) -> None:
            super().__init__(n_users=n_users, dim=dim, n_seeds=1)

    assert list(inspect.signature(Narrow).parameters) == ["n_users", "dim"]
    assert Narrow(n_users=N, dim=3).get_params() == {"n_users": N, "dim": 3}
    assert state_of(Narrow(n_users=N, dim=3)) == state_of(locb.LOCB(n_users=N, dim=3, n_seeds=1))


def test_a_fixed_parameter_cannot_be_set() -> None:
    assert "shared" not in [parameter.name for parameter in REGISTRY["linucb-one"].parameters]
    assert "shared" in [parameter.name for parameter in locb.LinUCB.parameters]
