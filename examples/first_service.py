"""
A service in ten minutes
========================

Start the HTTP service, request recommendations from Python, send rewards, and inspect what the service has learned.

"""

# %%
# Start the service
# -----------------
#
# In a terminal, the command is ``locb serve --data-dir state --dim 16``. This example starts the command as a child process. ``--dim`` is the length
# of the vector to which the service converts the features of an item. The service stores all its data in the folder of ``--data-dir``. If you stop
# the service and run the command again, the service continues with the stored data.

import atexit
import socket
import subprocess
import sys
import tempfile
import time

from locb.client import Client, ServiceError

with socket.socket() as probe:  # find a free port
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
folder = tempfile.mkdtemp()
command = "from locb.cli import main; main()"
options = [
    "serve",
    "--data-dir",
    folder,
    "--dim",
    "16",
    "--port",
    str(port),
    "--log-level",
    "error",
]
process = subprocess.Popen([sys.executable, "-c", command, *options], stdout=subprocess.DEVNULL)
atexit.register(process.terminate)  # stop the service, also if the example fails

client = Client(f"http://127.0.0.1:{port}")
deadline = time.monotonic() + 300
while True:
    try:
        print(client.health().status)
        break
    except ServiceError:
        if time.monotonic() > deadline or process.poll() is not None:
            raise
        time.sleep(0.5)

# %%
# One decision
# ------------
#
# The items among which the service chooses are called *arms*. Users, arms and decisions have strings as ids. Features have names and values; you do
# not declare users, arms or features in advance. ``decision.arm`` is the recommended arm.

films = {
    "Night Train": {"genre": "crime", "new": True},
    "Two Gardens": {"genre": "drama", "new": False},
    "Laugh Track": {"genre": "comedy", "new": True},
    "Deep Orbit": {"genre": "science fiction", "new": False},
}
decision = client.recommend("ann", films)
print(decision.arm)

# %%
# The reward measures the success of the decision. Send the reward when you know it, minutes or days later, from any process. If you send the same
# reward for a decision again, the service counts it once.

client.reward(decision.decision_id, 1.0)

# %%
# Many users
# ----------
#
# Forty simulated users make 1,200 visits. Users 0 to 19 mostly like crime and science fiction, users 20 to 39 mostly like drama and comedy. The
# service does not know these two groups.

import random

random.seed(1)
likes = {"crime": 0.8, "science fiction": 0.7, "drama": 0.2, "comedy": 0.1}
hits = []
for _ in range(1_200):
    number = random.randrange(40)
    decision = client.recommend(f"user {number}", films)
    genre = films[decision.arm]["genre"]
    chance = likes[genre] if number < 20 else 1 - likes[genre]
    reward = float(random.random() < chance)
    client.reward(decision.decision_id, reward)
    hits.append(reward)

# %%
import altair as alt

rows = [{"visit": end, "share": sum(hits[end - 100 : end]) / 100} for end in range(100, 1_201, 25)]
base = alt.Chart(alt.InlineData(values=rows), width=520, height=260, title="Share of liked recommendations")
chart = base.mark_line(strokeWidth=2.5).encode(
    x="visit:Q",
    y=alt.Y(
        "share:Q", title="mean reward of 100 visits", scale=alt.Scale(domain=[0.3, 0.9]), axis=alt.Axis(format="%")
    ),
)

# %%
# Why this arm?
# -------------
#
# Every decision has an explanation with three parts:
#
# - the contribution of each feature to the estimated reward;
# - the exploration bonus, which is added to try arms whose reward is uncertain;
# - the sources of the estimate: the groups of users whose rewards the estimate is based on. The *seed user* of a group is the user around whom the
#   group is built.

decision = client.recommend("user 3", films)
print(decision.arm)
for name, value in decision.explanation.contributions.items():
    print(f"  {name:24} {value:+.3f}")
print(f"  bonus                    {decision.explanation.bonus:+.3f}")
for source in decision.explanation.sources:
    print(f"  {source.weight:.0%} from {source.kind}, seed user {source.seed}")

# %%
# ``similar`` returns users who share a group with a user, nearest first. ``distance`` is the distance between the two estimates.

for other in client.similar("user 3", limit=3):
    print(other)

# %%
# Stop the service
# ----------------
#
# On SIGTERM, the service completes all requests in progress and writes a snapshot, which is a copy of its state. Even if the process is killed, the
# service loses no decision or reward to which it has responded.

client.close()
process.terminate()
print("exit status", process.wait(60))
