"""Somebody who does what an answer prints: lines are read as they stand, and what is not understood fails.

what would help deployment/w, each tried:
  with 3 instead of 4 pods                         a Suggestion: what it says, and the steps below it
    kubectl scale deployment/w --replicas=3        a command, carried out on the cluster
    in the file, job/w: {"spec":...}               a change of the file, which is applied at the end
"""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from fairlead.assembly.applying import patch_of_apply
from fairlead.cluster.store.schema import is_custom
from fairlead.core.engine.what_if.node_shapes import HOSTNAME
from fairlead.core.engine.what_if.sources import target_of
from fairlead.core.model.flow import Doc, PatchType, Verb, Write
from fairlead.testing import Harness, node

_NODES = re.compile(r"  with (\d+) more nodes? like (\S+) \(")
_END = re.compile(r"  when (?:(\w+) |the group |the (\w+) )?(?:default/)?([\w.-]+) has ended")
_LAST = "kubectl.kubernetes.io/last-applied-configuration"
_TYPES = {"strategic": PatchType.STRATEGIC, "merge": PatchType.MERGE}


@dataclass
class Suggestion:
    says: str
    steps: list[str] = field(default_factory=list)

    @property
    def pods(self) -> int | None:
        """How many pods are left, if it is about that."""
        found = re.match(r"  with (\d+) instead of \d+ pods", self.says)
        return None if found is None else int(found[1])


def printed(show: Callable[..., None], *about: Any) -> list[str]:
    """The lines that a function of `cli/what_if/text.py` prints."""
    out = io.StringIO()
    show(Console(file=out, width=100_000, markup=False, highlight=False, soft_wrap=True), *about)
    return out.getvalue().splitlines()


def suggestions(lines: Sequence[str]) -> list[Suggestion]:
    """What is suggested below `what would help`."""
    starts = [at for at, line in enumerate(lines) if line.startswith("what would help") and line.endswith("tried:")]
    found: list[Suggestion] = []
    for line in lines[starts[0] + 1 :] if starts else ():
        if line.startswith("    "):
            found[-1].steps.append(line.strip())
        else:
            assert line.startswith("  "), f"not understood: {line!r}"
            found.append(Suggestion(line))
    return found


class Follower:
    """Has a cluster and a file. `kubectl apply` notes what was applied, as kubectl does."""

    def __init__(self, cluster: Harness, file: Sequence[Doc]) -> None:
        self.cluster, self.file = cluster, [deepcopy(one) for one in file]
        self._applied: list[Doc] = []

    def apply(self) -> None:
        """`kubectl apply` of the file, unless it was applied as it is."""
        if self._applied == self.file:
            return
        self._applied = deepcopy(self.file)
        for doc in self.file:
            kind = self.cluster.kind(self._resource(doc))
            name, namespace = doc["metadata"]["name"], "default" if kind.namespaced else ""
            noted = json.dumps(doc)
            metadata = doc["metadata"]
            written = {
                **doc, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), _LAST: noted}},
            }  # fmt: skip
            live = self.cluster.store.get(kind, namespace, name)
            if live is None:
                self.cluster.perform(Write(Verb.CREATE, kind, namespace, name, body=written))
                continue
            patch = patch_of_apply(live, doc)
            patch["metadata"] = {**patch["metadata"], "annotations": {**(patch["metadata"].get("annotations") or {})}}
            patch["metadata"]["annotations"][_LAST] = noted
            dialect = PatchType.MERGE if is_custom(kind) else PatchType.STRATEGIC
            self.cluster.perform(Write(Verb.PATCH, kind, namespace, name, body=patch, patch_type=dialect))

    def follow(self, suggestion: Suggestion) -> None:
        """Do all of it, and apply the file if it was changed or never applied."""
        before = deepcopy(self.file)
        if not suggestion.steps:
            self._without_steps(suggestion.says)
        for step in suggestion.steps:
            if step.startswith("kubectl "):
                for one in step.split("; "):
                    self._kubectl(shlex.split(one)[1:])
                self.cluster.run(5)
            elif found := re.fullmatch(r"in the file, leave out (.+)", step):
                gone = found[1].split(", ")
                self.file = [doc for doc in self.file if target_of(doc) not in gone]
            elif found := re.fullmatch(r"from the file, again: (.+)", step):
                assert set(found[1].split(", ")) <= set(map(target_of, self.file)), step
                self._applied = []
            elif found := re.fullmatch(r"in the file, (.+?): (\{.*\})", step):
                for target in found[1].split(", "):
                    self._edit(target, json.loads(found[2]))
            else:
                raise AssertionError(f"not understood: {step!r}")
        if self.file != before or not self._applied:
            self.apply()

    def _without_steps(self, says: str) -> None:
        if found := _NODES.match(says):
            self.add_nodes(int(found[1]), found[2])
        elif found := _END.match(says):
            self._end(found[1] or found[2] or "group", found[3])
        else:
            raise AssertionError(f"nothing says how: {says!r}")

    def add_nodes(self, count: int, like: str) -> None:
        example = self.cluster.node(like)
        for at in range(count):
            made = node(f"new-{at}").offers(example["status"]["allocatable"])
            labels = {key: value for key, value in example["metadata"]["labels"].items() if key != HOSTNAME}
            taints = example["spec"].get("taints")
            self.cluster.apply(made.labelled(labels).having(**({"taints": taints} if taints else {})))

    def _end(self, kind: str, name: str) -> None:
        if kind == "group":
            for one in self.cluster.list("pods"):
                if name in (one["metadata"].get("annotations") or {}).values():
                    self.cluster.delete("pod", one["metadata"]["name"])
            self.cluster.delete("podgroups.scheduling.volcano.sh", name)
        elif kind == "Job" and self.cluster.get("jobs.batch.volcano.sh", name) is not None:
            self.cluster.delete("jobs.batch.volcano.sh", name)
        elif self.cluster.get(kind if kind != "group" else "pod", name) is not None:
            self.cluster.delete(kind, name, propagation="Background")
        else:
            self.cluster.delete("pod", name)
        self.cluster.run(5)

    def _kubectl(self, words: list[str]) -> None:
        verb, *rest = words
        options = {"-n": "default", "-p": ""}
        for flag in options:
            if flag in rest:
                at = rest.index(flag)
                options[flag] = rest[at + 1]
                del rest[at : at + 2]
        flags = dict(one.removeprefix("--").partition("=")[::2] for one in rest if one.startswith("--"))
        named = [one for one in rest if not one.startswith("--")]
        if verb == "label":
            assert (named[0], "overwrite" in flags) == ("nodes", True), words
            key, _, value = named[-1].partition("=")
            for name in named[1:-1]:
                self.cluster.patch("node", name, {"metadata": {"labels": {key: value}}})
            return
        targets = [one.split("/") for one in named] if "/" in named[0] else [[named[0], name] for name in named[1:]]
        for kind_name, name in targets:
            kind = self.cluster.kind(kind_name)
            where = options["-n"] if kind.namespaced else ""
            if verb == "delete":
                self.cluster.delete(kind, name, namespace=where, propagation="Background")
            elif verb == "scale":
                self.cluster.patch(kind, name, {"spec": {"replicas": int(flags["replicas"])}}, namespace=where)
            elif verb == "patch":
                body, dialect = json.loads(options["-p"]), _TYPES[flags["type"]]
                self.cluster.perform(Write(Verb.PATCH, kind, where, name, body=body, patch_type=dialect))
            else:
                raise AssertionError(f"not understood: kubectl {verb}")

    def _edit(self, target: str, patch: Doc) -> None:
        found = [at for at, doc in enumerate(self.file) if target_of(doc) == target]
        assert len(found) == 1, f"{target} is not in the file"
        self.file[found[0]] = edited(self.file[found[0]], patch)

    @staticmethod
    def _resource(doc: Doc) -> str:
        api = doc["apiVersion"].partition("/")
        return f"{doc['kind'].lower()}.{api[0]}" if api[1] and "." in api[0] else doc["kind"].lower()


def edited(document: Any, patch: Any) -> Any:
    """As a person edits a file: what has a name is looked for by its name."""
    if (
        isinstance(document, list)
        and isinstance(patch, list)
        and all("name" in one for one in patch if isinstance(one, dict))
    ):
        changed = {one["name"]: one for one in patch if isinstance(one, dict)}
        if changed and {one.get("name") for one in document} >= changed.keys():
            return [edited(one, changed.get(one["name"], {})) for one in document]
    if not isinstance(patch, dict) or not isinstance(document, dict):
        return patch
    merged = {**document, **{key: edited(document.get(key), value) for key, value in patch.items()}}
    return {key: value for key, value in merged.items() if value is not None}
