"""Fresh processes in a contender's environment, watched from outside: memory, time, figures."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yardstick import environments

BENCH = Path(__file__).parents[1]
SAMPLE_S = 0.05
_MB = 1 << 20


class PhaseError(Exception):
    """A phase failed, or took longer than it may."""


@dataclass
class Memory:
    """Peaks in MB: of what a process holds itself, and with mapped files and shared pages."""

    own_mb: float = 0.0
    resident_mb: float = 0.0

    def sample(self, process_id: int) -> None:
        try:
            text = Path(f"/proc/{process_id}/status").read_text()
        except OSError:
            return
        fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        if "RssAnon" not in fields:
            return
        own, resident = (int(fields[name].split()[0]) * 1024 / _MB for name in ("RssAnon", "VmRSS"))
        self.own_mb = max(self.own_mb, round(own, 1))
        self.resident_mb = max(self.resident_mb, round(resident, 1))


def run_phase(
    command: list[str | Path],
    log: Path,
    seconds: float,
    figures: dict[str, Any],
    variables: Mapping[str, str] | None = None,
) -> Memory:
    """Run a phase to its end, putting what it reports into ``figures``.

    ``variables`` are added to its environment.

    Raises
    ------
    PhaseError
        When it fails, with its last words, or is not done after so many seconds.
    """
    memory = Memory()
    deadline = time.monotonic() + seconds
    with log.open("a") as words:
        words.write(f"# {' '.join(map(str, command[3:5]))}\n")
        words.flush()
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
            cwd=BENCH,
            start_new_session=True,
            env=_environment() | dict(variables or {}),
        )
        reader = threading.Thread(target=_read, args=(process, figures))
        reader.start()
        while process.poll() is None and time.monotonic() < deadline:
            memory.sample(process.pid)
            time.sleep(SAMPLE_S)
        is_late = process.poll() is None
        if is_late:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        reader.join()
    if is_late:
        raise PhaseError(f"not done after {seconds:.0f} s")
    if process.returncode:
        last = log.read_text().strip().splitlines()[-1]
        raise PhaseError(f"exit status {process.returncode}: {last}")
    return memory


def _read(process: subprocess.Popen[str], figures: dict[str, Any]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        *names, value = json.loads(line)
        put(figures, names, value)


def put(figures: dict[str, Any], names: list[str], value: Any) -> None:
    """Set a figure below its names; objects are merged."""
    for name in names[:-1]:
        figures = figures.setdefault(name, {})
    if isinstance(value, dict):
        figures.setdefault(names[-1], {}).update(value)
    else:
        figures[names[-1]] = value


def import_ms(python: Path, module: str, times: int = 7) -> float:
    """What importing a module takes beyond starting the interpreter: the fastest of each."""

    def start(code: str) -> float:
        begin = time.perf_counter()
        subprocess.run([python, "-c", code], check=True, capture_output=True)
        return 1e3 * (time.perf_counter() - begin)

    walls = [(start("pass"), start(f"import {module}")) for _ in range(times)]
    bare, imported = (min(column) for column in zip(*walls, strict=True))
    took: float = max(0.0, imported - bare)
    return round(took, 1)


def versions(python: Path, packages: tuple[str, ...]) -> dict[str, str]:
    code = (
        "import json, sys, importlib.metadata as m;"
        "print(json.dumps({p: m.version(p) for p in sys.argv[1:]}))"
    )
    found: dict[str, str] = json.loads(ask(python, code, *packages))
    return found


def ask(python: Path, code: str, *arguments: str) -> str:
    """The last line that a piece of code prints in an environment."""
    command: list[str | Path] = [python, "-c", code, *arguments]
    out = subprocess.run(
        command, cwd=BENCH, env=_environment(), stdout=subprocess.PIPE, check=True, text=True
    )
    return out.stdout.strip().splitlines()[-1]


def now() -> float:
    return time.monotonic()


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(BENCH), "ANONYMIZED_TELEMETRY": "False"}


def machine() -> dict[str, Any]:
    """The machine, without a name or a path of it."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in info if "model name" in line), "unknown")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
    }


def load_average() -> list[float]:
    return [round(load, 2) for load in os.getloadavg()]


def commit() -> str:
    """The commit that is measured, marked when files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=9"]
    out = subprocess.run(command, cwd=environments.RUN.parent, capture_output=True, check=False)
    return out.stdout.decode().strip()
