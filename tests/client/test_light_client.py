"""The distribution locb-client: it is small, does not need NumPy, Numba or Altair, and can call a real service."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from serving import serving

ROOT = Path(__file__).parent.parent.parent
MAX_INSTALLED_BYTES = 10_000_000
HEAVY = ("numba", "numpy", "altair", "locb")

PROGRAM = f"""
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
for name in {HEAVY}:
    try:
        __import__(name)
    except ImportError:
        continue
    sys.exit(f"{{name}} can be imported")
from locb_client import AsyncClient, Client

arms = {{"a": [1.0, 0.0, 0.5], "b": [0.0, 1.0, 0.5]}}
with Client(sys.argv[2]) as client:
    decision = client.recommend("ann", arms)
    rewarded = client.reward(decision.decision_id, 1.0)

async def main():
    async with AsyncClient(sys.argv[2]) as client:
        return await client.recommend("bob", arms, count=1)

second = asyncio.run(main())
import locb_client.monitor
print(json.dumps({{"arm": decision.arm, "reward": rewarded.reward, "second": second.arm,
                   "heavy": [name for name in {HEAVY} if name in sys.modules]}}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT / "packaging" / "locb-client", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


def requirements(lines: list[str]) -> list[str]:
    """Return the names of the distributions that these requirements need on this platform, without extras."""
    from packaging.requirements import Requirement

    parsed = [Requirement(line) for line in lines]
    return [each.name for each in parsed if each.marker is None or each.marker.evaluate({"extra": ""})]


def closure(lines: list[str]) -> dict[str, metadata.Distribution]:
    """Return the installed distributions that these requirements need, directly or indirectly."""
    found: dict[str, metadata.Distribution] = {}
    names = requirements(lines)
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name not in found:
            found[name] = metadata.distribution(name)
            names += requirements(found[name].requires or [])
    return found


def installed_bytes(distribution: metadata.Distribution) -> int:
    files = [Path(str(distribution.locate_file(file))) for file in distribution.files or ()]
    return sum(file.stat().st_size for file in files if file.is_file())


def unpack(wheel: Path, folder: Path) -> list[str]:
    """Unpack the wheel and return its requirements."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    (distribution,) = metadata.distributions(path=[str(folder)])
    return list(distribution.requires or ())


def test_installed_size(wheel: Path, tmp_path: Path) -> None:
    lines = unpack(wheel, tmp_path)
    assert [re.match(r"\w+", line)[0] for line in lines] == ["httpx"]
    needed = closure(lines)
    assert not {"numpy", "numba", "altair", "locb"} & needed.keys()
    sizes = {name: installed_bytes(distribution) for name, distribution in needed.items()}
    sizes["locb-client"] = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert all(size > 1000 for size in sizes.values()), sizes
    assert sum(sizes.values()) < MAX_INSTALLED_BYTES, sizes


def test_client_without_the_library_calls_a_service(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    for distribution in closure(unpack(wheel, site)).values():
        for file in distribution.files or ():
            source = Path(str(distribution.locate_file(file)))
            if ".." not in file.parts and source.is_file():
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    with serving(tmp_path / "state") as (http, _):
        command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(site), str(http.base_url)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        status = http.get("/v1/status").json()
    assert (status["decisions"], status["rewards"]) == (2, 1)
    assert result["arm"] in ("a", "b")
    assert result["second"] in ("a", "b")
    assert result["reward"] == 1.0
    assert result["heavy"] == []


def test_locb_client_imports_no_heavy_library() -> None:
    code = f"import sys, locb.client.monitor; print([name for name in {HEAVY[:3]} if name in sys.modules])"
    path = str(ROOT / "src")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"], capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr
