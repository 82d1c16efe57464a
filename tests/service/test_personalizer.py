"""Personalizer's requests, from its own client's serializer to our terms and back."""

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
from locb.service.api.personalizer import conversion as c
from locb.service.api.personalizer import schemas as p
from loopback import ReceivedRequest, Reply, loopback


def rank(actions: list[Any], context: list[Any] | None = None, **more: Any) -> p.RankRequest:
    asked = {"actions": actions, "contextFeatures": context, **more}
    return msgspec.json.decode(msgspec.json.encode(asked), type=p.RankRequest)


def action(id_: str, *features: Any) -> dict[str, Any]:
    return {"id": id_, "features": list(features)}


def client(url: str = "http://127.0.0.1:1") -> PersonalizerClient:
    return PersonalizerClient(url, CognitiveServicesCredentials("secret"))


NEWS = [action("news", {"type": "News"}), action("sports", {"type": "Sports"}), action("fun", {"type": "Fun"})]


def test_what_its_client_sends_is_read() -> None:
    asked = models.RankRequest(
        context_features=[{"timeOfDay": "Morning"}, {"user": {"id": 7, "member": True}}],
        actions=[models.RankableAction(id="news", features=[{"type": "News", "words": 300}])],
        excluded_actions=["sports"],
        event_id="75269AD0",
        defer_activation=True,
    )
    sent = json.dumps(client()._serialize.body(asked, "RankRequest")).encode()
    read = msgspec.json.decode(sent, type=p.RankRequest)
    assert read.context_features == [{"timeOfDay": "Morning"}, {"user": {"id": 7, "member": True}}]
    assert [(one.id, one.features) for one in read.actions] == [("news", [{"type": "News", "words": 300}])]
    assert (read.excluded_actions, read.event_id, read.defer_activation) == (["sports"], "75269AD0", True)
    least = models.RankRequest(actions=[models.RankableAction(id="news", features=[])])
    sent = json.dumps(client()._serialize.body(least, "RankRequest")).encode()
    asked = c.to_arguments(msgspec.json.decode(sent, type=p.RankRequest), 10, "user.id")
    assert asked == (c.SHARED_USER, [("news", {"action=news": 1.0})], [], None, False)


def test_its_client_reads_what_is_answered() -> None:
    asked = rank(NEWS, excludedActions=["sports"])
    told = json.loads(msgspec.json.encode(c.to_rank_response(asked, "e1", ["fun", "news"])))
    # As in the example of the original's specification: the excluded one stays second.
    assert told == {
        "ranking": [
            {"id": "fun", "probability": 1.0},
            {"id": "sports", "probability": 0.0},
            {"id": "news", "probability": 0.0},
        ],
        "eventId": "e1",
        "rewardActionId": "fun",
    }
    read = client()._deserialize("RankResponse", told)
    assert (read.event_id, read.reward_action_id) == ("e1", "fun")
    assert [(one.id, one.probability) for one in read.ranking] == [("fun", 1.0), ("sports", 0.0), ("news", 0.0)]


def test_an_excluded_first_action_stays_first() -> None:
    response = c.to_rank_response(rank(NEWS, excludedActions=["news", "unknown"]), "e1", ["sports", "fun"])
    assert [one.id for one in response.ranking] == ["news", "sports", "fun"]
    assert response.reward_action_id == "sports"


def test_an_arm_has_its_id_its_features_and_crosses() -> None:
    asked = c.to_arguments(rank(NEWS, [{"timeOfDay": "Morning", "age": 1.5}], eventId="e1"), 10, "user.id")
    assert asked.event_id == "e1"
    squashed = math.asinh(1.5)
    assert asked.arms[0] == (
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
    ((_, arm),) = c.to_arguments(rank([action("a", features, None)]), 10, "user.id").arms
    assert arm == {"action=a": 1.0, **flat}


def test_objects_of_one_list_are_one() -> None:
    ((_, arm),) = c.to_arguments(rank([action("a", {"x": 1.0}, {"x": 1.0, "action": "a"})]), 10, "user.id").arms
    assert arm == {"action=a": 2.0, "x": 2 * math.asinh(1.0)}


@pytest.mark.parametrize(("dim", "most"), [(2, 8), (10, 40), (64, 256), (1000, 256)])
def test_crosses_are_bounded_and_those_of_the_id_come_first(dim: int, most: int) -> None:
    context = [{f"c{i}": "x" for i in range(30)}]
    asked = c.to_arguments(rank([action("a", {f"f{i}": "y" for i in range(30)})], context), dim, "user.id")
    crosses = [name for name in asked.arms[0][1] if "×" in name]
    expected = [f"c{i}=x×action=a" for i in range(30)]
    expected += [f"c{i}=x×f{j}=y" for j in range(30) for i in range(30)]
    assert crosses == expected[:most]
    assert len(asked.arms[0][1]) == 31 + most


@pytest.mark.parametrize(
    ("context", "user_at", "user"),
    [
        ([{"user": {"id": "ann"}}], "user.id", "ann"),
        ([{"time": 1}, {"user": {"id": 7}}], "user.id", "7"),
        ([{"user": {"id": 7.0}}], "user.id", "7"),
        ([{"user": {"id": 7.5}}], "user.id", "7.5"),
        ([{"user.id": "ann"}], "user.id", "ann"),
        ([{"visitor": "ann"}], "visitor", "ann"),
        ([{"user": {"id": None}}, {"user": {"id": "bob"}}], "user.id", "bob"),
        ([{"user": {"id": ""}}], "user.id", c.SHARED_USER),
        ([{"user": "ann"}], "user.id", c.SHARED_USER),
        ([{"user": {"name": "ann"}}, None], "user.id", c.SHARED_USER),
        ([], "user.id", c.SHARED_USER),
        (None, "user.id", c.SHARED_USER),
    ],
)
def test_the_user_is_where_it_is_said_to_be(context: list[Any] | None, user_at: str, user: str) -> None:
    asked = c.to_arguments(rank(NEWS, context), 10, user_at)
    assert asked.user == user
    if user != c.SHARED_USER:
        assert not any(user in name for name in asked.arms[0][1]), "the id is no feature"


def test_the_request_is_left_as_it_is() -> None:
    asked = rank(NEWS, [{"user": {"id": "ann", "age": 3}}])
    before = msgspec.json.encode(asked)
    assert "user.age×action=news" in c.to_arguments(asked, 10, "user.id").arms[0][1]
    assert msgspec.json.encode(asked) == before


def nested(depth: int) -> Any:
    return {"a": nested(depth - 1)} if depth else 1.0


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (rank([action("a"), action("b"), action("a")]), r"actions\[2\].id must be unique, but 'a' occurs twice"),
        (rank(NEWS[:2], excludedActions=["news", "sports"]), "excludedActions must not contain all actions"),
        (rank(NEWS, ["text"]), r"contextFeatures\[0\] must be an object of features, not a string"),
        (rank([action("a", {"x": 1}, [1])]), r"actions\[0\].features\[1\] must be an object of features, not a list"),
        (rank([action("a", {"x": {"": 1}})]), r"actions\[0\].features\[0\].x must not have an empty name"),
        (rank(NEWS, [nested(17)]), "must be nested at most 16 levels deep"),
        (rank(NEWS, [{"user": {"id": ["ann"]}}]), r"contextFeatures\[0\].user.id must be a string or a number"),
        (rank(NEWS, [{"user": {"id": True}}]), r"contextFeatures\[0\].user.id must be a string or a number"),
        (rank(NEWS, [{"user": {"id": "x" * 257}}]), "must have at most 256 characters"),
        (
            p.RankRequest([p.RankableAction("a", [{"x": 10**400}])]),
            r"actions\[0\].features\[0\].x must be a number that",
        ),
    ],
)
def test_what_is_wrong_is_named(asked: p.RankRequest, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        c.to_arguments(asked, 10, "user.id")


@pytest.mark.parametrize(
    "wrong",
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
def test_other_shapes_are_refused(wrong: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(json.dumps(wrong), type=p.RankRequest)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)
objects = st.lists(st.dictionaries(st.text(min_size=1, max_size=4), anything, max_size=4), max_size=3)


@given(st.dictionaries(st.text(min_size=1, max_size=5), objects, min_size=1, max_size=4), objects, st.integers(1, 50))
def test_any_request_becomes_vectors_or_names_what_is_wrong(actions: Any, context: Any, dim: int) -> None:
    asked = p.RankRequest([p.RankableAction(id_, features) for id_, features in actions.items()], context)
    try:
        read = c.to_arguments(asked, dim, "user.id")
    except ValueError as error:
        told = str(error)
    else:
        told = ""
    if told:
        assert "eatures[" in told
        return
    assert [id_ for id_, _ in read.arms] == list(actions)
    for _, features in read.arms:
        assert sum("×" in name for name in features) <= 256 + len(str(actions))
        if all(map(math.isfinite, features.values())):
            assert math.hypot(*hashing.feature_row(features, dim)) == pytest.approx(1.0)


@given(st.lists(st.integers(0, 9), min_size=1, unique=True), st.data())
def test_every_action_has_one_place(ids: list[int], data: st.DataObject) -> None:
    names = [f"a{i}" for i in ids]
    left = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    asked = rank([action(name) for name in names], excludedActions=[name for name in names if name not in left])
    response = c.to_rank_response(asked, "e", left)
    assert sorted(one.id for one in response.ranking) == sorted(names)
    assert [one.id for one in response.ranking if one.id in left] == left
    assert sum(one.probability for one in response.ranking) == 1.0


def test_its_client_goes_all_the_way() -> None:
    seen: list[ReceivedRequest] = []

    def serve(asked: ReceivedRequest) -> Reply:
        seen.append(asked)
        headers = {"Content-Type": "application/json"}
        if asked.headers.get(p.KEY_HEADER.lower()) != "secret":
            return 401, headers, msgspec.json.encode(c.to_error_response(401, "no token")[1])
        if asked.path == f"{p.PATH}/rank":
            request = msgspec.json.decode(asked.body, type=p.RankRequest)
            try:
                question = c.to_arguments(request, 10, "user.id")
            except ValueError as error:
                status, told = c.to_error_response(422, str(error), "actions")
                return status, headers, msgspec.json.encode(told)
            ids = [id_ for id_, _ in question.arms if id_ not in question.excluded]
            return p.RANK_STATUS, headers, msgspec.json.encode(c.to_rank_response(request, "e1", ids))
        if asked.path == f"{p.PATH}/events/e1/reward":
            assert msgspec.json.decode(asked.body, type=p.RewardRequest).value == 0.5
            return p.EVENT_STATUS, {}, b""
        if asked.path == f"{p.PATH}/events/e1/activate":
            return p.EVENT_STATUS, {}, b""
        return 404, headers, msgspec.json.encode(c.to_error_response(404, "no event 'e2'")[1])

    with loopback(serve) as server, client(server.url) as azure:
        actions = [models.RankableAction(id=name, features=[{"type": name}]) for name in ("news", "sports")]
        response = azure.rank(models.RankRequest(actions=actions, excluded_actions=["news"]))
        assert (response.event_id, response.reward_action_id) == ("e1", "sports")
        assert [one.id for one in response.ranking] == ["news", "sports"]
        azure.events.reward(event_id="e1", value=0.5)
        azure.events.activate(event_id="e1")
        with pytest.raises(models.ErrorResponseException, match=r"\(BadRequest\) actions\[1\].id must be") as raised:
            azure.rank(models.RankRequest(actions=[actions[0], actions[0]]))
        assert raised.value.response.status_code == 400
        assert raised.value.error.error.target == "actions"
        with pytest.raises(HttpOperationError, match="Not Found|Said") as missing:
            azure.events.reward(event_id="e2", value=0.5)
        assert missing.value.response.status_code == 404
    assert {asked.method for asked in seen} == {"POST"}


@pytest.mark.parametrize(
    ("status", "said", "code"),
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
def test_refusals(status: int, said: int, code: str) -> None:
    told, body = c.to_error_response(status, "why")
    assert told == said
    assert json.loads(msgspec.json.encode(body)) == {"error": {"code": code, "message": "why"}}
