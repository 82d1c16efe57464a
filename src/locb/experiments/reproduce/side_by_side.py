"""Tables, figures and claims of the synthetic environment with different noise of rewards, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from locb.evaluation.findings import ResultTable
from locb.experiments.reproduce.data_set import DataSet
from locb.experiments.reproduce.target import TargetFindings

REWARDS = "rewards"  # column of merged tables


def merge_noise_variants(found: Sequence[tuple[DataSet, TargetFindings]]) -> TargetFindings:
    """Return the findings of one target on all data sets. The synthetic data sets share tables, in adjacent rows.

    Figures and claims that differ only in the noise of the synthetic environment follow each other. Claims refer to the
    shared table as evidence.

    Parameters
    ----------
    found : sequence of (DataSet, TargetFindings)
        Findings by data set. Findings of synthetic data sets have the same tables, figures and claims in the same
        order, apart from their names and values; empty findings are left out.
    """
    merged = TargetFindings([], [], [])
    synthetic = [(data, part) for data, part in found if data.rewards and part.tables]
    if synthetic:
        parts = [part for _, part in synthetic]
        merged.extend(
            TargetFindings(
                [_merge_tables(synthetic, index) for index in range(len(parts[0].tables))],
                [figure for figures in zip(*(part.figures for part in parts), strict=True) for figure in figures],
                [
                    replace(claim, evidence=first.evidence)
                    for claims in zip(*(part.claims for part in parts), strict=True)
                    for first in claims[:1]
                    for claim in claims
                ],
            )
        )
    for data, part in found:
        if not data.rewards:
            merged.extend(part)
    return merged


def _merge_tables(found: Sequence[tuple[DataSet, TargetFindings]], index: int) -> ResultTable:
    """Return one table with the rows of all data sets. The rows with the same first cell are adjacent."""
    first, table = found[0][0], found[0][1].tables[index]
    if len(found) == 1:
        return table
    rows: list[dict[str, Any]] = []
    for key in dict.fromkeys(next(iter(row.values())) for row in table.rows):
        for data, part in found:
            for row in part.tables[index].rows:
                (name, value), *cells = row.items()
                if value == key:
                    rows.append({name: value, REWARDS: data.rewards, **dict(cells)})
    return replace(table, title=table.title.replace(first.label, first.family), rows=rows)
