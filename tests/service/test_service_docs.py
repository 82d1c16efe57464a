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
    "how-to/load-test.md",
)
TEXT = "\n".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
README = (ROOT / "README.md").read_text(encoding="utf-8")
README_COMMANDS = [line.strip() for line in README.splitlines() if line.startswith("    curl ")]
PORT = "8080"
LOAD = {"rate=500, seconds=10": "rate=100, seconds=0.2"}  # of the page on load tests; the test runs a shorter one


class Command(NamedTuple):
    """A curl command, the status in its comment (None: any success), and the JSON response that the page shows."""

    words: list[str]
    status: int | None
    shown: Any


def blocks() -> Iterator[tuple[str, str]]:
    """Yield the language and text of each fenced code block."""
    yield from re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


EXAMPLES = [text for language, text in blocks() if language == "python"]


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
    for shown, shorter in LOAD.items():
        code = code.replace(shown, shorter)
    done = subprocess.run(
        [sys.executable, "-c", code.replace(PORT, str(port))], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert (done.stdout != "") == ("print(" in code), code
    assert done.stdout.endswith("errors {}\n") or "Plan(" not in code, done.stdout


def rounded(data: Any) -> Any:
    """Return decoded JSON with all numbers rounded to three digits, as the pages show them."""
    if isinstance(data, dict):
        return {key: rounded(value) for key, value in data.items()}
    if isinstance(data, list):
        return [rounded(value) for value in data]
    return round(data, 3) if isinstance(data, float) else data


def requested(words: list[str]) -> tuple[str, str]:
    """Return the method and the path that a curl command requests."""
    (path,) = re.findall(r"http://127\.0\.0\.1:8080(/[^\s?]*)", " ".join(words))
    has_body = any(word in ("--json", "-d", "--data") for word in words)
    return words[words.index("-X") + 1] if "-X" in words else "POST" if has_body else "GET", path


def test_every_route_has_a_command() -> None:
    requests = [requested(command.words) for command in commands()]
    for route in ROUTES:
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route.path))
        assert any(method == route.method and re.fullmatch(pattern, path) for method, path in requests), route


def test_commands_and_examples_are_found() -> None:
    """Otherwise, the test below would run nothing and pass."""
    assert len(commands()) == len(re.findall(r"^(?!#).*\bcurl -", TEXT, re.MULTILINE))
    assert {command.status for command in commands()} >= {None, 200, 404, 409}
    assert sum(command.shown is not None for command in commands()) == TEXT.count("\n```json\n") > 0
    assert len(README_COMMANDS) == README.count("curl -") > 0
    assert sum("audit(" in example for example in EXAMPLES) == 1 < len(EXAMPLES)
    assert sum(shown in example for shown in LOAD for example in EXAMPLES) == 1


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed: run apt-get install curl")
def test_commands_and_examples_run(tmp_path: Path) -> None:
    started = re.search(r"locb serve --data-dir (\w+) (.*)", TEXT)
    assert started is not None
    with ServiceProcess(tmp_path / started[1], started[2].split()) as server:
        server.start()
        for words, status, shown in commands():
            command = [word.replace(PORT, str(server.port)) for word in words]
            done = subprocess.run([*command, "-w", "\n%{http_code}"], cwd=tmp_path, capture_output=True, text=True)
            body, _, code = done.stdout.rpartition("\n")
            assert int(code) == status if status else int(code) < 300, f"{words}: {done.stdout}{done.stderr}"
            if shown is not None:
                assert rounded(json.loads(body)) == shown, body
        for line in README_COMMANDS:
            command = shlex.split(line.replace(PORT, str(server.port)))
            done = subprocess.run([*command, "--fail"], check=True, capture_output=True, text=True)
            assert json.loads(done.stdout)["decision_id"] == "first"
        for example in EXAMPLES:
            if "audit(" not in example:
                python(example, server.port, tmp_path)
        counts = server.get("/metrics")[1].decode()
        for route in ROUTES:
            count = re.search(rf'^locb_request_seconds_count{{route="{re.escape(route.path)}"}} (\S+)$', counts, re.M)
            assert count is not None
            assert float(count[1]) > 0, f"no example requests {route.path}"
        assert server.stop() == 0
        for example in EXAMPLES:
            if "audit(" in example:
                python(example, server.port, tmp_path)


def test_every_route_has_a_heading() -> None:
    headings = re.findall(r"^##+ ((?:GET|POST|DELETE) .*)$", TEXT, re.MULTILINE)
    names = [name for heading in headings for name in heading.split(", ")]
    # The routes of Azure Personalizer share a section.
    names += re.findall(r"`(POST /personalizer/[^`]*)`", TEXT)
    routes = [f"{route.method} {route.path}" for route in ROUTES]
    assert sorted(names) == sorted([*routes, "GET /openapi.json"])  # the description of all other routes


def test_every_route_is_in_the_row_of_its_scope() -> None:
    patterns: dict[str | None, list[str]] = {}
    for scope, routes in table("Scope"):
        method = ""
        for name in re.findall(r"`([^`]+)`", routes):  # a method holds until the next one; an ellipsis for any ending
            method = name.split()[0] if " " in name else method
            pattern = re.escape(f"{method} {name.split()[-1]}").replace("…", ".*")
            patterns.setdefault(scope.strip("`"), []).append(pattern)
    assert patterns.keys() == {route.scope for route in ROUTES} - {None}
    for route in ROUTES:
        name = f"{route.method} {route.path}"
        scopes = [scope for scope in patterns if any(re.fullmatch(pattern, name) for pattern in patterns[scope])]
        if not route.path.startswith("/personalizer"):  # the table says: the routes of Azure Personalizer
            assert scopes == ([] if route.scope is None else [route.scope]), name


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
