"""The pages about the service: their commands and examples run against a real service."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from locb.service.api.routes import ROUTES
from locb.service.core.model import new_model
from stress.service_process import ServiceProcess

ROOT = Path(__file__).parent.parent.parent
# In the order in which their commands run.
PAGES = (
    "tutorials/service.md",
    "reference/http-api.md",
    "how-to/client.md",
    "how-to/run-a-service.md",
    "how-to/size-a-service.md",
    "how-to/analyse-decisions.md",
)
TEXT = "\n".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
README = (ROOT / "README.md").read_text(encoding="utf-8")
PORT = "8080"


class Command(NamedTuple):
    """A curl command, the status in its comment (None: any success), and the JSON response that the page shows."""

    words: list[str]
    status: int | None
    shown: Any


def blocks() -> Iterator[tuple[str, str]]:
    """Yield the language and text of each fenced code block."""
    yield from re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def commands() -> list[Command]:
    """Return the curl commands of all sh blocks; a quoted string may span several lines."""
    found: list[Command] = []
    for language, text in blocks():
        if language == "json":
            found[-1] = found[-1]._replace(shown=json.loads(text))
        pending = ""
        for line in text.splitlines() if language == "sh" else ():
            pending += line + "\n"
            try:
                words = shlex.split(pending, comments=True)
            except ValueError:
                continue
            comment = re.search(r"  # (\d{3})\b", pending)
            if words[0] == "curl":
                found.append(Command(words, int(comment[1]) if comment else None, None))
            pending = ""
    return found


def table(heading: str) -> list[list[str]]:
    """Return the rows of the table whose header starts with ``heading``."""
    rows = re.search(rf"^\| {re.escape(heading)}.*?\n\|[- |]*\n(.*?)\n\n", TEXT, re.DOTALL | re.MULTILINE)
    assert rows is not None, heading
    return [[cell.strip() for cell in row.strip("| ").split("|")] for row in rows[1].splitlines()]


def python(code: str, port: int, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code.replace(PORT, str(port))], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed: run apt-get install curl")
def test_commands_and_examples_run(tmp_path: Path) -> None:
    started = re.search(r"locb serve --data-dir (\w+) (.*)", TEXT)
    assert started is not None
    examples = [text for language, text in blocks() if language == "python"]
    with ServiceProcess(tmp_path / started[1], started[2].split()) as server:
        server.start()
        for words, status, shown in commands():
            command = [word.replace(PORT, str(server.port)) for word in words]
            done = subprocess.run([*command, "-w", "\n%{http_code}"], cwd=tmp_path, capture_output=True, text=True)
            body, _, code = done.stdout.rpartition("\n")
            assert int(code) == status if status else int(code) < 300, f"{words}: {done.stdout}{done.stderr}"
            if shown is not None:
                assert json.loads(body) == shown, body
        for line in README.splitlines():
            if line.startswith("    curl "):
                command = line.replace(PORT, str(server.port)) + " --fail"
                subprocess.run(shlex.split(command), check=True, capture_output=True)
        for example in examples:
            if "audit" not in example:
                python(example, server.port, tmp_path)
        counts = server.get("/metrics")[1].decode()
        for route in ROUTES:
            count = re.search(rf'^locb_request_seconds_count{{route="{re.escape(route.path)}"}} (\S+)$', counts, re.M)
            assert count is not None
            assert float(count[1]) > 0, f"no example requests {route.path}"
        assert server.stop() == 0
        for example in examples:
            if "audit" in example:
                python(example, server.port, tmp_path)


def test_every_route_is_documented_with_its_scope() -> None:
    scopes = {row[0].strip("`"): row[1] for row in table("Scope")}
    for route in ROUTES:
        assert f"{route.method} {route.path}" in TEXT
        if route.scope is not None and not route.path.startswith("/personalizer"):
            assert re.sub(r"/?{.*", "", route.path) in scopes[route.scope]


@pytest.mark.parametrize("policy", ["locb", "eloc"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_memory_of_a_user(policy: str, dtype: str) -> None:
    name = policy.upper() + ("" if dtype == "float64" else ", float32")
    (row,) = [row for row in table("Bytes per user") if row[0] == name]
    for dim, output in zip((5, 10, 20, 50, 100), row[1:], strict=True):
        sizes = []
        for users in (512, 1024):
            built = new_model(policy, dim, {"dtype": dtype}).build()
            built.add_users(users - built.n_users)
            sizes.append(sum(array.nbytes for array in built._state if hasattr(array, "nbytes")))
        assert float(output.replace(",", "")) == pytest.approx((sizes[1] - sizes[0]) / 512, abs=0.5)
