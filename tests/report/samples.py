"""A small sample of findings."""

import numpy as np

from locb.evaluation.findings import Claim, Criterion, Findings, GroupMap, LineChart, Measurement, ResultTable

TABLE = ResultTable(
    "accuracy-x",
    "accuracy",
    "Accuracy",
    [
        {"method": "LOCB", "F1": Measurement(0.97635, 0.06671), "paper's F1": 0.88, "F1 difference": 0.09635},
        {"method": "a|b", "F1": Measurement(0.25, float("nan")), "rounds": Measurement(56999.2, 1234.5), "gamma": None},
    ],
    "A note.",
)


def findings() -> Findings:
    points = [{"line": "a", "round": t, "regret": 2.0 * t, "low": t, "high": 3 * t} for t in (1, 2, 3)]
    points += [{"line": "bound", "round": t, "regret": 9.0} for t in (1, 2, 3)]
    theta = np.random.default_rng(0).standard_normal((6, 3))
    criteria = [Criterion("a above b", Measurement(0.2, 0.1)), Criterion("a above <c>", Measurement(150.0, 200.0))]
    return Findings(
        title="Tried & tested",
        tables=[
            TABLE,
            ResultTable("accuracy-x-settings", "accuracy", "Every setting", [{"alpha": 1.0}]),
            ResultTable("speed", "speed", "Speed", [{"method": "LOCB", "rounds": 3}]),
        ],
        figures=[
            LineChart(
                "curve", "accuracy", "Curve", "subtitle", "round", "regret", points, log_y=True, dashed=("bound",)
            ),
            GroupMap("users", "accuracy", "Users", "subtitle", theta, [[0, 1], [2]]),
        ],
        claims=[
            Claim("accuracy", "Synthetic", "LOCB is best.", "Table 1", criteria, "Because.", "accuracy-x"),
            Claim(
                "speed",
                "Synthetic",
                "LOCB is fast.",
                "Table 2",
                [Criterion("b above a", Measurement(-1.0, 0.5))],
                "",
                "speed",
            ),
        ],
        sections={"accuracy": "Accuracy of the clusters", "speed": "Speed"},
        notes=["A general note."],
        settings={"repeats": 3},
    )
