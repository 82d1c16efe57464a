"""What draws charts in a browser: Vega, Vega-Lite and the function that embeds them, as one script."""

from __future__ import annotations

from functools import cache

import vl_convert


@cache  # it takes more than a second
def vega_script() -> str:
    """The script, which makes ``vegaEmbed`` known."""
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script
