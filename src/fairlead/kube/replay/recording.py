"""Recordings: small clusters and what a real scheduler decided in them, one JSON object a line, plain or gzipped.

Four formats are told apart line by line: decisions of kube-scheduler (`decisions`), decisions of Koordinator's
scheduler (`decisions` and `config`), rounds of Volcano (`steps` and `conf`), and stories of Volcano Jobs (`steps` and
`namespace`). A file that cannot be used is a ScenarioError that names
the file and the line.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from fairlead.core.model.pod import compile_pod
from fairlead.core.model.shape import Shapes
from fairlead.errors import ScenarioError
from fairlead.kube.replay.wellformed import (
    complaint_about,
    complaint_about_koordinator,
    complaint_about_round,
    complaint_about_story,
)

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_GZIP_MAGIC = b"\x1f\x8b"


class Form(Enum):
    KUBE = "kube-scheduler"
    KOORDINATOR = "Koordinator"
    VOLCANO = "Volcano"
    STORY = "Volcano Jobs"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One line of a recording."""

    file: str
    line: int
    form: Form
    seed: Any
    family: str
    doc: Doc


_NEEDED = {
    Form.KUBE: ("nodes", "existing"),
    Form.KOORDINATOR: ("nodes", "existing", "objects"),
    Form.VOLCANO: ("nodes", "pods", "conf", "after"),
    Form.STORY: ("namespace",),
}
_COMPLAINTS = {
    Form.KUBE: complaint_about,
    Form.KOORDINATOR: complaint_about_koordinator,
    Form.VOLCANO: complaint_about_round,
    Form.STORY: complaint_about_story,
}


def _form_of(doc: Doc) -> Form | None:
    if "decisions" in doc:
        return Form.KOORDINATOR if "config" in doc else Form.KUBE
    if "steps" not in doc:
        return None
    return Form.VOLCANO if "conf" in doc or "nodes" in doc else Form.STORY


def scenarios_in(path: Path) -> Iterator[Scenario]:
    for number, text in enumerate(_lines(path), start=1):
        if text.strip():
            yield _scenario(path, number, text)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as raw:
            is_gzip = raw.read(2) == _GZIP_MAGIC
        with gzip.open(path) if is_gzip else path.open("rb") as lines:
            yield from lines
    except (OSError, EOFError, zlib.error) as error:
        raise ScenarioError(f"{path}: cannot be read: {error}") from error


def _scenario(path: Path, number: int, text: bytes) -> Scenario:
    try:
        doc = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ScenarioError(f"{path}:{number}: not JSON: {error}") from error
    if not isinstance(doc, dict):
        raise ScenarioError(f"{path}:{number}: not an object")
    form = _form_of(doc)
    if form is None:
        raise ScenarioError(f"{path}:{number}: neither 'decisions' (kube-scheduler) nor 'steps' (Volcano) is there")
    for needed in _NEEDED[form]:
        if needed not in doc:
            raise ScenarioError(f"{path}:{number}: the field '{needed}' is missing")
    if complaint := _COMPLAINTS[form](doc):
        raise ScenarioError(f"{path}:{number}: {complaint}")
    return Scenario(str(path), number, form, doc.get("seed"), str(doc.get("family", "")), doc)


def why_left_out(scenario: Scenario, gang_profiles: Collection[str], *, extenders: bool) -> str:
    """Why a decision that `fairlead record` wrote cannot be made again; empty if it can. `gang_profiles` are the
    configuration's schedulers that place groups as wholes, `extenders` whether the configuration names extenders."""
    if not scenario.doc.get("recorded"):
        return ""
    (decision,) = scenario.doc["decisions"]
    pod = compile_pod(decision["pod"], Shapes())
    if pod.group_ref is not None and pod.scheduler_name in gang_profiles:
        return "pods of a group are placed together, and a recording has decisions about single pods"
    if pod.resource_claims and "allocations" not in decision:
        return "resource claims are not part of a recording"
    if extenders and "extenders" not in decision and scenario.doc.get("by") != "fairlead":
        return "the configuration has extenders, whose answers are known only of fairlead's own decisions"
    return ""
