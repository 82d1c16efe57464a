"""The source files of a recommend request: a reader of the code follows one request through few files."""

import re
import subprocess
import sys
from pathlib import Path

MAX_FILES, MAX_RE_ENTRIES = 18, 2
ROOT = Path(__file__).parent.parent.parent


def test_a_recommend_request_passes_few_files() -> None:
    command = [sys.executable, "-m", "tools.trace_request", "locb", "eloc"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    traces = re.findall(r"(\w+): (\d+) files, \d+ re-entries\n((?:  .+\n)+)", result.stdout)
    assert [policy for policy, *_ in traces] == ["locb", "eloc"]
    for policy, count, lines in traces:
        files = dict(re.findall(r"^ +\d+  (\S+), (\d+) re-entries, ", lines, re.MULTILINE))
        expected = {f"policies/{policy}.py", "service/api/handlers.py", "service/store/sqlite.py"}
        assert {path for path in files if path.startswith(f"kernels/{policy}/")}, result.stdout
        assert expected <= files.keys(), result.stdout
        assert len(files) == int(count) <= MAX_FILES, result.stdout
        assert max(map(int, files.values())) <= MAX_RE_ENTRIES, result.stdout
