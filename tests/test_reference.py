"""The reference documentation: every public name, option, route, key, metric and parameter has an anchor.

The site is built without the gallery. Its inventory (``objects.inv``, the list of all anchors) is compared with the
code.
"""

import dataclasses
import fcntl
import inspect
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer.main

from locb.cli import app
from serving import serving

ROOT = Path(__file__).parent.parent
PUBLIC_MODULES = ("locb", "locb.datasets", "locb.interop", "locb.client", "locb.loadtest")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return the folder of the site. Test processes that run in parallel build it once."""
    if worker_id == "master":
        return build_site(tmp_path_factory.mktemp("reference"))
    folder = tmp_path_factory.getbasetemp().parent / "reference"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build_site(folder)


def build_site(folder: Path) -> Path:
    """Build the site in ``folder``, unless it was built."""
    if (folder / "complete").exists():
        return folder / "site"
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns("_build", "gallery", "generated")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=ignored)
    for name in ("CHANGELOG.md", "deploy", "examples", "tests", "src", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "sphinx", "-q", "-t", "nogallery", "-b", "html", "docs", "site"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    (folder / "complete").touch()
    return folder / "site"


@pytest.fixture(scope="module")
def inventory(site: Path) -> dict[str, set[str]]:
    """Return the names that have an anchor by the type of their object, such as ``std:cmdoption``."""
    pages: dict[str, str] = {}
    names: dict[str, set[str]] = {}
    for kind, name, uri in read_inventory(site / "objects.inv"):
        page, _, anchor = uri.partition("#")
        if not anchor:
            continue
        if page not in pages:
            pages[page] = (site / page).read_text(encoding="utf-8")
        if f'id="{anchor}"' in pages[page]:
            names.setdefault(kind, set()).add(name)
    return names


def read_inventory(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield type, name and address of each entry of an ``objects.inv`` (version 2: four lines, then zlib)."""
    *_, packed = path.read_bytes().split(b"\n", 4)
    for line in zlib.decompress(packed).decode().splitlines():
        match = re.fullmatch(r"(.+?) (\S+:\S+) -?\d+ (\S*) .*", line)
        assert match is not None, line
        name, kind, uri = match.groups()
        yield kind, name, uri.removesuffix("$") + (name if uri.endswith("$") else "")


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_public_names(module: str, inventory: dict[str, set[str]]) -> None:
    documented = set().union(*(names for kind, names in inventory.items() if kind.startswith("py:")))
    names = import_module(module).__all__
    assert names
    for name in names:
        if not inspect.ismodule(getattr(import_module(module), name)):
            assert f"{module}.{name}" in documented


def commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the object of a command and of all commands below it."""
    yield name, command
    for child_name, child in getattr(command, "commands", {}).items():
        yield from commands(f"{name} {child_name}", child)


COMMANDS = list(commands("locb", typer.main.get_command(app)))


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_command_line_options(name: str, command: Any, inventory: dict[str, set[str]]) -> None:
    for parameter in command.params:
        names = [parameter.metavar or parameter.name.upper()]
        if parameter.param_type_name == "option":
            names = [*parameter.opts, *parameter.secondary_opts]
        for option in names:
            if option != "--help":
                assert f"{name.replace(' ', '-')}.{option}" in inventory["std:cmdoption"]


def test_routes_and_metrics(inventory: dict[str, set[str]], tmp_path: Path) -> None:
    with serving(tmp_path) as (client, _):
        paths = client.get("/openapi.json").json()["paths"]
        metrics = set(re.findall(r"^# TYPE (\w+)", client.get("/metrics").text, re.MULTILINE))
    assert {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods} == inventory[
        "std:route"
    ]
    assert {name for name in metrics if not name.endswith("_created")} == inventory["std:metric"]


def test_configuration_keys(inventory: dict[str, set[str]]) -> None:
    from locb.service.config import ServiceConfig

    assert {field.name for field in dataclasses.fields(ServiceConfig)} == inventory["std:config"]


def test_problem_types(inventory: dict[str, set[str]]) -> None:
    from locb.service.errors import TITLES

    assert set(TITLES) == inventory["std:problem"]


def test_policy_parameters(inventory: dict[str, set[str]]) -> None:
    from locb.policies.registry import REGISTRY

    for spec in REGISTRY.values():
        for name in inspect.signature(spec.policy_class).parameters:
            assert f"{spec.policy_class.__name__}.{name}" in inventory["std:parameter"]


def test_environment_variables(inventory: dict[str, set[str]]) -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert set(re.findall(r"[\"'](LOCB_[A-Z]+)[\"']", sources)) <= inventory["std:envvar"]


def test_format_versions() -> None:
    from locb.policies.base import file_format
    from locb.recommender.saved_recommender import RECOMMENDER
    from locb.service.store import schema

    page = (ROOT / "docs" / "reference" / "file-formats.md").read_text(encoding="utf-8")
    assert f"| saved policies | {file_format.VERSION} |" in page
    assert f"| saved recommenders | {RECOMMENDER.version} |" in page
    assert f"| store of the service | {schema.FORMAT} |" in page
