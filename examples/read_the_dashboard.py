"""
Read the dashboard
==================

Every service has a dashboard at its own address. This example takes screenshots of its four panels and explains what they show.

"""

# %%
# A service with visitors
# -----------------------
#
# ``locb demo`` starts a service with 160 simulated visitors of five kinds, which the service does not know. At each visit
# the service recommends one of eight films.
# In a clone, ``make page`` does the same. The screenshots are taken with Chromium; if it is not installed, stored screenshots are shown.

import atexit
import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from locb.client import Client, ServiceError

with socket.socket() as probe:  # find a free port
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
command = "from locb.cli import main; main()"
demo = [sys.executable, "-c", command, "demo", "--port", str(port), "--rate", "200"]
process = subprocess.Popen(demo, stdout=subprocess.DEVNULL)
atexit.register(process.terminate)  # also if the example fails

client = Client(f"http://127.0.0.1:{port}", retries=0)
deadline = time.monotonic() + 300
decisions = 0
while decisions < 3_000 and time.monotonic() < deadline and process.poll() is None:
    time.sleep(1)
    with contextlib.suppress(ServiceError):
        decisions = client.status().decisions
print(decisions, "decisions")


def take_screenshot(panel, stored):
    """Return the path of a screenshot of one panel, or a stored one."""
    path = Path("../docs/images") / stored
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        return path
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 860})
        page.goto(f"{client.url}/{panel}")
        page.wait_for_selector("canvas, svg.marks", timeout=60_000)
        page.wait_for_timeout(2_000)
        path = Path(tempfile.mkdtemp()) / "screenshot.png"
        page.screenshot(path=path)
        browser.close()
    return path


# %%
# Status
# ------
#
# This panel shows current rates and totals, and the mean reward over time with its 95% interval. The sentence below the chart compares the period with
# an earlier one, and states whether the difference is significant.

screenshot = take_screenshot("#status", "page.png")

# %%
# Map
# ---
#
# Each mark is a user. Users with similar estimated preferences are close to each other. Colour and shape show the group. The projection is fixed, so a
# point moves only when the estimate of that user changes.

screenshot = take_screenshot("#map", "page-map.png")

# %%
# Groups
# ------
#
# The table has one row per group: its size, whether it is final, its certificate (an upper bound on the distance between two members), the mean reward and
# the features with the largest weights.

screenshot = take_screenshot("#groups", "page-dark.png")

# %%
# User
# ----
#
# This panel shows the estimate of one user with intervals, the groups, similar users, and the latest decisions with their explanations.

seed = client.groups().clusters[0].seed
screenshot = take_screenshot(f"#user/{seed}", "page-user.png")

# %%
client.close()
process.terminate()
process.wait(60)
