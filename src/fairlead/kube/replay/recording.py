"""Recordings: small clusters and what a real scheduler decided in them, one JSON object a line, plain or gzipped.

Families bring the forms of recordings, which are distinguished line by line. A file that cannot be used is a
ScenarioError that names the file and the line.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from fairlead.core.family import brought
from fairlead.core.model.pod import compile_pod
from fairlead.core.model.shape import Shapes
from fairlead.errors import ScenarioError

if TYPE_CHECKING:
    from fairlead.config.setup import Setup
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Doc
    from fairlead.kube.replay.recorded_cluster import RecordedCluster
    from fairlead.kube.replay.replay import DecisionDifference

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class ReplayMeans:
    """What replays are given from above the families: profiles and clusters."""

    profiles: Callable[[Scenario], Sequence[Profile]]
    """The profiles of the configuration that the user names, for the scheduler that was recorded."""
    recorded_profile: Callable[[Doc, frozenset[str], Sequence[object]], Profile]
    """The profile of a recorded configuration, with the feature gates that were on and settings of the family."""
    cluster: Callable[[Setup, Sequence[str], Sequence[object]], RecordedCluster]
    """What a cluster of one setup is made of, with controllers of these names and these settings of families, for a
    replay that goes on in a whole cluster."""


@dataclass(frozen=True, slots=True)
class RecordedForm:
    """One form of recordings, as a family brings it (`Family.replay`).

    A line is of this form if it has the field `mark`. Where several forms have the same one, it is that of which the
    line has one of the fields `recognised_by`, else the one without any.
    """

    name: str
    mark: str
    needed: Sequence[str]
    """Fields without which a line cannot be replayed."""
    complaint: Callable[[Doc], str]
    """The first thing that is wrong with a line; empty if nothing is."""
    decisions: Callable[[Scenario, ReplayMeans], Iterator[list[DecisionDifference]]]
    """Decides again; the differences of each decision."""
    recognised_by: Sequence[str] = ()
    left_out: str = ""
    """Why a replay may end before the last entry of `mark`, if it may."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One line of a recording."""

    file: str
    line: int
    form: RecordedForm
    seed: Any
    family: str
    doc: Doc


@cache
def _forms() -> tuple[RecordedForm, ...]:
    return tuple(form for forms in brought("replay") for form in forms)


def _form_of(doc: Doc) -> RecordedForm | None:
    marked = [form for form in _forms() if form.mark in doc]
    matching = (form for form in marked if any(name in doc for name in form.recognised_by))
    return next(matching, next((form for form in marked if not form.recognised_by), None))


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
        marks: dict[str, str] = {}
        for one in _forms():
            marks.setdefault(one.mark, one.name)
        words = " nor ".join(f"'{mark}' ({name})" for mark, name in marks.items())
        raise ScenarioError(f"{path}:{number}: neither {words} is there")
    for needed in form.needed:
        if needed not in doc:
            raise ScenarioError(f"{path}:{number}: the field '{needed}' is missing")
    if complaint := form.complaint(doc):
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
