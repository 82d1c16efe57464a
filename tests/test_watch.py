"""The command locb watch."""

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
from locb.cli.demo.film_catalogue import DIM, FilmCatalogue
from locb.cli.demo.visitors import Visitors
from locb.client import Client
from locb.service.api.auth import Tokens
from loopback import loopback
from serving import serving

ROOT = Path(__file__).parent.parent
READ, DECIDE = "a-token-that-may-read", "a-token-that-may-decide"
LOCB = [sys.executable, "-c", "from locb.cli import main; main()"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Any]]:
    """Address of a service with 301 decisions, and the service."""
    with serving(tmp_path_factory.mktemp("state"), policy="locb", dim=DIM) as (client, service):
        url = str(client.base_url).rstrip("/")
        with Client(url) as visitor_client:
            visitors = Visitors(visitor_client, FilmCatalogue(seed=3), rate=1.0)
            visitors.visit(300)
            assert visitors.decisions == 300
            visitor_client.recommend("ann", {"film": {"genre": "drama"}})
        yield url, service


def test_output_matches_the_api(service: tuple[str, Any], tmp_path: Path) -> None:
    url, _ = service
    done = call("watch", url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    status, history = httpx.get(f"{url}/v1/status").json(), httpx.get(f"{url}/v1/history?span=hour").json()
    groups = httpx.get(f"{url}/v1/groups?limit=10").json()
    assert status["decisions"] == 301
    text = " ".join(done.stdout.split())
    for figure in (
        f"301 decisions, {status['rewards']} rewards; {status['pending_rewards']} rewards of the last 24 hours pending",
        f"mean {history['total']['mean']:.3f} in the last hour ({status['rewards']} rewards",
        f"{status['users']} users, {status['rewarded_users']} with a reward",
        f"{status['clusters']['returned']} final, {status['clusters']['forming']} forming",
        f"{groups['clusters'][0]['seed']} {groups['clusters'][0]['size']} forming",
        "no rewards in the previous hour",
        "Healthy.",
    ):
        assert figure in text, figure


def test_documented_examples_run(service: tuple[str, Any], tmp_path: Path) -> None:
    url, _ = service
    text = (ROOT / "docs" / "how-to" / "watch.md").read_text(encoding="utf-8")
    lines = re.findall(r"^locb (watch http://127\.0\.0\.1:8080.*)$", text, re.MULTILINE)
    assert len(lines) >= 4
    for line in lines:
        done = call(*line.replace("http://127.0.0.1:8080", url).split(), cwd=tmp_path, width=80)
        assert done.returncode == 0, done.stderr
        assert "policy locb" in done.stdout
        assert ("film reward pending" in " ".join(done.stdout.split())) == ("--user" in line)


def test_tokens_and_errors(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"\ufeff# tokens of this test\n{DECIDE}#x\n{DECIDE} decide\n{READ} read\n", "utf-8")
    (tmp_path / "all").write_text(f"{READ} all\n")
    (tmp_path / "none").write_text(f"{READ}\n")
    (tmp_path / "unknown").write_text(f"{READ} everything\n")
    tokens = Tokens({READ: frozenset(["read"]), DECIDE: frozenset(["decide"])})
    with serving(tmp_path / "state", tokens) as (client, _):
        url = str(client.base_url).rstrip("/")
        for name in ("token", "all"):
            assert "No decisions yet." in call("watch", url, "--token-file", name, cwd=tmp_path).stdout
        for more, code, message in (
            ([], 1, f"locb: {url}: The token is missing or unknown"),
            (["--token", DECIDE], 1, f"locb: {url}: The token does not have the scope 'read'"),
            (
                ["--token-file", "token", "--user", "zoe"],
                1,
                f"locb: {url}: unknown user 'zoe': the service has made no decision for",
            ),
            (["--token-file", "none"], 2, "locb: --token-file: none contains no token with the scope 'read'"),
            (["--token-file", "unknown"], 2, "locb: --token-file: unknown, line 1: a word after the token is not a"),
            (["--span", "week"], 2, "locb: --span must be one of hour, day, month, all, not 'week'"),
            (["--baseline", "1d"], 2, "locb: --baseline must be FROM/TO, such as 2d/1d, not '1d'"),
            (
                ["--baseline", "1d/2d"],
                2,
                "locb: --baseline must be FROM/TO with FROM before TO, such as 2d/1d, not '1d/2d'",
            ),
            (
                ["--baseline", "noon/1d"],
                2,
                "locb: --baseline: 'noon' is neither a time, such as 2026-05-01T12:00, nor an age, such as 2d",
            ),
        ):
            done = call("watch", url, *more, cwd=tmp_path)
            assert done.returncode == code, done.stdout
            assert done.stderr.startswith(message), done.stderr
    done = call("watch", url, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"locb: {url}: Cannot connect (")
    assert call("watch", "127.0.0.1:80", cwd=tmp_path).stderr.startswith(
        "locb: folder 127.0.0.1:80 does not exist; to watch a service"
    )


def test_terminal_is_updated_until_ctrl_c(tmp_path: Path) -> None:
    status = {"now": 503}

    def handler(request: Any) -> Any:
        return status["now"], {}, {"title": "Starting", "detail": "soon"}

    with loopback(handler) as server:
        parent_end, child_end = pty.openpty()
        command = [*LOCB, "watch", server.url, "--every", "0.1"]
        process = subprocess.Popen(
            command,
            stdout=child_end,
            stderr=child_end,
            stdin=child_end,
            env=os.environ | surroundings(tmp_path, 80) | {"TERM": "xterm"},
        )
        os.close(child_end)
        output = bytearray()

        def read() -> None:
            with suppress(OSError):  # the terminal is closed
                while chunk := os.read(parent_end, 4096):
                    output.extend(chunk)

        reader = threading.Thread(target=read)
        reader.start()
        end = time.monotonic() + 30
        while len(server.received) < 4 and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        reader.join(30)
        os.close(parent_end)
    assert len(server.received) >= 4
    text = output.decode()
    assert "Traceback" not in text
    assert "The service returned an error: 503 Starting: soon." in " ".join(
        re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).split()
    )


def test_run_may_be_named_by_one_of_its_files(tmp_path: Path) -> None:
    done = call("compare", "--rounds", "200", "--repeats", "1", "--users", "10", "--output", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    by_folder = call("watch", "run", cwd=tmp_path)
    assert "200 rounds, 1 repeat" in by_folder.stdout
    assert call("watch", "run/run.json", cwd=tmp_path).stdout == by_folder.stdout
