"""What the real vcctl 1.15.1 printed for each of 132 commands, printed again by `fairlead vcctl`."""

from __future__ import annotations

import asyncio
import gzip
import re
import shlex
from pathlib import Path
from typing import Any

import orjson
import pytest

from fairlead.client.port import EVERYTHING, Page, Query
from fairlead.cluster.admission.chain import Admission
from fairlead.core.model import kinds as k
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import Kind
from fairlead.core.model.times import seconds_of
from fairlead.errors import AlreadyExists, NotFound
from fairlead.volcano.kinds import VC_JOB, VC_JOB_FLOW, VC_JOB_TEMPLATE, VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.vcctl.command import as_tool, run_vcctl
from fairlead.volcano.vcctl.work import VcFault

RECORDING = Path(__file__).parent / "data" / "volcano" / "vcctl.jsonl.gz"
KINDS = {
    "Job": VC_JOB, "Pod": k.POD, "PodGroup": VC_POD_GROUP, "JobFlow": VC_JOB_FLOW, "Event": k.EVENT,
    "JobTemplate": VC_JOB_TEMPLATE, "Queue": VC_QUEUE,
}  # fmt: skip


class RecordedView:
    """The objects of a recorded state, as admission reads them."""

    def __init__(self, objects: dict[str, list[Doc]]) -> None:
        self.docs = {KINDS[name]: list(docs) for name, docs in objects.items()}

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        for doc in self.docs.get(kind, ()):
            if (doc["metadata"].get("namespace", ""), doc["metadata"]["name"]) == (namespace, name):
                return doc
        return None

    def list(self, kind: Kind, namespace: str = "") -> list[Doc]:
        docs = self.docs.get(kind, [])
        return [doc for doc in docs if namespace in ("", doc["metadata"].get("namespace", ""))]


class RecordedCluster:
    """The same behind an API, with admission in front of it and no controllers behind."""

    def __init__(self, view: RecordedView) -> None:
        self._view = view
        self._docs = view.docs
        self._admission = Admission(view)
        self.get_now = view.get

    async def get(self, kind: Kind, namespace: str, name: str, *, subresource: str = "") -> Doc:
        found = self.get_now(kind, namespace, name)
        if found is None:
            raise NotFound(f'{kind.resource} "{name}" not found')
        return found

    async def list(self, kind: Kind, query: Query = EVERYTHING) -> Page:
        return Page(self._view.list(kind, query.namespace), "1")

    async def perform(self, write: Write) -> Doc:
        found = self.get_now(write.kind, write.namespace, write.name)
        if write.verb is Verb.CREATE:
            if found is not None:
                raise AlreadyExists(f'{write.kind.resource} "{write.name}" already exists')
            body = {**write.body, "metadata": {"name": "generated", **write.body["metadata"]}}
            self._docs.setdefault(write.kind, []).append(made := self._admission.create(write.kind, body))
            return made
        if found is None:
            raise NotFound(f'{write.kind.resource} "{write.name}" not found')
        if write.verb is Verb.DELETE:
            self._admission.delete(write.kind, write.name)
            self._docs[write.kind].remove(found)
            return found
        changed = {**found, "spec": {**found["spec"], **write.body["spec"]}}
        return self._admission.update(write.kind, changed, found)

    async def close(self) -> None:
        pass


def _recorded() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    lines = [orjson.loads(line) for line in gzip.decompress(RECORDING.read_bytes()).splitlines()]
    return {line["state"]: line["objects"] for line in lines if "objects" in line}, [
        line for line in lines if "command" in line
    ]


STATES, COMMANDS = _recorded()


def _normal(text: str) -> str:
    """Without ages, and with lines sorted that come in any order."""
    text = re.sub(r"(\d+[smhd])+", "AGE", text)
    text = re.sub(r"Go Version: .*", "Go Version:", text)
    return re.sub(r" +\n", "\n", text)


def _printed(line: dict[str, Any], cluster: RecordedCluster, where: Path) -> tuple[int, str, str]:
    out: list[str] = []
    err: list[str] = []
    words = shlex.split(line["command"].replace("{dir}", str(where)))[1:]
    now = seconds_of(line["at"])

    def connect(values: Any) -> RecordedCluster:
        if values.get("kubeconfig"):
            raise VcFault(f"stat {values['kubeconfig']}: no such file or directory")
        return cluster

    done = run_vcctl(words, connect, out=out.append, err=err.append, now=lambda: now)  # type: ignore[arg-type]
    code = asyncio.run(done)
    return code, "".join(f"{text}\n" for text in out), "".join(f"{text}\n" for text in err)


STILL = [line for line in COMMANDS if line["state"] in STATES]
CHANGING = [line for line in COMMANDS if line["state"] not in STATES]


@pytest.mark.parametrize("line", STILL, ids=lambda line: line["command"])
def test_a_command_prints_what_vcctl_printed(line: dict[str, Any], tmp_path: Path) -> None:
    code, out, err = _printed(line, RecordedCluster(RecordedView(STATES[line["state"]])), tmp_path)
    assert (code, _normal(out), err) == (line["exit"], _normal(line["stdout"]), line["stderr"])


def test_commands_that_change_something_answer_as_vcctl_did(tmp_path: Path) -> None:
    """One after the other; lists are left out, because they show what controllers did in between."""
    task = {"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "m", "image": "x"}]}}}
    flow = {"flows": [{"name": "a"}], "jobRetainPolicy": "retain"}
    for file, kind, name, spec in (
        ("job.yaml", VC_JOB, "fromfile", {"tasks": [task]}),
        ("jt.yaml", VC_JOB_TEMPLATE, "fromfile", {"tasks": [task]}),
        ("jf.yaml", VC_JOB_FLOW, "second", flow),
    ):
        metadata = {"name": name, "namespace": "cli"}
        doc = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
        (tmp_path / file).write_bytes(orjson.dumps(doc))
    cluster = RecordedCluster(RecordedView(STATES["some"]))
    wrong = []
    for line in CHANGING:
        code, out, _ = _printed(line, cluster, tmp_path)
        if (
            " list" not in line["command"]
            and " get" not in line["command"]
            and (code, out) != (line["exit"], line["stdout"])
        ):
            wrong.append((line["command"], out, line["stdout"]))
    assert wrong == []


@pytest.mark.parametrize(
    ("tool", "words", "meant"),
    [
        ("vsub", ["-n", "x", "-N", "ns"], ("job", "run", "--name", "x", "--namespace", "ns")),
        ("vqueues", [], ("queue", "list")),
        ("vcancel", ["-n", "x"], ("job", "delete", "--name", "x")),
    ],
)
def test_a_short_tool_is_a_command_with_its_own_letters(tool: str, words: list[str], meant: tuple[str, ...]) -> None:
    assert as_tool(tool, words) == meant
