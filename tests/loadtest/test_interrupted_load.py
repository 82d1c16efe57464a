"""``locb load`` after Ctrl-C: it prints the results so far."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

from commandline import surroundings
from loopback import ReceivedRequest, Reply, loopback


def test_interrupted_test_prints_the_results_so_far(tmp_path: Path) -> None:
    many = threading.Event()

    def reply(_: ReceivedRequest) -> Reply:
        if len(server.received) >= 100:
            many.set()
        return 200, {}, {}

    with loopback(reply) as server:
        arguments = ["load", server.url, "--route", "ping", "--connections", "2", "--seconds", "3600"]
        process = subprocess.Popen(
            [sys.executable, "-c", "from locb.cli import main; main()", *arguments],
            cwd=tmp_path,
            env=os.environ | surroundings(tmp_path, 200) | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert many.wait(240.0)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0, errors
    found = re.search(r"^ *ping +([\d,]+) ", output, re.MULTILINE)
    assert found is not None, output
    assert int(found[1].replace(",", "")) >= 90  # the last requests can lack their responses
