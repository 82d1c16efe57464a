"""Chart of the gate of ELOC over rounds, in three environments: docs/images/gate.svg.

The gate is the three weights with which ELOC mixes its three predictors. The argument is the path of the image.
"""

import sys
from typing import Any

import altair as alt

import locb
from locb.report.charts.chart_theme import PALETTE, style

ROUNDS = 10_000
STEP = 100  # rounds between two points of the chart
# Name → (number of clusters, spread of the users in a cluster).
SCENARIOS = {"one cluster": (1, 0.02), "five clusters": (5, 0.2), "no two users alike": (100, 0.2)}
LABELS = {"everyone": "everyone is alike", "mixture": "mixture of neighbourhoods", "population": "population alone"}


def gate_weights(n_clusters: int, spread: float) -> list[dict[str, Any]]:
    """Return the data of a chart: the three weights of the gate after every 100 rounds."""
    env = locb.Synthetic(n_clusters=n_clusters, spread=spread, seed=7)
    rounds = env.rounds(ROUNDS, seed=1)
    policy = locb.ELOC(n_users=env.n_users, dim=env.dim)
    rows = []
    for start in range(0, ROUNDS, STEP):
        rows += [{"round": start, "weight": policy.gate[key], "part": label} for key, label in LABELS.items()]
        policy.play(rounds.slice(start, start + STEP))
    return rows


def main() -> None:
    """Run ELOC in the three environments and write the chart."""
    panels = [
        alt.Chart(alt.InlineData(values=gate_weights(*settings)), title=scenario, width=230, height=180)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("round:Q", title="round", axis=alt.Axis(tickCount=4, format=",d")),
            y=alt.Y("weight:Q", title="weight", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color(
                "part:N",
                title=None,
                sort=list(LABELS.values()),
                scale=alt.Scale(domain=list(LABELS.values()), range=list(PALETTE[:3])),
                legend=alt.Legend(orient="bottom"),
            ),
        )
        for scenario, settings in SCENARIOS.items()
    ]
    style(alt.hconcat(*panels)).save(sys.argv[1])


if __name__ == "__main__":
    main()
