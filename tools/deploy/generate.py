"""Writes what is generated under deploy/: the chart's roles and Koordinator's profile in it, and from the chart the
kustomize base and the one file.

    tools/deploy/generate.py            write
    tools/deploy/generate.py --check    say what is not up to date, and exit with 1

Needs `helm` (FAIRLEAD_REAL, or the PATH) for all but the files of the chart; `--roles` does only those.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from fairlead.cli.roles.documents import cluster_rules, extra_rules
from fairlead.cli.roles.ways import EXTRAS, WAYS
from fairlead.koordinator.config.preset import KOORDINATOR_PRESET

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NAMESPACE = "fairlead-system"
KUBERNETES = "1.36.0"
MADE = "# Made by tools/deploy/generate.py; change the chart or src/fairlead/cli/roles instead.\n"


class _Dumper(yaml.SafeDumper):
    """Shows a text of several lines as it is."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def roles() -> dict[Path, str]:
    """The rules of every way of running and of every extra, as the chart includes them, and the plugins of the mode
    koordinator."""
    folder = DEPLOY / "chart" / "files"
    rules = {way: cluster_rules(way) for way in WAYS} | {f"with-{extra}": extra_rules(extra) for extra in EXTRAS}
    files = {f"roles/{name}.yaml": found for name, found in rules.items()}
    profile = dict(yaml.safe_load(KOORDINATOR_PRESET)["profiles"][0])
    profile.pop("schedulerName")  # the chart's values say it
    files["koordinator-profile.yaml"] = profile
    return {folder / name: MADE + yaml.safe_dump(found, sort_keys=False) for name, found in files.items()}


def manifests() -> dict[Path, str]:
    """The chart with its own values, as a kustomize base and as one file that kubectl takes."""
    helm = os.environ.get("FAIRLEAD_REAL", "") and str(Path(os.environ["FAIRLEAD_REAL"]) / "helm")
    command = [helm or shutil.which("helm") or "helm", "template", "fairlead", str(DEPLOY / "chart"), "-n", NAMESPACE]
    command += ["--kube-version", KUBERNETES]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    objects = [doc for doc in yaml.safe_load_all(printed) if doc]
    for doc in objects:
        doc["metadata"]["labels"].pop("helm.sh/chart", None)
        doc["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "kubectl"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    base = yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False)
    return {
        DEPLOY / "kustomize" / "base" / "fairlead.yaml": MADE + base,
        DEPLOY / "fairlead.yaml": MADE + yaml.safe_dump(namespace, sort_keys=False) + "---\n" + base,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--roles", action="store_true")
    asked = parser.parse_args()
    wanted = roles()
    if not asked.roles:
        for path, text in wanted.items():
            write(path, text, check=asked.check)
        wanted = manifests()
    stale = [path for path, text in wanted.items() if not write(path, text, check=asked.check)]
    if stale:
        sys.exit("not up to date, run tools/deploy/generate.py: " + ", ".join(str(path) for path in stale))


def write(path: Path, text: str, *, check: bool) -> bool:
    """False if the file differs and is only checked."""
    if path.exists() and path.read_text() == text:
        return True
    if check:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return True


if __name__ == "__main__":
    main()
