"""``locb serve`` as a process: startup errors, graceful shutdown, output."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from locb.cli import main
from locb.service.server import raise_file_limit
from serving import wait_for
from stress.service_process import COMMAND, ServiceProcess

ARMS = [{"id": "a", "features": [1, 0, 0]}, {"id": "b", "features": [0, 1, 0]}]
CUSTOM_POLICY = """
import locb


class Custom(locb.Policy):
    def recommend(self, user, contexts):
        if len(contexts) < 2:
            raise RuntimeError("two arms are needed")
        return 1

    def update(self, user, context, reward):
        pass

    def add_users(self, count):
        self._n_users += count
"""
NEW_STORE = ["--dim", "3", "--policy", "linucb-ind"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120)


def run_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the error message of a startup that fails. It runs in this process, because no server is started."""
    monkeypatch.setattr(sys, "argv", ["locb", "serve", "--port", "0", *arguments])
    monkeypatch.setattr("locb.service.server.configure_logging", lambda _: None)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    return capsys.readouterr().err


def log_entries(server: ServiceProcess) -> list[dict[str, str]]:
    """Return the JSON entries of the log output, without the messages at startup."""
    return [json.loads(line) for line in server.output().splitlines() if line.startswith("{")]


@pytest.mark.parametrize(
    ("limits", "files", "raised"),
    [((1024, 4096), 3000, 3000), ((1024, 4096), 1000, None), ((1024, 2000), 3000, 2000), ((1024, -1), 3000, 3000)],
)
def test_limit_of_open_files_is_raised(
    limits: tuple[int, int],
    files: int,
    raised: int | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    changes: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, changed: changes.append(changed))
    raise_file_limit(files)
    assert changes == ([] if raised is None else [(raised, limits[1])])
    assert ("--max-connections" in caplog.text) == (raised == 2000)


def test_sigterm_lets_requests_in_progress_finish(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path / "state", NEW_STORE) as server:
        server.start()
        assert server.post("/v1/recommend", {"user": "ann", "arms": ARMS})[0] == 200
        body = json.dumps({"user": "bob", "arms": ARMS, "decision_id": "late"}).encode()
        head = b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += b"Content-Length: %d\r\n\r\n" % len(body)
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall(head + body[:20])
            time.sleep(0.3)
            process = server._process
            assert process is not None
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            assert process.poll() is None
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.1", server.port), timeout=2)
            connection.sendall(body[20:])
            response = b""
            while part := connection.recv(65536):
                response += part
        assert response.startswith(b"HTTP/1.1 200 ")
        assert process.wait(20) == 0
        entries = log_entries(server)
        assert {"time", "level", "message"} == set(entries[0])
        assert any(entry["message"].startswith("snapshot ") for entry in entries)
        assert not any(entry["level"] in ("warning", "error") for entry in entries)
        assert len(list((tmp_path / "state" / "snapshots").iterdir())) == 1
        server.start()
        status, decision = server.post("/v1/recommend", {"user": "bob", "arms": ARMS, "decision_id": "late"})
        assert (status, decision) == (200, json.loads(response.partition(b"\r\n\r\n")[2]))


def test_second_process_is_refused(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path / "state", NEW_STORE) as server:
        server.start()
        second = run("--data-dir", str(server.folder), "--port", "0", *NEW_STORE)
        assert second.returncode == 1
        assert second.stderr.startswith(f"locb: another process (PID {server.pid}) uses ")
        assert "Traceback" not in second.stderr
        same_port = run("--data-dir", str(tmp_path / "other"), "--port", str(server.port), *NEW_STORE)
        assert same_port.returncode == 2
        assert same_port.stderr == (
            f"locb: cannot listen on --host 127.0.0.1 --port {server.port}: Address already in use; "
            "choose another address or port\n"
        )
        assert "Starting" not in same_port.stdout
        assert not (tmp_path / "other").exists()
        assert server.get("/v1/health")[0] == 200


@pytest.fixture(scope="module")
def existing_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a stopped service."""
    folder = tmp_path_factory.mktemp("existing") / "state"
    with ServiceProcess(
        folder,
        ["--dim", "3", "--policy", "locb", "--n-seeds", "5", "--parameter", "sigma=0.3", "--reward-range", "-1,2.5"],
    ) as server:
        server.start()
        assert server.stop() == 0
    return folder


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dim", "4"], "the store was created with --dim 3, not 4"),
        (["--policy", "eloc"], "the store was created with --policy locb, not eloc"),
        (["--n-seeds", "6"], "the store was created with --n-seeds 5, not 6"),
        (["--gamma", "0.3"], "the store was created without --gamma 0.3"),
        (["--reward-range", "-1,3"], "the store was created with --reward-range -1,2.5, not -1,3"),
        (["--parameter", "reward_range=-1,3"], "the store was created with --reward-range -1,2.5, not -1,3"),
        (["--parameter", 'reward_range=[0,"a"]'], "the store was created with --reward-range -1,2.5, not [0, 'a']"),
        (["--reward-range", "3"], "--reward-range must be two numbers separated by a comma"),
        (["--parameter", "sigma=0.4"], "the store was created with --parameter sigma=0.3, not 0.4"),
        (["--parameter", "tau=1"], "the store was created without --parameter tau=1"),
        (
            ["--host", "0.0.0.0"],
            (
                "--host 0.0.0.0 is not a loopback address, so other machines could use the service without a token: "
                "add --token-file"
            ),
        ),
        (["--host", "example.com"], "--host example.com is not a loopback address, so other machines could use"),
        (["--reward-wait", "soon"], "--reward-wait must be a duration such as 30s"),
        (["--log-level", "loud"], "--log-level must be one of debug, info, warning, error, not 'loud'"),
        (["--parameter", "sigma"], "--parameter must be name=value, where name is a parameter of the policy"),
        (["--read-timeout", "0"], "--read-timeout must be at least 0.1 seconds, not 0.0"),
        (["--personalizer-user", ""], "--personalizer-user must be names joined by dots, such as user.id, not ''"),
        (["--personalizer-rewards", "last"], "--personalizer-rewards must be earliest or sum, not 'last'"),
    ],
)
def test_options_that_contradict_the_store_are_refused(
    existing_store: Path,
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = run_refused(monkeypatch, capsys, "--data-dir", str(existing_store), *options)
    assert output.startswith(f"locb: {message}")
    assert output.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--dim, the number of features per arm, is required for a new store"),
        (["--dim", "0"], "--dim must be at least 1, not 0"),
        (["--dim", "3", "--policy", "best"], "--policy: unknown policy 'best'; choose from "),
        (["--dim", "3", "--policy", "locb", "--gamma", "-1"], "--gamma must be above 0, not -1.0"),
        (["--dim", "3", "--policy", "locb", "--alpha", "-1"], "--alpha must be at least 0, not -1.0"),
        (["--dim", "3", "--policy", "locb", "--parameter", "alpha=x"], "--alpha must be a number, not 'x'"),
        (
            ["--dim", "3", "--gamma", "0.3"],
            "--gamma: policy 'eloc' has no such parameter; its parameters are n_seeds, ",
        ),
        (["--dim", "3", "--parameter", "n_seeds=x"], "--n-seeds must be an integer, not 'x'"),
        (["--dim", "3", "--parameter", "n_seeds=[3]"], "--n-seeds must be an integer, not [3]"),
        (["--dim", "3", "--parameter", "sigma=-1"], "--parameter sigma must be at least 0, not -1"),
        (["--dim", "3", "--parameter", "colour=red"], "--parameter colour: policy 'eloc' has no such parameter; "),
        (
            ["--dim", "3", "--policy", "nowhere.py:Custom"],
            "--policy: no file 'nowhere.py'; the form of a custom policy is",
        ),
        (["--dim", "3", "--parameter", "ties=random"], "--parameter ties must be 'first', not 'random'"),
        (["--dim", "3", "--policy", "lints-ind"], "--policy lints-ind draws random numbers with these parameters"),
        (["--dim", "3", "--store", "mysql://x/y"], "--store has the unsupported scheme 'mysql'"),
        (["--dim", "3", "--token-file", "nowhere"], "--token-file: cannot read nowhere: No such file or directory"),
    ],
)
def test_invalid_options_of_a_new_store_are_refused(
    tmp_path: Path,
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = run_refused(monkeypatch, capsys, "--data-dir", str(tmp_path / "state"), *options)
    assert output.startswith(f"locb: {message}")
    assert output.count("\n") == 1


def test_data_folder_that_is_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for folder, reason in ((tmp_path / "file", "File exists"), (tmp_path / "file" / "state", "Not a directory")):
        output = run_refused(monkeypatch, capsys, "--data-dir", str(folder), "--dim", "3")
        assert output == f"locb: --data-dir: cannot use {folder}: {reason}; choose a folder that you can write to\n"


def test_store_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/nowhere/log.db"
    done = run("--data-dir", str(tmp_path / "state"), "--port", "0", "--store", store, *NEW_STORE)
    assert done.returncode == 1
    assert done.stderr == f"locb: cannot open --store {store}: unable to open database file\n"


def test_port_0_prints_the_port_that_was_bound(tmp_path: Path) -> None:
    command = [*COMMAND, "--data-dir", str(tmp_path / "state"), "--port", "0", *NEW_STORE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            found = None
            while found is None:
                line = process.stdout.readline()
                assert line, "the service has ended"
                found = re.match(r"Starting the service at http://127\.0\.0\.1:(\d+) ", line)
            port = int(found[1])
            assert port > 0
            wait_for(lambda: responds(port), 120)
        finally:
            process.terminate()
    assert process.returncode == 0


def responds(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/v1/ping", timeout=30).status_code == 204
    except httpx.TransportError:
        return False


def test_custom_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "custom.py").write_text(CUSTOM_POLICY)
    with ServiceProcess(tmp_path / "state", ["--dim", "3", "--policy", f"{tmp_path / 'custom.py'}:Custom"]) as server:
        server.start()
        for decision_id in ("first", "second"):
            status, decision = server.post("/v1/recommend", {"user": "ann", "arms": ARMS, "decision_id": decision_id})
            assert (status, decision["arm"], decision["explanation"]) == (200, "b", None)
            assert server.post("/v1/reward", {"decision_id": decision_id, "reward": 1})[0] == 200
        assert server.post("/v1/recommend", {"user": "ann", "arms": ARMS[:1]})[0] == 500
        assert server.stop() == 0
        assert "every startup replays the whole log" in server.output()
        server.start()
        assert json.loads(server.get("/v1/health")[1])["users"] == 1
    output = run_refused(monkeypatch, capsys, "--data-dir", str(tmp_path / "state"))
    assert output == "locb: the store was created with the custom policy 'Custom': pass --policy file.py:Custom\n"


def test_tokens_are_not_written_to_log_or_files(tmp_path: Path) -> None:
    secret = "a-secret-that-must-not-be-logged"
    (tmp_path / "tokens").write_text(f"{secret} decide read\n")
    with ServiceProcess(
        tmp_path / "state", [*NEW_STORE, "--token-file", str(tmp_path / "tokens"), "--log-level", "debug"]
    ) as server:
        server.start()
        for header, status in (
            ({"Authorization": f"Bearer {secret}"}, 200),
            ({"Ocp-Apim-Subscription-Key": secret}, 200),
            ({"Authorization": f"Bearer {secret}-of-another-service"}, 401),
            ({"Authorization": f"Basic {secret}"}, 401),
        ):
            body = {"user": "ann", "arms": ARMS}
            assert httpx.post(f"{server.url}/v1/recommend", json=body, headers=header).status_code == status
            httpx.get(f"{server.url}/v1/nowhere?token={secret}", headers=header)
        assert server.stop() == 0
        assert log_entries(server)[-1]["message"] == "stopped"
        assert secret not in server.output()
        files = [file for file in (tmp_path / "state").rglob("*") if file.is_file()]
        assert any(b"ann" in file.read_bytes() for file in files)
        assert [file for file in files if secret.encode() in file.read_bytes()] == []


def test_tokens_change_without_a_restart(tmp_path: Path) -> None:
    first, second = "first-token-of-a-client", "second-token-of-a-client"
    path = tmp_path / "tokens"
    path.write_text(f"{first} read\n{second}\n")
    with ServiceProcess(tmp_path / "state", [*NEW_STORE, "--token-file", str(path)]) as server:
        server.start()

        def statuses() -> tuple[int, int]:
            """Return the statuses of a request with each token, on new connections."""
            found = [httpx.get(f"{server.url}/v1/clusters", headers={"Authorization": f"Bearer {token}"})
                     for token in (first, second)]  # fmt: skip
            return found[0].status_code, found[1].status_code

        assert statuses() == (200, 403)
        path.write_text(f"{second} read\n")
        wait_for(lambda: statuses() == (401, 200), 60.0)
        path.write_text("invalid\n")
        wait_for(lambda: f"--token-file: {path}, line 1: the token has fewer" in server.output(), 60.0)
        assert statuses() == (401, 200)
        path.write_text(f"{first} read\n")
        os.kill(server.pid, signal.SIGHUP)
        wait_for(lambda: statuses() == (200, 401), 60.0)
        read = server.output().count("tokens read from")
        os.kill(server.pid, signal.SIGHUP)  # reads the file again, although it has not changed
        wait_for(lambda: server.output().count("tokens read from") > read, 60.0)
        assert server.stop() == 0
        assert first not in server.output()
        assert second not in server.output()


def test_missing_dependency_is_named(tmp_path: Path) -> None:
    code = "import sys; sys.modules['uvicorn'] = None; from locb.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--data-dir", str(tmp_path / "state"), "--dim", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    advice = "run make .venv/service in the clone, or pip install 'locb[service]'"
    assert done.stderr == f"locb: locb serve needs the package uvicorn: {advice}\n"
