"""locb watch and locb demo as a person meets them."""

import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from commandline import call, surroundings
from locb.client import Client
from locb.demo.film_catalogue import DIM, Cinema
from locb.demo.visitors import Visitors
from locb.service.api.auth import Tokens
from loopback import loopback
from serving import serving

ROOT = Path(__file__).parent.parent
READ, DECIDE = "a token that may read", "a token that may decide"
LOCB = [sys.executable, "-c", "from locb.cli import main; main()"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Any]]:
    """A service that some visitors came to, and its address."""
    with serving(tmp_path_factory.mktemp("state"), policy="locb", dim=DIM) as (client, service):
        url = str(client.base_url).rstrip("/")
        with Client(url) as asking:
            visitors = Visitors(asking, Cinema(seed=3), rate=1.0)
            visitors.visit(300)
            assert visitors.decisions == 300
            asking.recommend("ann", {"film": {"genre": "drama"}})
        yield url, service


def test_what_it_shows_is_what_the_api_says(service: tuple[str, Any], tmp_path: Path) -> None:
    url, _ = service
    done = call("watch", url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    now, history = httpx.get(f"{url}/v1/status").json(), httpx.get(f"{url}/v1/history?span=hour").json()
    groups = httpx.get(f"{url}/v1/groups?limit=10").json()
    assert now["decisions"] == 301
    text = " ".join(done.stdout.split())
    for figure in (
        f"301 decisions, {now['rewards']} rewards; {now['pending_rewards']} decisions wait",
        f"{history['total']['mean']:.3f} on average in the last hour ({now['rewards']} rewards",
        f"{now['users']} users, {now['rewarded_users']} of them with a reward learned",
        f"{now['clusters']['returned']} returned, {now['clusters']['forming']} forming",
        f"{groups['clusters'][0]['seed']} {groups['clusters'][0]['size']} forming",
        "no reward in the hour before",
        "All is well.",
    ):
        assert figure in text, figure


def test_the_examples_of_the_page_run(service: tuple[str, Any], tmp_path: Path) -> None:
    url, _ = service
    text = (ROOT / "docs" / "watch.md").read_text(encoding="utf-8")
    lines = re.findall(r"^locb (watch http://127\.0\.0\.1:8080.*)$", text, re.MULTILINE)
    assert len(lines) >= 4
    for line in lines:
        done = call(*line.replace("http://127.0.0.1:8080", url).split(), cwd=tmp_path, width=80)
        assert done.returncode == 0, done.stderr
        assert "policy locb" in done.stdout
        assert ("film waits for its reward" in " ".join(done.stdout.split())) == ("--user" in line)


def test_tokens_and_bad_states(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"# ours\n{DECIDE.replace(' ', '-')} decide\n{READ.replace(' ', '-')} read\n")
    (tmp_path / "empty").write_text("")
    tokens = Tokens({READ.replace(" ", "-"): frozenset(["read"]), DECIDE.replace(" ", "-"): frozenset(["decide"])})
    with serving(tmp_path / "state", tokens) as (client, _):
        url = str(client.base_url).rstrip("/")
        assert (
            "No data yet: nothing has been decided." in call("watch", url, "--token-file", "token", cwd=tmp_path).stdout
        )
        for more, code, message in (
            ([], 1, f"locb: {url}: It wants a token that it knows"),
            (["--token", DECIDE.replace(" ", "-")], 1, f"locb: {url}: The token is known, but not for reading"),
            (["--token-file", "token", "--user", "zoe"], 1, f"locb: {url}: there is no user 'zoe'"),
            (["--token-file", "empty"], 2, "locb: --token-file: empty holds no token that may read"),
            (["--span", "week"], 2, "locb: --span must be one of hour, day, month, all, not 'week'"),
            (["--baseline", "1d"], 2, "locb: --baseline must be FROM/TO, such as 2d/1d, not '1d'"),
            (["--baseline", "1d/2d"], 2, "locb: --baseline must begin before it ends, not '1d/2d'"),
            (["--baseline", "noon/1d"], 2, "locb: --baseline must be a time such as 30s, 10m, 2h or 1d, not 'noon'"),
        ):
            done = call("watch", url, *more, cwd=tmp_path)
            assert done.returncode == code, done.stdout
            assert done.stderr.startswith(message), done.stderr
    done = call("watch", url, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"locb: {url}: It cannot be reached (")
    assert call("watch", "127.0.0.1:80", cwd=tmp_path).stderr.startswith(
        "locb: there is no folder 127.0.0.1:80; a service"
    )


def test_in_a_terminal_it_goes_on_until_ctrl_c_and_keeps_the_last_picture(tmp_path: Path) -> None:
    status = {"now": 503}

    def handler(asked: Any) -> Any:
        return status["now"], {}, {"title": "Starting", "detail": "soon"}

    with loopback(handler) as server:
        ours, theirs = pty.openpty()
        command = [*LOCB, "watch", server.url, "--every", "0.1"]
        process = subprocess.Popen(
            command,
            stdout=theirs,
            stderr=theirs,
            stdin=theirs,
            env=os.environ | surroundings(tmp_path, 80) | {"TERM": "xterm"},
        )
        os.close(theirs)
        said = bytearray()

        def listen() -> None:
            with suppress(OSError):  # of a terminal that is gone
                while piece := os.read(ours, 4096):
                    said.extend(piece)

        listening = threading.Thread(target=listen)
        listening.start()
        end = time.monotonic() + 30
        while len(server.asked) < 4 and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        listening.join(30)
        os.close(ours)
    assert len(server.asked) >= 4
    text = said.decode()
    assert "Traceback" not in text
    assert "It says: 503 Starting: soon." in " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).split())


def test_visitors_are_a_world_of_groups_whose_chances_are_linear_in_what_is_sent() -> None:
    import numpy as np

    from locb.common.feature_hashing import features

    cinema = Cinema(seed=1)
    evening = cinema.evening()
    person = cinema.people.index(evening.person)
    rows = np.array([features(film.features, DIM) for film in evening.films])
    np.testing.assert_allclose(evening.chances, np.clip(rows @ cinema.theta[person], 0.02, 0.98))
    assert len(set(cinema.people)) == len(cinema.people)
    centres = np.array([cinema.theta[cinema.kinds == kind].mean(axis=0) for kind in range(5)])
    distances = np.linalg.norm(centres[:, None] - centres[None], axis=2)[np.triu_indices(5, 1)]
    assert distances.min() > 1.0
    again = Cinema(seed=1)
    assert [film.title for film in again.evening().films] == [film.title for film in evening.films]


def test_the_demonstration_starts_is_served_and_leaves_nothing(tmp_path: Path) -> None:
    from stress.postgres import free_port

    port = free_port()
    # What pages are drawn with stays, but in the folder for that.
    kept = {"LOCB_CACHE": os.environ["LOCB_CACHE"]}
    environment = os.environ | surroundings(tmp_path, 200) | kept | {"TMPDIR": str(tmp_path)}
    command = [*LOCB, "demo", "--port", str(port), "--rate", "200"]
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, stdin=subprocess.DEVNULL, env=environment)
    try:
        with Client(f"http://127.0.0.1:{port}", retries=0) as client:
            end, users = time.monotonic() + 120, 0
            while users < 50 and time.monotonic() < end and process.poll() is None:
                with suppress(Exception):
                    users = client.status().users
                time.sleep(0.1)
        assert users >= 50, (tmp_path / "said").read_text()
        assert f"Open http://127.0.0.1:{port} in a browser" in (tmp_path / "said").read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    assert [path.name for path in tmp_path.iterdir()] == ["said"]


def test_a_run_may_be_named_by_one_of_its_files(tmp_path: Path) -> None:
    done = call("compare", "--rounds", "200", "--repeats", "1", "--users", "10", "--output", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    by_folder = call("watch", "run", cwd=tmp_path)
    assert "200 rounds, 1 repeat" in by_folder.stdout
    assert call("watch", "run/run.json", cwd=tmp_path).stdout == by_folder.stdout
