"""The look of every chart, and a matplotlib figure as an inline <svg>.

Colours are CSS variables with matplotlib's own as the fallback, so one page serves
a light and a dark screen.
"""

import html
import io
import re
from typing import Any

import matplotlib.axes
import matplotlib.ticker
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from rlvr_jax.analysis.text import visible

# Colour in matplotlib -> CSS variable (page.py sets them for light and dark).
SERIES_COLORS = (
    "#2a78d6",
    "#d9622b",
    "#1a9e6c",
    "#7a5bd0",
    "#c2417c",
    "#b8860b",
    "#4f8a9e",
    "#8a6d3b",
)
INK, MUTED, GRID = "#3a4149", "#8b949e", "#e3e6ea"
VARIABLES = {INK: "ink", MUTED: "muted", GRID: "grid"} | {
    color: f"s{number}" for number, color in enumerate(SERIES_COLORS, 1)
}
# These mean the same in every chart; the other labels take colours in order.
LABEL_COLORS = {"correct": SERIES_COLORS[2], "wrong": SERIES_COLORS[1]}
WIDTH = 3.9
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rlvr_jax",
    "font.size": 7.5,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    # Beyond these powers of ten, one factor for the axis: labels stay short.
    "axes.formatter.limits": (-3, 5),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "lines.solid_capstyle": "round",
}


def variable(color: str) -> str:
    """The colour as a CSS value, with matplotlib's own as the fallback."""
    return f"var(--{VARIABLES[color]}, {color})"


def new_axes(
    height: float = 2.1, *, long_labels: bool = False
) -> tuple[Figure, matplotlib.axes.Axes]:
    """An empty pair of axes on a transparent ground; sizes in inches.

    All charts share their margins, so that they line up on the page (and drawing is
    twice as fast); `long_labels` measures the labels of the vertical axis instead.
    """
    figure = Figure(figsize=(WIDTH, height))
    if long_labels:
        figure.set_layout_engine("constrained")
    else:
        margins = {"left": 0.45 / WIDTH, "right": 1 - 0.06 / WIDTH}
        figure.subplots_adjust(**margins, bottom=0.36 / height, top=1 - 0.12 / height)
    figure.patch.set_alpha(0.0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0.0)
    return figure, axes


def finish(axes: matplotlib.axes.Axes, unit: str, *, log: bool = False) -> None:
    """Axis ticks, numbers and limits, from what has been drawn.

    `log` asks for a logarithmic axis; with values of 0 and below there is none.
    """
    axes.set_xlabel("step")
    axes.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(6, integer=True))
    low, high = axes.dataLim.intervaly
    if log and low > 0:
        axes.set_yscale("log")
        return
    axes.yaxis.set_major_locator(
        matplotlib.ticker.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
    )
    if unit == "share":
        axes.yaxis.set_major_formatter(percent)
    if low == high == 0:
        axes.set_ylim(0, 1)
    elif 0 <= low < 0.6 * high:
        axes.set_ylim(bottom=0)


def percent(value: float, _: object) -> str:
    """A share as a tick label."""
    return f"{100 * value:g} %"


def inline(figure: Figure, title: str) -> str:
    """The figure as an <svg> element without fixed size, colours or loose ids."""
    buffer = io.StringIO()
    metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
    # Not `savefig`, which draws everything twice.
    FigureCanvasSVG(figure).print_svg(buffer, metadata=metadata)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    for element in ("metadata", "style"):
        svg = re.sub(rf"<{element}.*?</{element}>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    used = set(re.findall(r'(?:url\(#|href="#)([\w-]+)', svg))
    svg = re.sub(
        r' id="([\w.-]+)"', lambda m: m.group(0) if m.group(1) in used else "", svg
    )
    # Text in the page's own font. matplotlib writes 'font: 7.5px "A", "B", family'.
    svg = re.sub(r"font: ([\d.]+px) [^;\"]+", r"font: \1 var(--sans, sans-serif)", svg)
    for color in VARIABLES:
        svg = svg.replace(color, variable(color))
    return svg.replace(
        "<svg", f'<svg role="img" aria-label="{html.escape(visible(title))}"', 1
    )
