"""What the real kube-scheduler makes of a configuration file: its effective form and its points, or its words."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.real.control_plane import real_binary


@dataclass(frozen=True)
class RealAnswer:
    document: dict[str, Any] | None
    points: dict[str, dict[str, list[list[Any]]]]
    error: str


def ask_kube_scheduler(file: Path, scratch: Path) -> RealAnswer:
    """Let it read the file, write what it understood, and leave. It never reaches an API server."""
    written = scratch / "effective.yaml"
    written.unlink(missing_ok=True)
    command = [
        real_binary("kube-scheduler"), "--config", str(file), "--write-config-to", str(written), "--secure-port=0",
        "--master=http://127.0.0.1:1", "--logging-format=json", "-v=2",
    ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    if run.returncode == 0:
        return RealAnswer(yaml.safe_load(written.read_text()), _points(run.stderr), "")
    return RealAnswer(None, {}, _error(run.stderr))


def _points(log: str) -> dict[str, dict[str, list[list[Any]]]]:
    """By position of the profile, because the log line does not name it."""
    said = "the scheduler starts to work with those plugins"
    found = [json.loads(line)["Plugins"] for line in log.splitlines() if said in line]
    return {
        str(at): {
            point[0].lower() + point[1:]: [[ref["Name"], ref["Weight"]] for ref in plugins["Enabled"] or ()]
            for point, plugins in sets.items()
            if point != "MultiPoint"
        }
        for at, sets in enumerate(found)
    }


def _error(log: str) -> str:
    for line in log.splitlines():
        match = re.match(r"\{.*\"msg\":\"command failed\".*\}", line)
        if match:
            return str(json.loads(line)["err"])
    raise AssertionError(f"kube-scheduler said nothing of use:\n{log[-2000:]}")
