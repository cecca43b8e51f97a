"""When a step of a story agrees: what is compared of the recorded and the own state, and what is left to chance."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import orjson

from fairlead.controllers.volcano.phases import PENDING, RESTARTING

if TYPE_CHECKING:
    from fairlead.errors import ApiError
    from fairlead.model.flow import Doc

Difference = tuple[str, Any, Any]
"""A field, what was recorded, and what we have."""

_SECTIONS = (
    "services", "configmaps", "secrets", "networkpolicies", "pvcs", "queues", "jobtemplates", "cronjobs",
)  # fmt: skip
_EVENTS = frozenset({
    "CommandIssued", "ExecuteAction", "PluginError", "PVCError", "PodGroupError", "JobStatusError", "FailedCreate",
    "FailedDelete", "Created", "SuccessfulCreate", "SawCompletedJob", "ForbidConcurrent", "ReplaceConcurrent",
    "SuccessfulDelete", "CloseQueue", "TooManyMissedTimes",
})  # fmt: skip
_ANY_ORDER = ("env", "ports", "volumes", "volumeMounts")
_ACCOUNT = ("serviceAccount", "serviceAccountName")
"""The recorded API server gave pods no account."""
_NUMBERED = re.compile(r"\{random\d*\}")
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_DELAYED = re.compile(r"^Execute action \w+ after ")
_HASH = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{8,10}(?=-\{|\}|$)")


def same_refusal(recorded: Doc, error: ApiError) -> bool:
    """Code and message; the words in brackets come in any order."""
    return bool(recorded["code"] == error.code) and _words(recorded["message"]) == _words(error.message)


def _words(message: str) -> str:
    def in_order(match: re.Match[str]) -> str:
        return "[" + " ".join(sorted(match.group(0)[1:-1].replace(",", " ").split())) + "]"

    return _BRACKETS.sub(in_order, message)


def same_stored(recorded: Doc, own: Doc) -> Difference | None:
    """The API's answer: labels, annotations and spec."""
    metadata = own.get("metadata") or {}
    shown = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
    spec = {name: value for name, value in (own.get("spec") or {}).items() if name not in _ACCOUNT}
    mine = {"metadata": shown, "spec": spec}
    theirs = {"metadata": recorded.get("metadata") or {}, "spec": recorded.get("spec") or {}}
    return None if _plain(theirs) == _plain(mine) else ("stored", theirs, mine)


def _plain(value: Any) -> Any:
    """Without the numbers of random words, and with lists sorted whose order means nothing."""
    if isinstance(value, dict):
        made: dict[str, Any] = {}
        for name, part in value.items():
            in_any_order = name in _ANY_ORDER and isinstance(part, list)
            plain = _unnumbered(name)
            while plain in made:
                plain += "'"  # another random name
            made[plain] = sorted(map(_plain, part), key=_sorting) if in_any_order else _plain(part)
        return made
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return _unnumbered(value) if isinstance(value, str) else value


def _unnumbered(text: str) -> str:
    """Without the numbers of random words and the hashes of ReplicaSets."""
    return _HASH.sub("-{hash}", _NUMBERED.sub("{random}", text))


def _sorting(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


class Agreement:
    """Compares states step by step; whether a pod is a new one depends on the step before."""

    def __init__(self) -> None:
        self._tries: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._killed: set[str] = set()
        self._swung: set[str] = set()
        self._retries: dict[str, int] = {}
        self._restarted: set[str] = set()
        self._warned: tuple[set[tuple[str, ...]], set[tuple[str, ...]]] = (set(), set())

    def differences(self, recorded: Doc, own: Doc) -> Iterator[Difference]:
        recorded = _plain(recorded)
        own = _plain(own)
        yield from self._jobs(recorded, own)
        yield from self._pods(recorded.get("pods") or {}, own.get("pods") or {})
        yield from self._made_pods(recorded.get("made") or {}, own.get("made") or {})
        yield from self._groups(recorded.get("podgroups") or {}, own.get("podgroups") or {})
        for section in _SECTIONS:
            theirs, mine = _comparable(section, recorded), _comparable(section, own)
            yield from _unequal(section, theirs, mine)
        yield from _unequal("jobflows", *(_flows(state.get("jobflows") or {}) for state in (recorded, own)))
        yield from self._events(recorded, own)

    def _jobs(self, recorded: Doc, own: Doc) -> Iterator[Difference]:
        theirs, mine = recorded.get("jobs") or {}, own.get("jobs") or {}
        for name, passed in (recorded.get("phases") or {}).items():
            if {"Pending", "Running"} <= set(passed):
                self._swung.add(name)
        yield from _unequal("jobs", sorted(theirs), sorted(mine))
        for name in theirs.keys() & mine.keys():
            one, other = (self._status(name, job.get("status") or {}) for job in (theirs[name], mine[name]))
            if self._has_just_restarted(name, one, (recorded.get("phases") or {}).get(name, [])):
                one.pop("controlledResources", None)
                other.pop("controlledResources", None)
            yield from _unequal(f"jobs.{name}.status", one, other)
            for field in ("labels", "annotations", "ownerReferences", "spec"):
                if field != "spec" or field in theirs[name]:
                    yield from _unequal(f"jobs.{name}.{field}", theirs[name].get(field), mine[name].get(field))

    def _has_just_restarted(self, name: str, status: Doc, passed: list[str]) -> bool:
        """Until the restarted Job runs: its status is written again when its pods change, and not before."""
        retries, before = status.get("retryCount", 0), self._retries.get(name, 0)
        self._retries[name] = retries
        if retries != before or RESTARTING in passed:
            self._restarted.add(name)
        elif status["state"]["phase"] != PENDING:
            self._restarted.discard(name)
        return name in self._restarted

    def _status(self, name: str, status: Doc) -> Doc:
        shown = {field: value for field, value in status.items() if field != "runningDuration"}
        shown["state"] = {"phase": (status.get("state") or {}).get("phase")}
        conditions = [one if isinstance(one, str) else one["status"] for one in status.get("conditions") or ()]
        if len({"Pending", "Running"} & set(conditions)) == 2 and name in self._swung:
            conditions = [*sorted(conditions[:-1]), *conditions[-1:]]
        shown["conditions"] = conditions
        if shown.get("version") or name in self._killed:
            self._killed.add(name)
            shown.pop("version", None)
        return shown

    def _pods(self, theirs: Doc, mine: Doc) -> Iterator[Difference]:
        shown = []
        for state, tries in zip((theirs, mine), self._tries, strict=True):
            shown.append({
                name: (pod["phase"], bool(pod.get("terminating")), pod["try"] > tries.get(name, 0))
                for name, pod in state.items()
            })  # fmt: skip
            tries |= {name: pod["try"] for name, pod in state.items()}
        yield from _unequal("pods", *shown)

    def _made_pods(self, theirs: Doc, mine: Doc) -> Iterator[Difference]:
        for name, pod in theirs.items():
            other = mine.get(name)
            if other is not None:
                yield from _unequal(f"made.{name}", self._pod(pod), self._pod(other))

    def _pod(self, pod: Doc) -> Doc:
        shown = {field: value for field, value in pod.items() if field not in ("finalizers", "try")}
        notes = dict(shown.get("annotations") or {})
        if int(notes.get("volcano.sh/job-version") or 0):
            notes.pop("volcano.sh/job-version")
        notes.pop("volcano.sh/controller-out-of-sync", None)
        if _has_rank(pod):
            notes.pop("hccl/rankIndex", None)
        if notes:
            shown["annotations"] = notes
        labels = dict(shown.get("labels") or {})
        if labels.pop("pod-template-hash", None):
            shown["labels"] = labels
        spec = dict(shown["spec"])
        if spec.get("initContainers"):
            spec["initContainers"] = [_without_chance(container) for container in spec["initContainers"]]
        return {**shown, "spec": spec}

    def _groups(self, theirs: Doc, mine: Doc) -> Iterator[Difference]:
        fields = ("spec", "labels", "annotations", "ownerReferences")
        one, other = (
            {name: {field: group.get(field) for field in fields} for name, group in state.items()}
            for state in (theirs, mine)
        )
        yield from _unequal("podgroups", one, other)

    def _events(self, recorded: Doc, own: Doc) -> Iterator[Difference]:
        """An error that is tried again is told again, at times that depend on the machine: the first time counts. That
        an action was put off is told late by the original, often a step later."""
        shown = []
        for state, warned in zip((recorded, own), self._warned, strict=True):
            told = {_event(event) for event in state.get("events") or () if event[3] in _EVENTS}
            warned |= {event for event in told if _DELAYED.search(event[-1])}
            shown.append(sorted(told - warned))
            warned |= {event for event in told if event[2] == "Warning"}
        yield from _unequal("events", *shown)
        late = sorted(event for event in self._warned[0] - self._warned[1] if _DELAYED.search(event[-1]))
        if late:
            yield "events", late, []


def _has_rank(pod: Doc) -> bool:
    """Whether another plugin gives the pod a rank: which of the two hcclrank takes is chance."""
    containers = pod["spec"].get("containers") or ()
    return any(variable.get("name") == "RANK" for one in containers for variable in one.get("env") or ())


def _without_chance(container: Doc) -> Doc:
    """What waits for a master is added by one plugin; whether others, which come in any order, saw it is chance."""
    if container["name"] != "wait-for-master":
        return container
    return {name: value for name, value in container.items() if name not in ("env", "volumeMounts")}


def _event(event: list[str]) -> tuple[str, ...]:
    return tuple(event[:4]) + (() if event[3] == "FailedCreate" else (event[4],))


def _comparable(section: str, state: Doc) -> Doc:
    """Without the number of times that an object was made anew."""
    shown = {name: {k: v for k, v in one.items() if k != "try"} for name, one in (state.get(section) or {}).items()}
    if section == "cronjobs":
        for one in shown.values():
            one["status"] = {k: "set" if k.endswith("Time") else v for k, v in (one.get("status") or {}).items()}
    if section == "services":
        for one in shown.values():
            if (one.get("spec") or {}).get("clusterIP") != "None":
                one["spec"] = {k: v for k, v in one["spec"].items() if k not in ("clusterIP", "clusterIPs")}
    if section == "secrets":
        for one in shown.values():
            one["data"] = {key: _key(key, text) for key, text in (one.get("data") or {}).items()}
    return shown


def _key(name: str, text: str) -> str:
    """A generated key is a key, whichever."""
    if text.startswith(("-----BEGIN", "ssh-rsa", "<generated")):
        return "key"
    return text


def _flows(flows: Doc) -> Doc:
    shown = {}
    for name, flow in flows.items():
        status = dict(flow.get("status") or {})
        status["conditions"] = {
            job: {"phase": one.get("phase")} for job, one in (status.get("conditions") or {}).items()
        }  # fmt: skip
        # The end is told from a running time that the job may not have written yet.
        jobs = [{k: v for k, v in one.items() if k != "endTimestamp"} for one in status.get("jobStatusList") or ()]
        status["jobStatusList"] = sorted(jobs, key=lambda one: str(one["name"]))
        for field, value in status.items():
            if field.endswith("Jobs"):
                status[field] = sorted(value)
        shown[name] = _times_set(status)
    return shown


def _times_set(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: "set" if k.endswith("Timestamp") else _times_set(v) for k, v in value.items()}
    return [_times_set(part) for part in value] if isinstance(value, list) else value


def _unequal(field: str, recorded: Any, own: Any) -> Iterator[Difference]:
    if recorded != own:
        yield field, recorded, own
