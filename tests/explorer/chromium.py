"""Finds the browser of the explorer's tests; as a program, installs Debian's if there is none.

``CHROMIUM`` names another one.
"""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
HOW = """\
the explorer's tests need Chromium, and it could not be installed here: {why}
install it, then run again:
  Debian, Ubuntu   sudo apt-get install chromium
  Fedora           sudo dnf install chromium
  Arch             sudo pacman -S chromium
  macOS            brew install --cask chromium
or name a Chromium or Chrome that is there: CHROMIUM=/path/to/it make test
"""


def find() -> str | None:
    """The browser's path, or None."""
    named = os.environ.get("CHROMIUM")
    if named:
        return shutil.which(named)
    found = [path for name in NAMES if (path := shutil.which(name))]
    return found[0] if found else shutil.which(MAC)


def install() -> str | None:
    """Install Debian's package; gives what stood in the way, or None."""
    if os.environ.get("CHROMIUM"):
        return f"CHROMIUM={os.environ['CHROMIUM']} is no program"
    if shutil.which("apt-get") is None:
        return "there is no apt-get"
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if prefix and shutil.which("sudo") is None:
        return "apt-get needs root, and there is no sudo"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    sys.stderr.write("installing chromium with apt-get\n")
    for step in (
        ["update"],
        ["install", "--yes", "--no-install-recommends", "chromium"],
    ):
        done = subprocess.run(
            [*prefix, "apt-get", "-qq", *step], env=environment, capture_output=True, text=True
        )
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            return f"apt-get {step[0]} failed: {''.join(last)}"
    return None if find() else "apt-get installed it, and it is still not found"


if __name__ == "__main__":
    if find() is None and (why := install()):
        sys.exit(HOW.format(why=why))
