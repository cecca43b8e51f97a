"""What stands beside the pods of a Volcano Job: objects of its plugins, and claims of its volumes.

Invariant: `status.controlledResources` names the plugins whose objects were made, so that they are made once and
deleted once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.controllers.volcano.job_plugins.catalogue import plugins_of
from fairlead.controllers.volcano.job_volumes import claim_writes
from fairlead.controllers.volcano.phases import PENDING, RESTARTING
from fairlead.controllers.writes import create
from fairlead.model.flow import Doc, Verb, Write

if TYPE_CHECKING:
    from fairlead.controllers.volcano.job_plugins.job_plugin import JobPlugin, PluginMeans
    from fairlead.controllers.volcano.phases import JobState
    from fairlead.model.flow import DocView


class JobSurroundings:
    def __init__(self, view: DocView, means: PluginMeans, plugins: Mapping[str, type[JobPlugin]]) -> None:
        self._view, self._means, self._known = view, means, plugins
        self._quirks = means.quirks
        self._refreshed: dict[tuple[str, str], Doc] = {}  # uid of a Job and object -> its spec when last refreshed

    def plugins(self, job: Doc) -> Iterator[JobPlugin]:
        return plugins_of(job, self._known, self._means)

    def refusal(self, job: Doc) -> str:
        """Why a plugin cannot serve the Job."""
        return next(filter(None, (plugin.refuses(job) for plugin in self.plugins(job))), "")

    def writes(self, job: Doc, state: JobState, controlled: dict[str, str]) -> list[Write]:
        """What a sync has to create or to bring up to date; notes in `controlled` what was created."""
        writes: list[Write] = []
        is_new = state.phase == PENDING
        told = {} if self._quirks.refused_pods_stop_status and self.refusal(job) else controlled
        for plugin in self.plugins(job):
            mark = f"plugin-{plugin.name}"
            if is_new and mark not in controlled:
                writes += [create(each.kind, each.doc) for each in plugin.objects(job)]
                if plugin.marks_job:
                    told[mark] = plugin.name
            elif self._follows_spec(state.phase):
                writes += self._refresh(job, plugin)
        if is_new:
            writes += claim_writes(self._view, job, controlled)
        return writes

    def _follows_spec(self, phase: str) -> bool:
        """Whether objects beside a Job in this phase are brought up to date."""
        if phase == RESTARTING:
            return self._quirks.restart_leaves_hosts
        return phase != PENDING or not self._quirks.hosts_stale_while_pending

    def _refresh(self, job: Doc, plugin: JobPlugin) -> Iterator[Write]:
        """What follows the spec, if the spec is not the one it was last made from."""
        for each in plugin.refreshed(job):
            name = each.doc["metadata"]["name"]
            memory = (job["metadata"]["uid"], f"{each.kind.plural}/{name}")
            if self._refreshed.get(memory) != each.doc:
                if memory not in self._refreshed:
                    yield create(each.kind, each.doc)  # it may be there already
                self._refreshed[memory] = each.doc
                namespace = job["metadata"]["namespace"]
                body = {field: value for field, value in each.doc.items() if field not in ("metadata",)}
                yield Write(Verb.PATCH, each.kind, namespace, name, body=body)

    def clear(self, job: Doc, controlled: dict[str, str]) -> list[Write]:
        """Delete what plugins made; takes it out of `controlled`."""
        writes: list[Write] = []
        for plugin in self.plugins(job):
            mark = f"plugin-{plugin.name}"
            if mark in controlled or not plugin.marks_job:
                controlled.pop(mark, None)
                for kind, name in plugin.names_beside(job):
                    self._refreshed.pop((job["metadata"]["uid"], f"{kind.plural}/{name}"), None)
                    writes.append(Write(Verb.DELETE, kind, job["metadata"]["namespace"], name))
        return writes
