"""Charts and HTML of results in notebooks, for the methods of these objects."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from locb.evaluation.policy_view import PolicyView
from locb.evaluation.results import Comparison, Run, format_value
from locb.logs.groups.user_groups import UserGroups
from locb.logs.results import Evaluation
from locb.report.tables.comparison_table import (
    COLUMN_NOTES,
    comparison_headings,
    comparison_rows,
    format_comparison,
    repeats_text,
)
from locb.report.tables.evaluation_table import chart_rows

MAX_GROUPS = 10  # rows of the table of groups


def html_of_run(run: Run) -> str:
    """Return a run as an HTML table of its main numbers."""
    return _facts(f"Run of {type(run.policy).__name__}", run.summary())


def text_of_comparison(comparison: Comparison) -> str:
    """Return the result table and the verdict of a comparison as text; one table per environment."""
    return format_comparison(comparison)


def html_of_comparison(comparison: Comparison) -> str:
    """Return the result table and the verdict of a comparison as HTML; one table per environment."""
    if comparison.parts:
        return "".join(f"<h4>{escape(name)}</h4>{html_of_comparison(part)}" for name, part in comparison.parts.items())
    repeats = len(comparison.seeds)
    rounds = f"{comparison.checkpoints[-1]:,} rounds, {repeats_text(repeats)}"
    table = _table(comparison_headings(comparison), comparison_rows(comparison), rounds)
    texts = "".join(f"<p>{escape(text)}</p>" for text in (comparison.verdict(), *comparison.notes))
    return f'{table}{texts}<p style="color: gray">{escape(COLUMN_NOTES)}</p>'


def html_of_policy(view: PolicyView) -> str:
    """Return the parameters, users and groups of a policy as HTML."""
    rounds = view.served
    facts = {"users": f"{view.n_users:,}", "features per arm": f"{view.theta.shape[1]}"}
    if not np.isnan(view.theta).all():
        facts["rounds"] = f"{rounds.sum():,} ({rounds.min():,} to {rounds.max():,} per user)"
    settings = {name: _short(view.settings[name]) for name in view.settings if name not in ("n_users", "dim")}
    changed = [f"<b>{escape(name)}</b>" if name in view.changed else escape(name) for name in settings]
    rows = "".join(
        f"<tr><td>{n}</td><td>{escape(v)}</td></tr>" for n, v in zip(changed, settings.values(), strict=True)
    )
    parameters = f"<details><summary>Parameters (changed: bold)</summary><table>{rows}</table></details>"
    groups = view.distinct_groups()
    facts["groups"] = f"{len(groups):,}" if groups else "none"
    table = ""
    if groups:
        shown = [
            (_seed(group.seed), f"{len(group):,}", "–" if group.returned_at is None else f"{group.returned_at:,}")
            for group in groups[:MAX_GROUPS]
        ]
        caption = f"Largest {len(shown)} of {len(groups):,} groups" if len(groups) > MAX_GROUPS else "Groups"
        table = _table(("seed user", "users", "final since round"), shown, caption)
    return f"{_facts(view.name, facts)}{table}{parameters}"


def plot_regret(run: Run) -> Any:
    """Return the chart of the regret of a run over its rounds."""
    from locb.report.charts.notebook_charts import run_chart

    return run_chart(run)


def plot_comparison(comparison: Comparison) -> Any:
    """Return the chart of the regret of each policy; with several environments, one chart per environment."""
    import altair as alt

    from locb.report.charts.line_charts import regret_chart

    if not comparison.parts:
        return regret_chart(comparison)
    charts = [
        alt.vconcat(regret_chart(part, suffix=f"_{number}"), title=alt.Title(name, anchor="start"))
        for number, (name, part) in enumerate(comparison.parts.items())
    ]
    return alt.vconcat(*charts).resolve_scale(color="independent")


def plot_evaluation(evaluation: Evaluation) -> Any:
    """Return the chart of the estimates: differences from the baseline, or values if there are none."""
    from locb.report.charts.interval_charts import interval_chart

    differences = any(value.difference for result in evaluation.results for value in result.values)
    title = "mean reward per decision" + (f", minus that of {evaluation.baseline}" if differences else "")
    rows = chart_rows(evaluation, differences=differences)
    return interval_chart(rows, title, with_zero=differences).properties(width=420, datasets={"rows": rows})


def plot_user_groups(found: UserGroups) -> Any:
    """Return the map of the users of a log, coloured by group."""
    from locb.report.pages.groups_page import chart_users

    chart = chart_users(found)
    return chart["spec"].properties(width=560, title=chart["title"], datasets={"rows": chart["rows"]})


def plot_gammas(found: UserGroups) -> Any:
    """Return the chart of the values of gamma that were compared."""
    from locb.report.pages.groups_page import chart_gammas

    chart = chart_gammas(found)
    return chart["spec"].properties(title=chart["title"], datasets={"rows": chart["rows"]})


def page_of_groups(found: UserGroups) -> str:
    """Return the HTML page of groups of users in a log."""
    from locb.report.pages.groups_page import render_groups_page

    return render_groups_page(found)


def plot_users(view: PolicyView, ids: Sequence[Any] | None) -> Any:
    """Return the map of the users of a policy."""
    from locb.report.charts.notebook_charts import policy_users_chart

    return policy_users_chart(view, ids)


def plot_groups(view: PolicyView, ids: Sequence[Any] | None) -> Any:
    """Return the bar chart of the groups of a policy."""
    from locb.report.charts.notebook_charts import policy_groups_chart

    return policy_groups_chart(view, ids)


def _seed(seed: int | None) -> str:
    return "–" if seed is None else str(seed)


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 6:
        return f"{', '.join(map(str, value[:3]))}, … ({len(value):,} values)"
    return format_value(value)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    top = f"<caption>{escape(caption)}</caption>"
    return f"<table>{top}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _facts(caption: str, facts: dict[str, str]) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts.items())
    return f"<table><caption>locb: {escape(caption)}</caption>{rows}</table>"
