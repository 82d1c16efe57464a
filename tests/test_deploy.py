"""The files in deploy/, checked statically because the tests cannot install them."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from commandline import call
from locb.service.api.routes import ROUTES
from locb.service.config import DEFAULT_POLICY

ROOT = Path(__file__).parent.parent
UNIT = (ROOT / "deploy" / "locb.service").read_text(encoding="utf-8")
CONTAINER = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
PROMETHEUS = (ROOT / "deploy" / "prometheus.yml").read_text(encoding="utf-8")


def instruction(name: str) -> list[str]:
    """Return the arguments of an instruction in exec form."""
    (found,) = re.findall(rf"^{name} (\[.*\])$", CONTAINER, re.MULTILINE)
    words: list[str] = json.loads(found)
    return words


def serve_commands() -> dict[str, list[str]]:
    (unit,) = re.findall(r"^ExecStart=\S+/locb (serve .*)$", UNIT, re.MULTILINE)
    (more,) = re.findall(r'^Environment=LOCB_OPTIONS="(.*)"$', UNIT, re.MULTILINE)
    entry = instruction("ENTRYPOINT")
    assert entry[0] == "locb"
    return {"unit": [*unit.split(), *more.split()], "container": [*entry[1:], *instruction("CMD")]}


@pytest.mark.parametrize("where", ["unit", "container"])
def test_options_exist(where: str, tmp_path: Path) -> None:
    known = set(re.findall(r"--[a-z][a-z-]+", call("serve", "--help", cwd=tmp_path).stdout))
    words = serve_commands()[where]
    assert words[0] == "serve"
    assert {word for word in words if word.startswith("--")} <= known
    assert {"--data-dir", "--dim", "--token-file"} <= set(words)


def test_shutdown_timeout_is_below_the_kill_timeout() -> None:
    (waits,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    stop = {where: int(words[words.index("--shutdown-timeout") + 1]) for where, words in serve_commands().items()}
    assert stop["unit"] < int(waits)
    assert stop["container"] < 10


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed: run apt-get install systemd"
)
def test_unit_is_valid_and_sandboxed(tmp_path: Path) -> None:
    unit = tmp_path / "locb.service"
    unit.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT, flags=re.MULTILINE))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)], capture_output=True, text=True
    )
    exposure = re.search(r"exposure level for locb.service: ([\d.]+)", judged.stdout)
    if exposure is not None:  # only versions with --offline report it
        assert float(exposure[1]) < 2.0


def test_container_uses_existing_files() -> None:
    copied = re.findall(r"^COPY (.*) \S+$", CONTAINER, re.MULTILINE)
    assert len(copied) == CONTAINER.count("\nCOPY ") > 0
    for sources in copied:
        for source in sources.split():
            assert (ROOT / source).exists(), source
    assert re.findall(r"^USER (.*)$", CONTAINER, re.MULTILINE)[-1] not in ("root", "0")
    words = serve_commands()["container"]
    assert f"VOLUME {words[words.index('--data-dir') + 1]}\n" in CONTAINER
    assert f"EXPOSE {words[words.index('--port') + 1]}\n" in CONTAINER
    check = instruction("HEALTHCHECK .* CMD")[2]
    compile(check, "HEALTHCHECK", "exec")
    (path,) = re.findall(r"http://127.0.0.1:8080(/[\w/]+)", check)
    assert any(route.path == path and route.scope is None for route in ROUTES)
    assert path == "/v1/live", "a restart does not help while the store is unavailable"


def test_warm_up_of_the_container_runs(tmp_path: Path) -> None:
    (arguments,) = re.findall(r"^RUN locb (warmup .*)$", CONTAINER, re.MULTILINE)
    assert arguments.split()[-1] == DEFAULT_POLICY
    assert call(*arguments.split(), cwd=tmp_path).returncode == 0


def test_prometheus_configuration_uses_an_existing_route() -> None:
    (path,) = re.findall(r"metrics_path: (\S+)", PROMETHEUS)
    (route,) = [route for route in ROUTES if route.path == path]
    assert f'scope "{route.scope}"' in PROMETHEUS
