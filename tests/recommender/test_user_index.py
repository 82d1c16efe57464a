"""The mapping between user names and indices."""

from hypothesis import given
from hypothesis import strategies as st

from locb.recommender.user_index import UserIndex


def test_new_users_get_the_free_indices_first() -> None:
    users = UserIndex(2)
    assert [users.assign(name) for name in ("ann", "bob", "eve")] == [0, 1, 2]
    assert (len(users), users.capacity) == (3, 3)
    assert (users.index_of("bob"), users.name_of(1), users.index_of("unknown")) == (1, "bob", None)
    assert "eve" in users
    assert "unknown" not in users


def test_assigned_indices_are_kept() -> None:
    users = UserIndex(4, [(2, "ann"), (0, "bob")])
    assert (len(users), users.index_of("ann")) == (2, 2)
    assert [users.assign(name) for name in ("c", "d", "e")] == [1, 3, 4]


def test_released_index_is_assigned_again_only_after_reclaim() -> None:
    users = UserIndex(1, [(0, "ann")])
    assert users.assign("bob") == 1
    assert users.release("ann") == 0
    assert users.name_of(0) is None
    assert users.index_of("ann") is None
    assert users.assign("ann") == 2  # a new user, although the name is the same
    users.reclaim(0)
    assert users.assign("eve") == 0


@given(st.lists(st.tuples(st.sampled_from(["assign", "release", "reclaim"]), st.integers(0, 9))))
def test_no_two_users_share_an_index(steps: list[tuple[str, int]]) -> None:
    users, expected, released = UserIndex(3), {}, []
    for action, number in steps:
        name = str(number)
        if action == "assign" and name not in users:
            expected[name] = users.assign(name)
            assert expected[name] not in released
        elif action == "release" and name in users:
            released.append(users.release(name))
            assert released[-1] == expected.pop(name)
        elif action == "reclaim" and released:
            users.reclaim(released.pop(0))
        assert {name: users.index_of(name) for name in expected} == expected
        assert len(set(expected.values())) == len(expected) == len(users)
        assert all(users.name_of(index) == name for name, index in expected.items())
