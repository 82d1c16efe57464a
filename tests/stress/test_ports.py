"""Ports of servers that a test stops and starts again."""

import socket
from pathlib import Path

import pytest

from stress import postgres

LOCAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_port_is_free_and_not_assigned_to_outgoing_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = {postgres.free_port() for _ in range(50)}
    assert len(ports) > 40
    if LOCAL_PORTS.exists():
        assert max(ports) < int(LOCAL_PORTS.read_text().split()[0])
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        used = listener.getsockname()[1]
        monkeypatch.setattr(postgres.random, "sample", lambda *_: [used, 12_345])
        assert postgres.free_port() == 12_345
        monkeypatch.setattr(postgres.random, "sample", lambda *_: [used])
        with pytest.raises(OSError, match="no free port found from 12000 to 31999"):
            postgres.free_port()
