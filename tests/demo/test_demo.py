"""The demonstration: films, visitors and the command locb demo."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from commandline import surroundings
from locb.client import Client, ServiceError
from locb.common.feature_hashing import features
from locb.demo.film_catalogue import DIM, FilmCatalogue

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
