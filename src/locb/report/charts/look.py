"""What all charts share: colours and style."""

from __future__ import annotations

from typing import Any

# Distinguishable without colour vision trouble (Okabe and Ito), the strongest first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")


def style(chart: Any) -> Any:
    """The look that all charts share."""
    return (
        chart.configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=13, gridColor="#eeeeee", titleFontWeight="normal")
        .configure_legend(labelFontSize=12, titleFontSize=13)
        .configure_title(fontSize=15, anchor="start", subtitleFontSize=12, subtitleColor="#555555")
    )
