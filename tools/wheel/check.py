"""Builds the wheel, installs it in an empty environment and runs the demo and the laboratory there, far from this tree.

The tests run from the tree, where `papers` and every file that the wheel leaves out are at hand. Here they are not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2]
PLACE = HOUSE / "build" / "wheel"
COMMANDS = (
    "fairlead demo",
    "fairlead lab run small.yaml --out one",
    "fairlead lab report one",
    "fairlead lab experiment small.yaml --workers 2 --out all",
    "fairlead lab report all",
    "fairlead lab omega small.yaml --schedulers 1,2",
)
EXPECTED = ("one/pods.parquet", "one/report/report.html", "all/report/report.html")
ABSENT = "import importlib.util as u; assert u.find_spec('papers') is None and u.find_spec('tests') is None"


def main() -> None:
    began = time.monotonic()
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    run([sys.executable, "-m", "build", "--quiet", "--wheel", "--outdir", str(PLACE), str(HOUSE)])
    (wheel,) = PLACE.glob("*.whl")
    venv.create(PLACE / "venv", with_pip=True)
    binaries = PLACE / "venv" / "bin"
    run([str(binaries / "python"), "-m", "pip", "install", "--quiet", f"{wheel}[lab]"])
    shutil.copy(HOUSE / "tools" / "wheel" / "small.yaml", PLACE)
    run([str(binaries / "python"), "-c", ABSENT])
    for command in COMMANDS:
        print(f"$ {command}", flush=True)
        name, *arguments = command.split()
        run([str(binaries / name), *arguments])
    missing = [name for name in EXPECTED if not (PLACE / name).is_file()]
    assert not missing, f"not written: {', '.join(missing)}"
    print(f"{wheel.name}: installed, and works; {time.monotonic() - began:.0f} s")


def run(command: list[str]) -> None:
    """Run a command in the scratch directory, with nothing of this tree on Python's path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=PLACE, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with {done.returncode}")


if __name__ == "__main__":
    main()
