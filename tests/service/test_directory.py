"""Who has which place."""

from hypothesis import given
from hypothesis import strategies as st

from locb.service.core.user_index import UserIndex


def test_the_first_to_come_take_the_places_there_are() -> None:
    people = UserIndex(2)
    assert [people.assign(name) for name in ("ann", "bob", "eve")] == [0, 1, 2]
    assert (len(people), people.capacity) == (3, 3)
    assert (people.index_of("bob"), people.name_of(1), people.index_of("who")) == (1, "bob", None)
    assert "eve" in people
    assert "who" not in people


def test_who_is_there_already_stays() -> None:
    people = UserIndex(4, [(2, "ann"), (0, "bob")])
    assert (len(people), people.index_of("ann")) == (2, 2)
    assert [people.assign(name) for name in ("c", "d", "e")] == [1, 3, 4]


def test_a_place_is_used_again_only_once_it_is_set_free() -> None:
    people = UserIndex(1, [(0, "ann")])
    assert people.assign("bob") == 1
    assert people.release("ann") == 0
    assert people.name_of(0) is None
    assert people.index_of("ann") is None
    assert people.assign("ann") == 2  # somebody new, as far as anybody knows
    people.reclaim(0)
    assert people.assign("eve") == 0


@given(st.lists(st.tuples(st.sampled_from(["come", "leave", "free"]), st.integers(0, 9))))
def test_nobody_shares_a_place(steps: list[tuple[str, int]]) -> None:
    people, expected, left = UserIndex(3), {}, []
    for what, number in steps:
        name = str(number)
        if what == "come" and name not in people:
            expected[name] = people.assign(name)
            assert expected[name] not in left
        elif what == "leave" and name in people:
            left.append(people.release(name))
            assert left[-1] == expected.pop(name)
        elif what == "free" and left:
            people.reclaim(left.pop(0))
        assert {name: people.index_of(name) for name in expected} == expected
        assert len(set(expected.values())) == len(expected) == len(people)
        assert all(people.name_of(place) == name for name, place in expected.items())
