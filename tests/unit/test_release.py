"""The parts of a release that need no build: versions and the changelog."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from fairlead import __version__

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "release" / "release.py"


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_place_of_the_version_is_found(release: ModuleType) -> None:
    assert release.current() == __version__
    for path, pattern in release.PLACES.items():
        changed = release.with_version(path.read_text(), pattern, "9.9.9rc1")
        assert "9.9.9rc1" in changed
        assert release.with_version(changed, pattern, __version__) == path.read_text()


def test_what_was_unreleased_belongs_to_the_version(release: ModuleType) -> None:
    before = "# Changelog\n\n## Unreleased (0.2.0)\n\n- more\n\n## 0.1.0 (2026-01-01)\n\n- first\n"
    after = release.released(before, "0.2.0", "2026-11-16")
    assert after == (
        "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-11-16)\n\n- more\n\n## 0.1.0 (2026-01-01)\n\n- first\n"
    )
    with pytest.raises(ValueError, match="nothing is unreleased"):
        release.released(after, "0.3.0", "2026-11-17")


def test_a_release_refuses_a_base_image_without_a_digest(release: ModuleType) -> None:
    dockerfile = release.DOCKERFILE.read_text()
    for base in ("", "python:3.13-slim", "python@sha256:abc"):
        with pytest.raises(ValueError, match="by digest"):
            release.with_base(dockerfile, base)
    base = f"python:3.13-slim@sha256:{'0' * 64}"
    assert f"ARG BASE={base}\n" in release.with_base(dockerfile, base)


def test_the_list_of_packages_of_a_release_has_all_with_hashes(release: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / "fairlead.whl"
    wheel.write_bytes(b"wheel")
    locked = release.LOCKED.read_text()
    bill = release.bill_of_materials("0.2.0", locked, [wheel], f"python:3.13-slim@sha256:{'0' * 64}")
    *packages, base = bill["components"]
    assert len(packages) == len(re.findall(r"^[\w.-]+(?:\[.*\])?==", locked, re.MULTILINE)) >= 30
    assert {one["name"] for one in packages} >= {"aiohttp", "numpy", "google-re2"}
    assert sum(len(one["hashes"]) for one in packages) == locked.count("--hash=sha256:")
    assert base["hashes"] == [{"alg": "SHA-256", "content": "0" * 64}]
    assert len(bill["metadata"]["component"]["hashes"]) == 1
