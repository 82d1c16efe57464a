"""
Read the dashboard
==================

The dashboard is a web page of the service that shows what the service has learned. This example takes screenshots of the four panels of the dashboard
and explains them.

"""

# %%
# A service with visitors
# -----------------------
#
# ``locb demo`` starts a service with 160 simulated visitors in five groups. The service does not know the groups. At each visit, the service
# recommends one of eight films. In a clone of the repository, ``make page`` does the same. The screenshots are taken with Chromium. If Chromium is
# not installed, stored screenshots are shown.

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
atexit.register(process.terminate)  # stop the service, also if the example fails

client = Client(f"http://127.0.0.1:{port}", retries=0)
deadline = time.monotonic() + 300
decisions = 0
while decisions < 3_000 and time.monotonic() < deadline and process.poll() is None:
    time.sleep(1)
    with contextlib.suppress(ServiceError):
        decisions = client.status().decisions
print(decisions, "decisions")


def take_screenshot(panel, stored):
    """Return the path of a new screenshot of a panel, or of the stored screenshot if Chromium is not installed."""
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
# This panel shows the number of decisions and rewards, per second and in total, and the mean reward over time with its 95% confidence interval. With
# "Compare with", you select an earlier period. The text below the chart then states the difference of the mean rewards of the two periods, and
# whether the difference is significant.

screenshot = take_screenshot("#status", "page.png")

# %%
# Map
# ---
#
# Each mark is a user. The position is a projection of the estimated preferences to two dimensions, so users with similar estimates are close to each
# other. Colour and shape show the group of the user. New rewards do not change the projection, so a mark moves only when the estimate of that user
# changes.

screenshot = take_screenshot("#map", "page-map.png")

# %%
# Groups
# ------
#
# The table has one row per group: the number of users, the share of sure members, the number of rewards and their mean, and the features with the
# largest positive weights. A member is *sure* if the user belongs to the group with a probability of at least 90%. Groups with nearly the same
# preferences count as one group.

screenshot = take_screenshot("#groups", "page-dark.png")

# %%
# User
# ----
#
# This panel shows the estimated preferences of one user with 95% intervals, the groups of the user with their probabilities, similar users, and the
# latest decisions with their explanations.

seed = client.groups(sort="sure", limit=1).clusters[0].seed
screenshot = take_screenshot(f"#user/{seed}", "page-user.png")

# %%
client.close()
process.terminate()
process.wait(60)
