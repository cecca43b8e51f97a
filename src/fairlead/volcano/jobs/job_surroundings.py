"""What stands beside the pods of a Volcano Job: objects of its plugins, and claims of its volumes.

    wanted ─create▶ sent ─reply▶ there ─▶ noted in the status ─kill▶ deletion sent ─reply▶ gone

`status.controlledResources` names what was made, so that it is made once and deleted once. A note is added only when
the replies say that all of it is there, and what could not be deleted is deleted with the next kill: the status must
not claim what a refused write did not do.

Invariant: `replied` gets every answer to a write that was returned here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.writes import create
from fairlead.core.model.flow import Doc, Reply, Verb, Write
from fairlead.core.model.kinds import PERSISTENT_VOLUME_CLAIM, Kind
from fairlead.errors import AlreadyExists, NotFound
from fairlead.volcano.jobs.job_plugins.catalogue import plugins_of
from fairlead.volcano.jobs.job_volumes import CONTROLLED, wanted_claims
from fairlead.volcano.jobs.phases import PENDING, RESTARTING

if TYPE_CHECKING:
    from fairlead.core.model.flow import DocView
    from fairlead.volcano.jobs.job_plugins.job_plugin import Beside, JobPlugin, PluginMeans
    from fairlead.volcano.jobs.phases import JobState

_Place = tuple[Kind, str]


@dataclass(slots=True)
class _Known:
    """What is known of the objects beside one Job."""

    wanted: dict[str, list[Beside]] = field(default_factory=dict)
    """Objects of plugins that the status does not note yet; kept, because keys are made only once."""
    there: set[_Place] = field(default_factory=set)
    written: dict[_Place, Doc] = field(default_factory=dict)
    """What follows the spec, as it was last written."""
    absent: set[_Place] = field(default_factory=set)
    """What was deleted or not found: it is created, where else it would be patched."""
    leaving: dict[_Place, Write] = field(default_factory=dict)
    """Deletions that are not answered yet, or were refused."""


class JobSurroundings:
    def __init__(self, view: DocView, means: PluginMeans, plugins: Mapping[str, type[JobPlugin]]) -> None:
        self._view, self._means, self._plugins = view, means, plugins
        self._quirks = means.quirks
        self._known: dict[str, _Known] = {}  # by the Job's uid

    def forget(self, uid: str) -> None:
        """A Job is gone."""
        self._known.pop(uid, None)

    def plugins(self, job: Doc) -> Iterator[JobPlugin]:
        return plugins_of(job, self._plugins, self._means)

    def refusal(self, job: Doc) -> str:
        """Why a plugin cannot serve the Job."""
        return next(filter(None, (plugin.outgrows(job) or plugin.refuses(job) for plugin in self.plugins(job))), "")

    def writes(self, job: Doc, state: JobState, controlled: dict[str, str]) -> list[Write]:
        """What a sync has to create or to bring up to date for plugins; notes in `controlled` what is there."""
        if not job["spec"].get("plugins"):
            return []
        writes: list[Write] = []
        is_new = state.phase == PENDING
        marked = {} if self._quirks.refused_pods_stop_status and self.refusal(job) else controlled
        known = self._of(job)
        for plugin in self.plugins(job):
            mark = f"plugin-{plugin.name}"
            if plugin.outgrows(job):
                continue
            if is_new and mark not in controlled:
                missing = list(self._creations(job, plugin, known))
                writes += missing
                if plugin.marks_job and not missing:
                    marked[mark] = plugin.name
                continue
            known.wanted.pop(plugin.name, None)
            if self._follows_spec(state.phase):
                writes += self._refresh(job, plugin, known)
        return writes

    def claims(self, job: Doc, controlled: dict[str, str]) -> list[Write]:
        """Creations of the claims that are missing; notes in `controlled` those that are there.
        Raises ClaimIsMissing."""
        if not job["spec"].get("volumes"):
            return []
        writes: list[Write] = []
        known = self._of(job)
        for name, claim in wanted_claims(self._view, job, controlled):
            if claim is None or (PERSISTENT_VOLUME_CLAIM, name) in known.there:
                controlled[CONTROLLED + name] = name
            else:
                writes.append(create(*claim))
        return writes

    def _of(self, job: Doc) -> _Known:
        uid = job["metadata"]["uid"]
        known = self._known.get(uid)
        if known is None:
            known = self._known[uid] = _Known()
        return known

    def _creations(self, job: Doc, plugin: JobPlugin, known: _Known) -> Iterator[Write]:
        wanted = known.wanted.get(plugin.name)
        if wanted is None:
            wanted = known.wanted[plugin.name] = list(plugin.objects(job))
        for each in wanted:
            place = _place(each)
            if place not in known.there:
                known.leaving.pop(place, None)
                yield create(each.kind, each.doc)

    def _follows_spec(self, phase: str) -> bool:
        """Whether objects beside a Job in this phase are brought up to date."""
        if phase == RESTARTING:
            return self._quirks.restart_leaves_hosts
        return phase != PENDING or not self._quirks.hosts_stale_while_pending

    def _refresh(self, job: Doc, plugin: JobPlugin, known: _Known) -> Iterator[Write]:
        """What follows the spec, if the spec is not the one it was last made from."""
        for each in plugin.refreshed(job):
            place = _place(each)
            if known.written.get(place) == each.doc:
                continue
            known.written[place] = each.doc
            if place in known.absent:
                yield create(each.kind, each.doc)
            else:
                body = {field: value for field, value in each.doc.items() if field not in ("metadata",)}
                yield Write(Verb.PATCH, each.kind, job["metadata"]["namespace"], place[1], body=body)

    def clear(self, job: Doc, controlled: dict[str, str]) -> list[Write]:
        """Delete what plugins made; takes it out of `controlled`."""
        known = self._of(job)
        for plugin in self.plugins(job):
            mark = f"plugin-{plugin.name}"
            if mark in controlled or plugin.name in known.wanted or not plugin.marks_job:
                controlled.pop(mark, None)
                known.wanted.pop(plugin.name, None)
                for place in plugin.names_beside(job):
                    known.there.discard(place)
                    known.written.pop(place, None)
                    known.absent.add(place)
                    kind, name = place
                    known.leaving[place] = Write(Verb.DELETE, kind, job["metadata"]["namespace"], name)
        return list(known.leaving.values())

    def replied(self, uid: str, reply: Reply) -> None:
        """Take in what became of a write, which may be about something else."""
        known, write, error = self._known.get(uid), reply.write, reply.error
        if known is None or write.subresource:
            return
        place = (write.kind, write.name)
        if write.verb is Verb.DELETE:
            if error is None or isinstance(error, NotFound):
                known.leaving.pop(place, None)
            return
        if write.verb is Verb.CREATE and (error is None or isinstance(error, AlreadyExists)):
            known.there.add(place)
            known.absent.discard(place)
        if error is None and write.verb is Verb.CREATE:
            known.written[place] = write.body
        elif error is not None:
            known.written.pop(place, None)
            if isinstance(error, NotFound):
                known.absent.add(place)


def _place(each: Beside) -> _Place:
    return each.kind, each.doc["metadata"]["name"]
