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
from locb.client import Client
from locb.common.feature_hashing import features
from locb.demo.film_catalogue import DIM, FilmCatalogue

LOCB = [sys.executable, "-c", "from locb.cli import main; main()"]


def test_probabilities_are_linear_in_the_hashed_features() -> None:
    catalogue = FilmCatalogue(seed=1)
    visit = catalogue.draw_visit()
    person = catalogue.people.index(visit.person)
    rows = np.array([features(film.features, DIM) for film in visit.films])
    np.testing.assert_allclose(visit.probabilities, np.clip(rows @ catalogue.theta[person], 0.02, 0.98))
    assert len(set(catalogue.people)) == len(catalogue.people)
    centres = np.array([catalogue.theta[catalogue.group_of == group].mean(axis=0) for group in range(5)])
    distances = np.linalg.norm(centres[:, None] - centres[None], axis=2)[np.triu_indices(5, 1)]
    assert distances.min() > 1.0
    again = FilmCatalogue(seed=1)
    assert [film.title for film in again.draw_visit().films] == [film.title for film in visit.films]


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
            end, users = time.monotonic() + 120, 0
            while users < 50 and time.monotonic() < end and process.poll() is None:
                with suppress(Exception):
                    users = client.status().users
                time.sleep(0.1)
        assert users >= 50, (tmp_path / "output").read_text()
        assert f"Open http://127.0.0.1:{port} in a browser" in (tmp_path / "output").read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    assert [path.name for path in tmp_path.iterdir()] == ["output"]
