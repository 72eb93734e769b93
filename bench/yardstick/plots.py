"""Plots of the results, readable on light and on dark: ``python plots.py FOLDER``.

Runs in an environment of its own, which holds matplotlib.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

GREY = "#8a8f98"
COLOURS = {"keyword": "#3b8eea", "vector": "#e0812d", "hybrid": "#2fa37c"}
OURS = "#d6409f"
mpl.use("svg")
mpl.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "colmem",
        "font.size": 9,
        "text.color": GREY,
        "axes.labelcolor": GREY,
        "axes.edgecolor": GREY,
        "xtick.color": GREY,
        "ytick.color": GREY,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "legend.frameon": False,
    }
)
Line = dict[str, Any]


def main() -> None:
    folder = Path(sys.argv[1])
    for path in sorted(folder.glob("peers-*.jsonl")):
        lines = {}
        for text in path.read_text().splitlines():
            line = json.loads(text)
            lines[line["contender"]] = line
        size = path.stem.partition("-")[2]
        search(list(lines.values()), int(size), folder / f"search-{size}.svg")
        ingest(list(lines.values()), int(size), folder / f"ingest-{size}.svg")
    growth(folder / "growth.jsonl", folder / "growth.svg")


def search(lines: list[Line], size: int, out: Path) -> None:
    """Median latency of each mode by contender; the line spans the runs."""
    lines = [line for line in lines if line.get("search")]
    figure, axes = plt.subplots(figsize=(7, 0.42 * len(lines) + 1))
    for i, (mode, colour) in enumerate(COLOURS.items()):
        for place, line in enumerate(reversed(lines)):
            found = line["search"].get(mode, {}).get("none")
            if found:
                y = place + 0.25 - 0.25 * i
                label = mode if place == len(lines) - 1 else None
                axes.barh(y, found["p50_ms"], 0.22, color=colour, label=label)
                low, high = found.get("p50_ms_range", [found["p50_ms"]] * 2)
                axes.plot([low, high], [y, y], color=GREY, linewidth=1)
                text = f" {found['p50_ms']:.3g}"
                axes.text(max(high, found["p50_ms"]), y, text, va="center", fontsize=7)
    _name(axes, lines)
    axes.set_xscale("log")
    axes.set_xlabel(f"ms for ten hits, median, {size:,} items; logarithmic")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.12), ncols=3)
    _save(figure, out)


def ingest(lines: list[Line], size: int, out: Path) -> None:
    """Items per second until fully searchable, and bytes on disk."""
    lines = [line for line in lines if "bytes_per_item" in line.get("load", {})]
    figure, both = plt.subplots(1, 2, figsize=(7, 0.3 * len(lines) + 1), sharey=True)
    titles = (("items_per_s", "items/s to fully searchable"), ("bytes_per_item", "bytes an item"))
    for axes, (name, title) in zip(both, titles, strict=True):
        for place, line in enumerate(reversed(lines)):
            value = line["load"][name]
            colour = OURS if line["contender"] == "colmem" else COLOURS["keyword"]
            axes.barh(place, value, 0.6, color=colour)
            axes.text(value, place, f" {value:,.0f}", va="center", fontsize=7)
        axes.set_xlabel(f"{title}, {size:,} items")
        axes.margins(x=0.2)
    _name(both[0], lines)
    _save(figure, out)


def growth(path: Path, out: Path) -> None:
    """Median latencies as a store grows."""
    if not path.exists():
        return
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    figure, axes = plt.subplots(figsize=(7, 3))
    for mode, colour in COLOURS.items():
        points = [line["read"][f"{mode}, none"]["p50_ms"] for line in lines]
        axes.plot([line["items"] for line in lines], points, "o-", color=colour, label=mode)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("items")
    axes.set_ylabel("ms for ten hits, median")
    axes.legend()
    _save(figure, out)


def _name(axes: Any, lines: list[Line]) -> None:
    axes.set_yticks(range(len(lines)), [line["contender"] for line in reversed(lines)])


def _save(figure: Any, out: Path) -> None:
    figure.savefig(out, bbox_inches="tight", transparent=True, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
