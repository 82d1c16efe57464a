"""Temporary stores of the stress tests."""

from stress.stores import new_stores


def test_a_service_can_write_its_messages_beside_each_new_store() -> None:
    with new_stores("sqlite") as create:
        folders = [create().folder for _ in range(2)]
        assert folders[0] != folders[1]
        for folder in folders:
            folder.with_name(folder.name + ".log").touch()
