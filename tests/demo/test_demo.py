"""The demonstration: films, visitors and the command locb demo."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from commandline import surroundings
from locb.cli.demo.film_catalogue import DIM, N_PEOPLE, FilmCatalogue
from locb.client import Client, ServiceError
from locb.common.feature_hashing import features
from locb.policies import policy_spec
from locb.policies.base.user_batch import membership_probabilities
from locb.service.config import DEFAULT_POLICY

LOCB = [sys.executable, "-c", "from locb.cli import main; main()"]


def test_probabilities_are_linear_in_the_hashed_features() -> None:
    catalogue = FilmCatalogue(seed=1)
    visits = [catalogue.draw_visit() for _ in range(20)]
    for visit in visits:
        person = catalogue.people.index(visit.person)
        rows = np.array([features(film.features, DIM) for film in visit.films])
        np.testing.assert_allclose(visit.probabilities, np.clip(rows @ catalogue.theta[person], 0.02, 0.98))
    probabilities = np.concatenate([visit.probabilities for visit in visits])
    assert np.mean((probabilities > 0.02) & (probabilities < 0.98)) > 0.5, "most probabilities are limits"
    assert len(set(catalogue.people)) == len(catalogue.people)
    centres = np.array([catalogue.theta[catalogue.group_of == group].mean(axis=0) for group in range(5)])
    distances = np.linalg.norm(centres[:, None] - centres[None], axis=2)[np.triu_indices(5, 1)]
    assert distances.min() > 1.0
    again = FilmCatalogue(seed=1)
    for visit in visits:
        repeated = again.draw_visit()
        assert repeated.person == visit.person
        assert [film.title for film in repeated.films] == [film.title for film in visit.films]


def count_sure_people(catalogue: FilmCatalogue, visits: int) -> tuple[int, int]:
    """Return how many people are sure of their group after some visits, and for how many of them the group is right.

    A group is right for a person if the true group of the person is the most frequent one among the sure people of the
    group. 15% of the people have the preferences of two groups.
    """
    spec = policy_spec(DEFAULT_POLICY)
    parameters = spec.service_parameters({})
    policy: Any = spec.make_for_service(n_users=spec.initial_capacity(parameters), dim=DIM, parameters=parameters)
    indices: dict[str, int] = {}  # of the people, in the order of their first visits
    for _ in range(visits):
        visit = catalogue.draw_visit()
        user = indices.setdefault(visit.person, len(indices))
        policy.add_users(max(0, user + 1 - policy.n_users))
        contexts = np.array([features(film.features, DIM) for film in visit.films])
        arm = policy.recommend(user, contexts)
        policy.update(user, contexts[arm], float(catalogue.draw_uniform() < visit.probabilities[arm]))
    truth = catalogue.group_of[[catalogue.people.index(person) for person in indices]]
    probabilities = membership_probabilities(policy.group_summary(), policy.user_batch(np.arange(len(indices))))
    assert probabilities is not None
    best, sure = probabilities.argmax(axis=1), probabilities.max(axis=1) >= 0.9
    right = [int(np.bincount(truth[sure & (best == group)]).max()) for group in np.unique(best[sure])]
    return int(sure.sum()), sum(right)


def test_sure_people_are_in_the_right_group() -> None:
    """DEMO_REPEATS=5 gives the figures of docs/explanation/eloc.md."""
    repeats = int(os.environ.get("DEMO_REPEATS", "1"))
    counts = {
        visits: np.sum([count_sure_people(FilmCatalogue(seed), visits) for seed in range(repeats)], axis=0).tolist()
        for visits in (1_000, 6_000)
    }
    print(counts)  # noqa: T201 - shown by pytest -s
    assert counts[1_000][0] <= 0.05 * repeats * N_PEOPLE
    sure, right = counts[6_000]
    assert sure >= 0.3 * repeats * N_PEOPLE
    assert right >= 0.9 * sure


def test_demo_serves_and_deletes_its_data(tmp_path: Path) -> None:
    from stress.postgres import free_port

    port = free_port()
    # The chart library is cached in its own folder, which is not deleted.
    kept = {"LOCB_CACHE": os.environ["LOCB_CACHE"]}
    environment = os.environ | surroundings(tmp_path, 200) | kept | {"TMPDIR": str(tmp_path)}
    command = [*LOCB, "demo", "--port", str(port), "--rate", "200"]
    with (tmp_path / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=environment)
    try:
        with Client(f"http://127.0.0.1:{port}", retries=0) as client:
            end, shown = time.monotonic() + 600, 0
            while shown < 50 and time.monotonic() < end and process.poll() is None:
                with suppress(ServiceError):  # the service has not started yet
                    shown = len(client.map().points.user)  # users with rewards; the service caches the map
                time.sleep(0.1)
            assert shown >= 50, (tmp_path / "output").read_text()
            status = client.status()
            assert status.rewards > 50
            assert status.clusters.forming + status.clusters.returned > 0
        assert f"Open http://127.0.0.1:{port} in a browser" in (tmp_path / "output").read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    assert [path.name for path in tmp_path.iterdir()] == ["output"]
