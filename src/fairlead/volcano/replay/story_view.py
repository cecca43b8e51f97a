"""What stands in the API after a step of a story, in the form in which stories are recorded.

What differs from run to run has a token in its place: `{uid:Kind/name}` for a uid, `{random}` for generated words,
`{minute1}` for the times in names of cron runs, `{time}` and "set" for times. Recorded and own states are brought into
one form, with what agreement does not cover left out, so that they can be compared by equality.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from fairlead.core.model import kinds as k
from fairlead.volcano.jobs.job_pods import OUT_OF_SYNC
from fairlead.volcano.kinds import (
    GROUP_ANNOTATION,
    VC_CRON_JOB,
    VC_JOB,
    VC_JOB_FLOW,
    VC_JOB_TEMPLATE,
    VC_POD_GROUP,
    VC_QUEUE,
)
from fairlead.volcano.replay.story_world import STORY_KINDS, StoryWorld

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_ROLES = {"not-ready", "unreachable"}
_OWN_WORD = re.compile(r"-(?:pvc-)?([bcdfghjklmnpqrstvwxz2456789]{12})\b")
_MINUTE = re.compile(r"-(2945\d{4})\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)")
_SHOWN = {
    "services": (k.SERVICE, ("spec",)), "networkpolicies": (k.NETWORK_POLICY, ("spec",)),
    "pvcs": (k.PERSISTENT_VOLUME_CLAIM, ("spec",)), "configmaps": (k.CONFIG_MAP, ("data",)),
}  # fmt: skip


class StoryView:
    """Looks at a StoryWorld; remembers what it has shown, because states list what is new since the last look."""

    def __init__(self, world: StoryWorld) -> None:
        self._world = world
        self._tokens: dict[str, str] = {}
        self._births: dict[tuple[str, str], list[str]] = {}
        self._generated: dict[str, str] = {}
        self._specs: dict[str, Any] = {}
        self._shown_events: dict[str, int] = {}
        self._minutes: dict[str, str] = {}
        self._words: dict[str, int] = {}

    # ---- tokens ----

    def learn(self) -> None:
        """Give every object's uid its token, in the order of creation."""
        for name, kind in STORY_KINDS.items():
            for doc in self._world.store.list(kind, self._world.place_of(kind)):
                uid, own = doc["metadata"]["uid"], doc["metadata"]["name"]
                if uid in self._tokens:
                    continue
                births = self._births.setdefault((name, own), [])
                births.append(uid)
                number = f"#{len(births)}" if len(births) > 1 else ""
                self._tokens[uid] = f"{{uid:{name}/{self._generic(doc)}{number}}}"

    def _generic(self, doc: Doc) -> str:
        """The name, with a number in place of what the server added to it."""
        metadata = doc["metadata"]
        prefix, name = metadata.get("generateName"), metadata["name"]
        if not prefix or not name.startswith(prefix):
            return str(name)
        if name not in self._generated:
            count = sum(known.startswith(prefix) for known in self._generated)
            self._generated[name] = f"{prefix}{{{count + 1}}}"
        return self._generated[name]

    def tokenised(self, value: Any) -> Any:
        text = orjson.dumps(value).decode()
        for uid, token in self._tokens.items():
            text = text.replace(uid, token)
        for name, token in self._generated.items():
            text = text.replace(name, token)
        for minute in _MINUTE.findall(text):
            self._minutes.setdefault(minute, "")
        for index, minute in enumerate(sorted(self._minutes), start=1):
            text = text.replace(minute, f"{{minute{index}}}")
        text = _OWN_WORD.sub(self._numbered, text)
        return orjson.loads(_TIME.sub("{time}", text))

    def _numbered(self, match: re.Match[str]) -> str:
        word = match.group(1)
        number = self._words.setdefault(word, len(self._words) + 1)
        return match.group(0).replace(word, f"{{random{number}}}")

    def own_name(self, recorded: str) -> str:
        """The name in this world of what a recording calls so."""
        own = {token: name for name, token in self._generated.items()}
        for index, minute in enumerate(sorted(self._minutes), start=1):
            recorded = recorded.replace(f"{{minute{index}}}", minute)
        return own.get(recorded, recorded)

    def births(self, kind: str, name: str) -> int:
        return len(self._births.get((kind, name), ()))

    # ---- the state ----

    def state(self) -> Doc:
        self.learn()
        raw = {
            "jobs": self._of(VC_JOB, self._job),
            "pods": self._of(k.POD, self._pod),
            "made": self._of(k.POD, self._made),
            "podgroups": self._of(VC_POD_GROUP, self._group),
            "secrets": self._of(k.SECRET, self._secret),
            "queues": self._queues(),
            "jobflows": self._of(VC_JOB_FLOW, lambda doc: {"status": doc.get("status") or {}}),
            "jobtemplates": self._of(VC_JOB_TEMPLATE, lambda doc: {"status": doc.get("status") or {}}),
            "cronjobs": self._of(VC_CRON_JOB, lambda doc: {"status": _without_uids(doc.get("status") or {})}),
            "events": self._events(),
        }
        for section, (kind, fields) in _SHOWN.items():
            raw[section] = self._of(kind, lambda doc, kind=kind, fields=fields: self._owned(kind, doc, fields))
        state: Doc = self.tokenised({section: shown for section, shown in raw.items() if shown})
        return state

    def _of(self, kind: Kind, show: Any) -> dict[str, Any]:
        docs = self._world.store.list(kind, self._world.place_of(kind))
        return {doc["metadata"]["name"]: show(doc) for doc in docs if not _is_the_servers(kind, doc)}

    def _queues(self) -> dict[str, Any]:
        shown = {}
        for doc in self._world.store.list(VC_QUEUE):
            if doc["metadata"]["name"].startswith(f"{self._world.namespace}-"):
                shown[doc["metadata"]["name"]] = {
                    "spec": doc.get("spec") or {},
                    "status": {"state": (doc.get("status") or {}).get("state")},
                    **_marks(doc, ("annotations",)),
                }
        return shown

    def _job(self, doc: Doc) -> Doc:
        shown: Doc = {"status": doc.get("status") or {}, **_marks(doc)}
        name = doc["metadata"]["name"]
        if self._specs.get(name) != doc["spec"]:
            self._specs[name] = doc["spec"]
            shown["spec"] = doc["spec"]
        return shown

    def _pod(self, doc: Doc) -> Doc:
        metadata = doc["metadata"]
        return {
            "phase": (doc.get("status") or {}).get("phase"),
            "terminating": bool(metadata.get("deletionTimestamp")),
            "outOfSync": (metadata.get("annotations") or {}).get(OUT_OF_SYNC) == "true",
            "group": (metadata.get("annotations") or {}).get(GROUP_ANNOTATION),
            "try": self.births("Pod", metadata["name"]),
        }

    def _made(self, doc: Doc) -> Doc:
        hidden = ("nodeName", "priority", "serviceAccountName", "serviceAccount")
        spec = {name: value for name, value in doc["spec"].items() if name not in hidden}
        tolerations = [one for one in spec.get("tolerations") or () if not _is_default(one)]
        spec.pop("tolerations", None)
        if tolerations:
            spec["tolerations"] = tolerations
        return {**_marks(doc), "spec": spec, "try": self.births("Pod", doc["metadata"]["name"])}

    def _group(self, doc: Doc) -> Doc:
        births = self.births("PodGroup", doc["metadata"]["name"])
        return {**_marks(doc), "spec": doc.get("spec") or {}, "try": births}

    def _owned(self, kind: Kind, doc: Doc, fields: Iterable[str]) -> Doc:
        shown = {field: doc[field] for field in fields if doc.get(field)}
        return {**_marks(doc), **shown, "try": self.births(kind.kind, doc["metadata"]["name"])}

    def _secret(self, doc: Doc) -> Doc:
        data = {name: b64decode(value).decode() for name, value in (doc.get("data") or {}).items()}
        return {**self._owned(k.SECRET, doc, ()), "type": doc.get("type"), "data": data}

    def _events(self) -> list[list[str]]:
        """Those that are new, or were counted up, since the last look."""
        shown = []
        places = {self._world.namespace, "default"}
        for doc in self._world.store.list(k.EVENT):
            count, uid = int(doc.get("count") or 1), doc["metadata"]["uid"]
            if doc["metadata"]["namespace"] not in places or self._shown_events.get(uid, 0) >= count:
                continue
            self._shown_events[uid] = count
            about = doc["involvedObject"]
            source = (doc.get("source") or {}).get("component", "")
            if source == "vc-controller-manager":
                shown.append([about["kind"], about["name"], doc["type"], doc["reason"], doc["message"], source])
        return shown


def _marks(doc: Doc, fields: Iterable[str] = ("labels", "annotations", "ownerReferences")) -> Doc:
    shown: Doc = {}
    for field in fields:
        value = doc["metadata"].get(field)
        if value:
            shown[field] = value
    if shown.get("ownerReferences"):
        shown["ownerReferences"] = [
            {name: part for name, part in one.items() if name != "uid"} for one in shown["ownerReferences"]
        ]
    return shown


def _is_the_servers(kind: Kind, doc: Doc) -> bool:
    return kind is k.CONFIG_MAP and doc["metadata"]["name"] == "kube-root-ca.crt"


def _is_default(toleration: Mapping[str, Any]) -> bool:
    return toleration.get("key", "").rpartition("/")[2] in _ROLES and toleration.get("tolerationSeconds") == 300


def _without_uids(status: Doc) -> Doc:
    active = [
        {name: part for name, part in one.items() if name not in ("uid", "resourceVersion")}
        for one in status.get("active") or ()
    ]
    return {**status, **({"active": active} if active else {})}
