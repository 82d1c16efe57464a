"""Conversion of the requests and responses of Azure Personalizer, with the serializer of its client library."""

import json
import math
from typing import Any

import msgspec
import pytest
from azure.cognitiveservices.personalizer import PersonalizerClient, models
from hypothesis import given
from hypothesis import strategies as st
from msrest.authentication import CognitiveServicesCredentials
from msrest.exceptions import HttpOperationError

from locb.common import feature_hashing as hashing
from locb.service.api.personalizer import schemas
from locb.service.api.personalizer.conversion import SHARED_USER, to_arguments, to_error_response, to_rank_response
from loopback import ReceivedRequest, Reply, loopback


def rank_request(actions: list[Any], context: list[Any] | None = None, **fields: Any) -> schemas.RankRequest:
    body = {"actions": actions, "contextFeatures": context, **fields}
    return msgspec.json.decode(msgspec.json.encode(body), type=schemas.RankRequest)


def action(id_: str, *features: Any) -> dict[str, Any]:
    return {"id": id_, "features": list(features)}


def make_client(url: str = "http://127.0.0.1:1") -> PersonalizerClient:
    return PersonalizerClient(url, CognitiveServicesCredentials("secret"))


NEWS = [action("news", {"type": "News"}), action("sports", {"type": "Sports"}), action("fun", {"type": "Fun"})]


def test_requests_of_the_client_library() -> None:
    model = models.RankRequest(
        context_features=[{"timeOfDay": "Morning"}, {"user": {"id": 7, "member": True}}],
        actions=[models.RankableAction(id="news", features=[{"type": "News", "words": 300}])],
        excluded_actions=["sports"],
        event_id="75269AD0",
        defer_activation=True,
    )
    sent = json.dumps(make_client()._serialize.body(model, "RankRequest")).encode()
    request = msgspec.json.decode(sent, type=schemas.RankRequest)
    assert request.context_features == [{"timeOfDay": "Morning"}, {"user": {"id": 7, "member": True}}]
    assert [(item.id, item.features) for item in request.actions] == [("news", [{"type": "News", "words": 300}])]
    assert (request.excluded_actions, request.event_id, request.defer_activation) == (["sports"], "75269AD0", True)
    minimal = models.RankRequest(actions=[models.RankableAction(id="news", features=[])])
    sent = json.dumps(make_client()._serialize.body(minimal, "RankRequest")).encode()
    arguments = to_arguments(msgspec.json.decode(sent, type=schemas.RankRequest), 10, "user.id")
    assert arguments == (SHARED_USER, [("news", {"action=news": 1.0})], [], None, False)


def test_responses_for_the_client_library() -> None:
    request = rank_request(NEWS, excludedActions=["sports"])
    response = json.loads(msgspec.json.encode(to_rank_response(request, "e1", ["fun", "news"])))
    # As in the example of the specification: the excluded action stays second.
    assert response == {
        "ranking": [
            {"id": "fun", "probability": 1.0},
            {"id": "sports", "probability": 0.0},
            {"id": "news", "probability": 0.0},
        ],
        "eventId": "e1",
        "rewardActionId": "fun",
    }
    model = make_client()._deserialize("RankResponse", response)
    assert (model.event_id, model.reward_action_id) == ("e1", "fun")
    assert [(item.id, item.probability) for item in model.ranking] == [("fun", 1.0), ("sports", 0.0), ("news", 0.0)]


def test_excluded_first_action_stays_first() -> None:
    response = to_rank_response(rank_request(NEWS, excludedActions=["news", "unknown"]), "e1", ["sports", "fun"])
    assert [item.id for item in response.ranking] == ["news", "sports", "fun"]
    assert response.reward_action_id == "sports"


def test_features_of_an_arm() -> None:
    arguments = to_arguments(rank_request(NEWS, [{"timeOfDay": "Morning", "age": 1.5}], eventId="e1"), 10, "user.id")
    assert arguments.event_id == "e1"
    squashed = math.asinh(1.5)
    assert arguments.arms[0] == (
        "news",
        {
            "action=news": 1.0,
            "type=News": 1.0,
            "timeOfDay=Morning×action=news": 1.0,
            "age×action=news": squashed,
            "timeOfDay=Morning×type=News": 1.0,
            "age×type=News": squashed,
        },
    )


@pytest.mark.parametrize(
    ("features", "flat"),
    [
        ({"a": {"b": {"c": "x", "d": 1.0}}}, {"a.b.c=x": 1.0, "a.b.d": math.asinh(1.0)}),
        ({"v": [0.0, 2.0]}, {"v.0": 0.0, "v.1": math.asinh(2.0)}),
        ({"tags": ["x", "y", "x"]}, {"tags=x": 2.0, "tags=y": 1.0}),
        ({"flags": [True, False]}, {"flags.0=true": 1.0, "flags.1=false": 1.0}),
        ({"devices": [{"os": "ios"}, {"size": 1.0}]}, {"devices.os=ios": 1.0, "devices.size": math.asinh(1.0)}),
        ({"grid": [[1.0], [2.0]]}, {"grid.0.0": math.asinh(1.0), "grid.1.0": math.asinh(2.0)}),
        ({"mixed": ["x", 1.0, None, True]}, {"mixed=x": 1.0, "mixed.1": math.asinh(1.0), "mixed.3=true": 1.0}),
        ({"nothing": None, "empty": {}, "none": []}, {}),
        ({"on": True, "word": ""}, {"on=true": 1.0, "word=": 1.0}),
        ({"year": 2024, "low": -2024}, {"year": math.asinh(2024), "low": -math.asinh(2024)}),
    ],
)
def test_features_are_flattened(features: dict[str, Any], flat: dict[str, float]) -> None:
    ((_, arm),) = to_arguments(rank_request([action("a", features, None)]), 10, "user.id").arms
    assert arm == {"action=a": 1.0, **flat}


def test_objects_of_a_list_are_merged() -> None:
    ((_, arm),) = to_arguments(rank_request([action("a", {"x": 1.0}, {"x": 1.0, "action": "a"})]), 10, "user.id").arms
    assert arm == {"action=a": 2.0, "x": 2 * math.asinh(1.0)}


@pytest.mark.parametrize(("dim", "maximum"), [(2, 8), (10, 40), (64, 256), (1000, 256)])
def test_number_and_order_of_crosses(dim: int, maximum: int) -> None:
    context = [{f"c{i}": "x" for i in range(30)}]
    arguments = to_arguments(rank_request([action("a", {f"f{i}": "y" for i in range(30)})], context), dim, "user.id")
    crosses = [name for name in arguments.arms[0][1] if "×" in name]
    expected = [f"c{i}=x×action=a" for i in range(30)]
    expected += [f"c{i}=x×f{j}=y" for j in range(30) for i in range(30)]
    assert crosses == expected[:maximum]
    assert len(arguments.arms[0][1]) == 31 + maximum


@pytest.mark.parametrize(
    ("context", "user_path", "user"),
    [
        ([{"user": {"id": "ann"}}], "user.id", "ann"),
        ([{"time": 1}, {"user": {"id": 7}}], "user.id", "7"),
        ([{"user": {"id": 7.0}}], "user.id", "7"),
        ([{"user": {"id": 7.5}}], "user.id", "7.5"),
        ([{"user.id": "ann"}], "user.id", "ann"),
        ([{"visitor": "ann"}], "visitor", "ann"),
        ([{"user": {"id": None}}, {"user": {"id": "bob"}}], "user.id", "bob"),
        ([{"user": {"id": ""}}], "user.id", SHARED_USER),
        ([{"user": "ann"}], "user.id", SHARED_USER),
        ([{"user": {"name": "ann"}}, None], "user.id", SHARED_USER),
        ([], "user.id", SHARED_USER),
        (None, "user.id", SHARED_USER),
    ],
)
def test_user_id(context: list[Any] | None, user_path: str, user: str) -> None:
    arguments = to_arguments(rank_request(NEWS, context), 10, user_path)
    assert arguments.user == user
    if user != SHARED_USER:
        assert not any(user in name for name in arguments.arms[0][1]), "the id is not a feature"


def test_request_is_not_modified() -> None:
    request = rank_request(NEWS, [{"user": {"id": "ann", "age": 3}}])
    before = msgspec.json.encode(request)
    assert "user.age×action=news" in to_arguments(request, 10, "user.id").arms[0][1]
    assert msgspec.json.encode(request) == before


def nested(depth: int) -> Any:
    return {"a": nested(depth - 1)} if depth else 1.0


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        (
            rank_request([action("a"), action("b"), action("a")]),
            r"actions\[2\].id must be unique, but 'a' occurs",
        ),
        (rank_request(NEWS[:2], excludedActions=["news", "sports"]), "excludedActions must not contain all actions"),
        (rank_request(NEWS, ["text"]), r"contextFeatures\[0\] must be an object of features, not a string"),
        (
            rank_request([action("a", {"x": 1}, [1])]),
            r"actions\[0\].features\[1\] must be an object .*, not a list",
        ),
        (
            rank_request([action("a", {"x": {"": 1}})]),
            r"actions\[0\].features\[0\].x must not contain a feature with an empty name",
        ),
        (rank_request(NEWS, [nested(17)]), "must be nested at most 16 levels deep"),
        (
            rank_request(NEWS, [{"user": {"id": ["ann"]}}]),
            r"contextFeatures\[0\].user.id \(a user id\) must be a string or a number",
        ),
        (
            rank_request(NEWS, [{"user": {"id": True}}]),
            r"contextFeatures\[0\].user.id \(a user id\) must be a string or a number",
        ),
        (rank_request(NEWS, [{"user": {"id": "x" * 257}}]), "must have at most 256 characters"),
        (
            schemas.RankRequest([schemas.RankableAction("a", [{"x": 10**400}])]),
            r"actions\[0\].features\[0\].x must be a number from -1.8e308 to 1.8e308",
        ),
    ],
)
def test_invalid_requests(invalid: schemas.RankRequest, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        to_arguments(invalid, 10, "user.id")


@pytest.mark.parametrize(
    "invalid",
    [
        {},
        {"actions": []},
        {"actions": [{"id": "", "features": []}]},
        {"actions": [{"id": "x" * 257, "features": []}]},
        {"actions": [{"features": []}]},
        {"actions": [{"id": "a", "features": {"x": 1}}]},
        {"actions": [{"id": "a"}], "eventId": "x" * 257},
        {"actions": [{"id": "a"}], "excludedActions": [1]},
        {"actions": [{"id": "a"}], "deferActivation": "yes"},
    ],
)
def test_requests_that_do_not_match_the_schema(invalid: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(json.dumps(invalid), type=schemas.RankRequest)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)
objects = st.lists(st.dictionaries(st.text(min_size=1, max_size=4), anything, max_size=4), max_size=3)


@given(st.dictionaries(st.text(min_size=1, max_size=5), objects, min_size=1, max_size=4), objects, st.integers(1, 50))
def test_any_request_is_converted_or_rejected(actions: Any, context: Any, dim: int) -> None:
    request = schemas.RankRequest([schemas.RankableAction(id_, features) for id_, features in actions.items()], context)
    try:
        arguments = to_arguments(request, dim, "user.id")
    except ValueError as error:
        assert "eatures[" in str(error)  # noqa: PT017 - other requests are valid
        return
    assert [id_ for id_, _ in arguments.arms] == list(actions)
    for _, features in arguments.arms:
        assert sum("×" in name for name in features) <= 256 + len(str(actions))
        if all(map(math.isfinite, features.values())):
            assert math.hypot(*hashing.feature_row(features, dim)) == pytest.approx(1.0)


@given(st.lists(st.integers(0, 9), min_size=1, unique=True), st.data())
def test_every_action_is_ranked_once(ids: list[int], data: st.DataObject) -> None:
    names = [f"a{i}" for i in ids]
    eligible = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    received = rank_request(
        [action(name) for name in names], excludedActions=[name for name in names if name not in eligible]
    )
    response = to_rank_response(received, "e", eligible)
    assert sorted(item.id for item in response.ranking) == sorted(names)
    assert [item.id for item in response.ranking if item.id in eligible] == eligible
    assert sum(item.probability for item in response.ranking) == 1.0


def test_client_library_end_to_end() -> None:
    requests: list[ReceivedRequest] = []

    def serve(received: ReceivedRequest) -> Reply:
        requests.append(received)
        headers = {"Content-Type": "application/json"}
        if received.headers.get(schemas.KEY_HEADER.lower()) != "secret":
            return 401, headers, msgspec.json.encode(to_error_response(401, "no token")[1])
        if received.path == f"{schemas.PATH}/rank":
            request = msgspec.json.decode(received.body, type=schemas.RankRequest)
            try:
                arguments = to_arguments(request, 10, "user.id")
            except ValueError as error:
                status, error_body = to_error_response(422, str(error), "actions")
                return status, headers, msgspec.json.encode(error_body)
            ids = [id_ for id_, _ in arguments.arms if id_ not in arguments.excluded]
            return schemas.RANK_STATUS, headers, msgspec.json.encode(to_rank_response(request, "e1", ids))
        if received.path == f"{schemas.PATH}/events/e1/reward":
            assert msgspec.json.decode(received.body, type=schemas.RewardRequest).value == 0.5
            return schemas.EVENT_STATUS, {}, b""
        if received.path == f"{schemas.PATH}/events/e1/activate":
            return schemas.EVENT_STATUS, {}, b""
        return 404, headers, msgspec.json.encode(to_error_response(404, "no event 'e2'")[1])

    with loopback(serve) as server, make_client(server.url) as azure:
        actions = [models.RankableAction(id=name, features=[{"type": name}]) for name in ("news", "sports")]
        response = azure.rank(models.RankRequest(actions=actions, excluded_actions=["news"]))
        assert (response.event_id, response.reward_action_id) == ("e1", "sports")
        assert [item.id for item in response.ranking] == ["news", "sports"]
        azure.events.reward(event_id="e1", value=0.5)
        azure.events.activate(event_id="e1")
        with pytest.raises(models.ErrorResponseException, match=r"\(BadRequest\) actions\[1\].id must be") as raised:
            azure.rank(models.RankRequest(actions=[actions[0], actions[0]]))
        assert raised.value.response.status_code == 400
        assert raised.value.error.error.target == "actions"
        with pytest.raises(HttpOperationError, match="Not Found|Said") as missing:
            azure.events.reward(event_id="e2", value=0.5)
        assert missing.value.response.status_code == 404
    assert {received.method for received in requests} == {"POST"}


@pytest.mark.parametrize(
    ("status", "expected", "code"),
    [
        (400, 400, "BadRequest"),
        (401, 401, "Unauthorized"),
        (403, 403, "Forbidden"),
        (404, 404, "ResourceNotFound"),
        (409, 409, "BadRequest"),
        (413, 413, "BadRequest"),
        (422, 400, "BadRequest"),
        (429, 429, "TooManyRequests"),
        (503, 503, "InternalServerError"),
    ],
)
def test_error_responses(status: int, expected: int, code: str) -> None:
    converted, body = to_error_response(status, "why")
    assert converted == expected
    assert json.loads(msgspec.json.encode(body)) == {"error": {"code": code, "message": "why"}}
