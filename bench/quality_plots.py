"""A plot of retrieval quality, readable on light and on dark: ``python quality_plots.py FOLDER``.

Runs in the environment that holds matplotlib.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from yardstick.plots import COLOURS, GREY, OURS

MODES = ("hybrid", "vector", "keyword")
Row = dict[str, Any]


def main() -> None:
    folder = Path(sys.argv[1])
    rows = json.loads((folder / "quality.json").read_text())
    rows = [row for row in rows if row["ranking"] in MODES]
    sets = list(dict.fromkeys(row["set"] for row in rows))
    figure, panels = plt.subplots(
        1, len(sets), figsize=(2.1 * len(sets) + 1, 5), sharey=True, squeeze=False
    )
    engines = list(dict.fromkeys(row["engine"] for row in rows))
    lines = [
        (engine, mode)
        for engine in engines
        for mode in MODES
        if any(row["engine"] == engine and row["ranking"] == mode for row in rows)
    ]
    for axes, name in zip(panels[0], sets, strict=True):
        held = {(r["engine"], r["ranking"]): r["nDCG@10"] for r in rows if r["set"] == name}
        for place, line in enumerate(reversed(lines)):
            if line in held:
                axes.barh(place, held[line], 0.7, color=COLOURS[line[1]])
                axes.text(held[line], place, f" {held[line]:.3f}", va="center", fontsize=7)
        axes.set_title(name, color=GREY, fontsize=9)
        axes.set_xlim(0, 1.25)
    panels[0][0].set_yticks(range(len(lines)), [" ".join(line) for line in reversed(lines)])
    for label, line in zip(panels[0][0].get_yticklabels(), reversed(lines), strict=True):
        if line[0] == "colmem":
            label.set_color(OURS)
    figure.supxlabel("nDCG@10", color=GREY, fontsize=9)
    out = folder / "quality.svg"
    figure.savefig(out, bbox_inches="tight", transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main()
