"""One command makes a release: version, changelog, sdist and wheel, checked in an empty environment.

    tools/release/release.py 0.2.0 --base IMAGE@sha256:DIGEST
                                              make it: files are changed, dist/ is filled, nothing is committed or sent
    tools/release/release.py --check          build what is there and check it, changing nothing but build/

The version is in one place of the source; the chart, the kustomize base, image tags in the documentation and the
changelog follow it. What is built is installed in an empty environment, the sdist as well as the wheel, and there has
to say its version, print its roles and place pods in a small cluster. Beside them lies a list of all packages that an
image of the version holds, by version and hashes, as CycloneDX. The image is built on `--base`: a tag may mean another
image tomorrow, so a release refuses one without a digest.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HOUSE = Path(__file__).resolve().parents[2]
SOURCE = HOUSE / "src" / "fairlead" / "__init__.py"
CHANGELOG = HOUSE / "CHANGELOG.md"
VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
DIGEST = re.compile(r"\S+@sha256:[0-9a-f]{64}")
DOCKERFILE = HOUSE / "deploy" / "Dockerfile"
LOCKED = HOUSE / "requirements" / "run.txt"
PLACES = {
    SOURCE: r'^__version__ = "(.*)"$',
    HOUSE / "deploy" / "chart" / "Chart.yaml": r"^(?:version|appVersion): (.*)$",
    HOUSE / "deploy" / "kustomize" / "base" / "kustomization.yaml": r"^  newTag: (.*)$",
    HOUSE / "deploy" / "Dockerfile": r"fairlead:(\d[\w.]*)",
    HOUSE / "docs" / "real-cluster.md": r"fairlead:(\d[\w.]*)",
}
"""Where the version is written."""
_LOCKED_PACKAGE = re.compile(
    r"^([\w.-]+)(?:\[[\w,-]+\])?==([^\s;]+)(?: *;([^\\\n]*))?((?:[ \\]*\n    --hash=\S+)*)", re.MULTILINE
)
"""Name, version, condition and hashes of a package in a requirements file."""


def current() -> str:
    found = re.search(PLACES[SOURCE], SOURCE.read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def with_version(text: str, pattern: str, version: str) -> str:
    """The text with another version in each line that the pattern describes."""
    return re.sub(pattern, lambda match: match[0].replace(match[1], version), text, flags=re.MULTILINE)


def released(changelog: str, version: str, day: str) -> str:
    """The changelog in which all that was unreleased belongs to a version. Raises ValueError if there is nothing."""
    heading = re.search(r"^## Unreleased.*\n", changelog, re.MULTILINE)
    if heading is None:
        raise ValueError("CHANGELOG.md has no section that begins with '## Unreleased'")
    rest = changelog[heading.end() :]
    if not rest.partition("\n## ")[0].strip():
        raise ValueError("CHANGELOG.md: nothing is unreleased")
    return f"{changelog[: heading.start()]}## Unreleased\n\n## {version} ({day})\n{rest}"


def with_base(dockerfile: str, base: str) -> str:
    """The Dockerfile that builds on this image unless told otherwise. Raises ValueError if it has no digest."""
    if not DIGEST.fullmatch(base):
        raise ValueError(f"--base {base or '(missing)'}: a release names its base image by digest: IMAGE@sha256:...")
    return re.sub(r"^ARG BASE=.*$", f"ARG BASE={base}", dockerfile, flags=re.MULTILINE)


def bill_of_materials(version: str, locked: str, files: Sequence[Path], base: str = "") -> dict[str, Any]:
    """What a release and its image are made of, as CycloneDX: the packages of a requirements file with hashes."""
    components: list[dict[str, Any]] = []
    for name, number, condition, hashes in _LOCKED_PACKAGE.findall(locked):
        components.append(
            {
                "type": "library",
                "name": name,
                "version": number,
                "purl": f"pkg:pypi/{name.lower()}@{number}",
                "hashes": [{"alg": "SHA-256", "content": one} for one in re.findall(r"[0-9a-f]{64}", hashes)],
                **({"properties": [{"name": "condition", "value": condition.strip()}]} if condition.strip() else {}),
            }
        )
    if base:
        image, _, digest = base.partition("@sha256:")
        found = [{"alg": "SHA-256", "content": digest}]
        components.append({"type": "container", "name": image, "version": f"sha256:{digest}", "hashes": found})
    built = [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()} for path in files]
    itself = {"type": "application", "name": "fairlead", "version": version, "hashes": built}
    document = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
    return {**document, "metadata": {"component": itself}, "components": components}


def build(target: Path) -> list[Path]:
    shutil.rmtree(target, ignore_errors=True)
    run([sys.executable, "-m", "build", "--quiet", "--outdir", str(target), str(HOUSE)])
    return sorted(target.iterdir())


def check(package: Path, version: str, scratch: Path) -> None:
    """Install one package in an empty environment and use it there."""
    shutil.rmtree(scratch, ignore_errors=True)
    venv.create(scratch, with_pip=True)
    binaries = scratch / "bin"
    run([str(binaries / "python"), "-m", "pip", "install", "--quiet", str(package)])
    fairlead = str(binaries / "fairlead")
    said = run([fairlead, "--version"], cwd=scratch)
    assert said.strip() == f"fairlead {version}", said
    assert "kind: ClusterRole" in run([fairlead, "roles", "second"], cwd=scratch)
    run([fairlead, "demo"], cwd=scratch)
    print(f"{package.name}: installed, and works")


def run(command: list[str], cwd: Path = HOUSE) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?")
    parser.add_argument("--check", action="store_true", help="build and check what is there")
    parser.add_argument("--base", default="", help="the image that the version's image is built on, by digest")
    asked = parser.parse_args()
    if bool(asked.version) == asked.check:
        parser.error("either a version or --check")
    version, target = asked.version or current(), HOUSE / ("build/release" if asked.check else "dist")
    if not VERSION.fullmatch(version):
        parser.error(f"{version} is no version; for example 0.2.0 or 0.2.0rc1")
    if asked.version:
        try:
            dockerfile = with_base(DOCKERFILE.read_text(), asked.base)
            CHANGELOG.write_text(released(CHANGELOG.read_text(), version, datetime.date.today().isoformat()))
        except ValueError as error:
            sys.exit(str(error))
        DOCKERFILE.write_text(dockerfile)
        for path, pattern in PLACES.items():
            path.write_text(with_version(path.read_text(), pattern, version))
        run([sys.executable, "tools/deploy/generate.py"])
    packages = build(target)
    for package in packages:
        check(package, version, HOUSE / "build" / "release-venv")
    bill = bill_of_materials(version, LOCKED.read_text(), packages, asked.base)
    (target / f"fairlead-{version}.cdx.json").write_text(json.dumps(bill, indent=2) + "\n")
    print(f"{target} is ready. Next: commit, `git tag v{version}`, push both, and upload {target}.")


if __name__ == "__main__":
    main()
