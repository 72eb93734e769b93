"""One phase of one contender, in a process of its own: ``python -m yardstick.child``.

Figures go to standard output, a JSON array of names and value on each line.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from yardstick.contender import contender
from yardstick.phases import PHASES
from yardstick.run import Run
from yardstick.workload import Workload


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("phase", choices=PHASES)
    parser.add_argument("workload", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    # Whatever a package prints goes to standard error.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def report(names: Sequence[str], value: Any) -> None:
        out.write(json.dumps([*names, value]) + "\n")
        out.flush()

    workload = Workload(options.workload)
    made = contender(options.name, options.folder, workload.about["dim"])
    PHASES[options.phase](Run(made, workload, report, options.seconds, options.strict))
    sys.stderr.flush()
    # Some packages keep threads that would outlive the measurement.
    os._exit(0)


if __name__ == "__main__":
    main()
