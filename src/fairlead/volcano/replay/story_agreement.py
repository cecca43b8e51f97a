"""When a step of a story agrees: what is compared of the recorded and the own state, and what is left to chance."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import orjson

from fairlead.volcano.jobs.phases import FINISHED, PENDING, RESTARTING, RUNNING

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.errors import ApiError

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
_TIMES = ("Timestamp", "createTime", "runningDuration")
_WAITS = "wait-for-master"
_ANY_ORDER = ("env", "ports", "volumes", "volumeMounts")
_ACCOUNT = ("serviceAccount", "serviceAccountName")
"""The recorded API server gave pods no account."""
_NUMBERED = re.compile(r"\{random\d*\}")
_VALID_WORDS = re.compile(r"(?<= are )\[[^\[\]]*\]")
_DELAYED = re.compile(r"^Execute action \w+ after ")
_HASH = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{8,10}(?=-\{|\}|$)")


def same_refusal(recorded: Doc, error: ApiError) -> bool:
    """Code and message; the valid words that a refused policy lists come in any order."""
    return bool(recorded["code"] == error.code) and _words(recorded["message"]) == _words(error.message)


def _words(message: str) -> str:
    def in_order(match: re.Match[str]) -> str:
        return "[" + " ".join(sorted(match.group(0)[1:-1].split())) + "]"

    return _VALID_WORDS.sub(in_order, message)


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
    """Compares states step by step; what is new, and what has just happened, depends on the step before."""

    def __init__(self) -> None:
        self._tries: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._killed: set[str] = set()
        self._passed: dict[str, list[str]] = {}  # Job -> the phases that it was seen in
        self._last: dict[str, Doc] = {}  # Job -> its recorded status
        self._restarted: set[str] = set()
        self._ended: set[str] = set()  # Jobs whose end has been shown before
        self._warned: tuple[set[tuple[str, ...]], set[tuple[str, ...]]] = (set(), set())

    def differences(self, recorded: Doc, own: Doc) -> Iterator[Difference]:
        recorded, own = _plain(recorded), _plain(own)
        _leave_out_moving(recorded, own)
        yield from self._jobs(recorded, own)
        yield from self._pods(recorded.get("pods") or {}, own.get("pods") or {})
        yield from self._made_pods(recorded.get("made") or {}, own.get("made") or {})
        yield from _unequal("podgroups", *(_groups(state.get("podgroups") or {}) for state in (recorded, own)))
        for section in _SECTIONS:
            theirs, mine = recorded.get(section) or {}, own.get(section) or {}
            yield from _unequal(section, _comparable(section, theirs), _comparable(section, mine))
            if any("try" in one for one in theirs.values()):
                yield from _unequal(f"{section} made anew", *self._anew(section, theirs, mine))
        yield from _unequal("jobflows", *(self._flows(state.get("jobflows") or {}) for state in (recorded, own)))
        yield from self._events(recorded, own)
        self._ended |= {name for name, job in (recorded.get("jobs") or {}).items() if _phase(job) in FINISHED}

    def _anew(self, section: str, theirs: Doc, mine: Doc) -> list[dict[str, bool]]:
        """Of each object: whether it is another one than that of this name in the step before."""
        shown = []
        for state, tries in zip((theirs, mine), self._tries, strict=True):
            keys = {name: f"{section}/{name}" for name in state}
            shown.append({name: state[name]["try"] > tries.get(key, 0) for name, key in keys.items()})
            tries |= {key: state[name]["try"] for name, key in keys.items()}
        return shown

    def _jobs(self, recorded: Doc, own: Doc) -> Iterator[Difference]:
        theirs, mine = recorded.get("jobs") or {}, own.get("jobs") or {}
        for name, passed in (recorded.get("phases") or {}).items():
            self._passed.setdefault(name, []).extend(passed)
        yield from _unequal("jobs", sorted(theirs), sorted(mine))
        for name in theirs.keys() & mine.keys():
            if int((theirs[name].get("status") or {}).get("version") or 0):
                self._killed.add(name)
            one, other = (self._status(name, job.get("status") or {}) for job in (theirs[name], mine[name]))
            if self._has_just_restarted(name, one, (recorded.get("phases") or {}).get(name, [])):
                one.pop("controlledResources", None)
                other.pop("controlledResources", None)
            yield from _unequal(f"jobs.{name}.status", one, other)
            for field in ("labels", "annotations", "ownerReferences", "spec"):
                if field != "spec" or field in theirs[name]:
                    yield from _unequal(f"jobs.{name}.{field}", theirs[name].get(field), mine[name].get(field))

    def _has_just_restarted(self, name: str, status: Doc, passed: list[str]) -> bool:
        """In this step, or in an earlier one since when nobody has written the status."""
        before = self._last.get(name, {})
        self._last[name] = dict(status)
        if status.get("retryCount", 0) != before.get("retryCount", 0) or RESTARTING in passed:
            self._restarted.add(name)
        elif status != before:
            self._restarted.discard(name)
        return name in self._restarted

    def _status(self, name: str, status: Doc) -> Doc:
        shown = {field: value for field, value in status.items() if field != "runningDuration"}
        shown["state"] = {"phase": (status.get("state") or {}).get("phase")}
        conditions = [one if isinstance(one, str) else one["status"] for one in status.get("conditions") or ()]
        if self._went_to_and_fro(name):
            conditions = [*sorted(conditions[:-1]), *conditions[-1:]]
        shown["conditions"] = conditions
        if name in self._killed:
            shown.pop("version", None)
        return shown

    def _went_to_and_fro(self, name: str) -> bool:
        passed = self._passed.get(name, [])
        return RUNNING in passed and PENDING in passed[passed.index(RUNNING) :]

    def _pods(self, theirs: Doc, mine: Doc) -> Iterator[Difference]:
        anew = self._anew("pods", theirs, mine)
        shown = [
            {name: (pod["phase"], bool(pod.get("terminating")), new[name]) for name, pod in state.items()}
            for state, new in zip((theirs, mine), anew, strict=True)
        ]
        yield from _unequal("pods", *shown)

    def _made_pods(self, theirs: Doc, mine: Doc) -> Iterator[Difference]:
        for name, pod in theirs.items():
            if name not in mine:
                yield f"made.{name}", pod, None
                continue
            ours = _made(mine[name], several_masters=_has_several_masters(mine))
            waits = _as_far_as_seen(pod, ours)
            yield from _unequal(f"made.{name}", _made(pod, several_masters=_has_several_masters(theirs)), waits)

    def _flows(self, flows: Doc) -> Doc:
        shown = {}
        for name, flow in flows.items():
            status = dict(flow.get("status") or {})
            status["conditions"] = {
                job: self._repeated(job, one) for job, one in (status.get("conditions") or {}).items()
            }
            listed = status.get("jobStatusList") or ()
            status["jobStatusList"] = sorted(map(self._listed, listed), key=lambda one: str(one["name"]))
            for field, value in status.items():
                if field.endswith("Jobs"):
                    status[field] = sorted(value)
            shown[name] = _times_set(status)
        return shown

    def _repeated(self, job: str, recorded_part: Doc) -> Doc:
        """What a flow repeats from a Job's status; it may have looked before the last write to a Job that ended."""
        unsure = ("runningDuration", "taskStatusCount") if self._has_just_ended(job, recorded_part.get("phase")) else ()
        return {field: value for field, value in recorded_part.items() if field not in unsure}

    def _listed(self, recorded_part: Doc) -> Doc:
        """The end of a Job is computed from its running time, which is as unsure."""
        unsure = "endTimestamp" if self._has_just_ended(str(recorded_part["name"]), recorded_part.get("state")) else ""
        return {field: value for field, value in recorded_part.items() if field != unsure}

    def _has_just_ended(self, job: str, phase: str | None) -> bool:
        return phase in FINISHED and job not in self._ended

    def _events(self, recorded: Doc, own: Doc) -> Iterator[Difference]:
        """An error that is tried again is emitted again, at times that depend on the machine: the first time counts.
        That an action was put off is emitted late by the original, often a step later."""
        shown = []
        for state, warned in zip((recorded, own), self._warned, strict=True):
            recorded_part = {_event(event) for event in state.get("events") or () if event[3] in _EVENTS}
            warned |= {event for event in recorded_part if _DELAYED.search(event[-1])}
            shown.append(sorted(recorded_part - warned))
            warned |= {event for event in recorded_part if event[2] == "Warning"}
        yield from _unequal("events", *shown)
        late = sorted(event for event in self._warned[0] - self._warned[1] if _DELAYED.search(event[-1]))
        if late:
            yield "events", late, []


def _phase(job: Doc) -> str:
    phase: str = ((job.get("status") or {}).get("state") or {}).get("phase") or ""
    return phase


def _leave_out_moving(recorded: Doc, own: Doc) -> None:
    """Take out of both states what was still moving when the recorder looked, of which no rule of Volcano can leave
    a trace at rest: a pod whose Job is gone and that nobody has deleted yet, and a new Job without its PodGroup."""
    jobs, groups = recorded.get("jobs") or {}, recorded.get("podgroups") or {}
    for name, pod in list((recorded.get("pods") or {}).items()):
        job, is_of_job, _ = (pod.get("group") or "").partition("-{uid:Job/")
        if is_of_job and job not in jobs and not pod.get("terminating"):
            for state in (recorded, own):
                (state.get("pods") or {}).pop(name, None)
    for name, status in list(jobs.items()):
        recorded_part = any(event[1] == name for event in recorded.get("events") or ())
        if _phase(status) == PENDING and not recorded_part and not any(_is_group_of(name, group) for group in groups):
            for state in (recorded, own):
                (state.get("jobs") or {}).pop(name, None)
                for group in [one for one in state.get("podgroups") or () if _is_group_of(name, one)]:
                    del state["podgroups"][group]


def _is_group_of(job: str, group: str) -> bool:
    return group == job or group.startswith(f"{job}-{{uid:Job/{job}")


def _groups(groups: Doc) -> Doc:
    fields = ("spec", "labels", "annotations", "ownerReferences")
    return {name: {field: group.get(field) for field in fields} for name, group in groups.items()}


def _made(pod: Doc, *, several_masters: bool) -> Doc:
    """A pod as it was made: without what came later, and what is chance."""
    shown = {field: value for field, value in pod.items() if field not in ("finalizers", "try")}
    notes = dict(shown.get("annotations") or {})
    if int(notes.get("volcano.sh/job-version") or 0):
        notes.pop("volcano.sh/job-version")
    notes.pop("volcano.sh/controller-out-of-sync", None)
    if several_masters and _has_rank(pod):
        notes.pop("hccl/rankIndex", None)
    if notes:
        shown["annotations"] = notes
    labels = dict(shown.get("labels") or {})
    if labels.pop("pod-template-hash", None):
        shown["labels"] = labels
    return shown


def _has_rank(pod: Doc) -> bool:
    """Whether pytorch gives the pod a rank: which of the two hcclrank takes is chance, and differs with two masters."""
    containers = pod["spec"].get("containers") or ()
    return any(variable.get("name") == "RANK" for one in containers for variable in one.get("env") or ())


def _has_several_masters(pods: Doc) -> bool:
    ranks = [
        variable.get("value")
        for pod in pods.values()
        for one in pod["spec"].get("containers") or ()
        for variable in one.get("env") or ()
        if variable.get("name") == "RANK"
    ]
    return ranks.count("0") > 1


def _as_far_as_seen(recorded: Doc, own: Doc) -> Doc:
    """Our pod with the init container that waits for a master as the recorded one has it, if it has nothing but what
    plugins add to every container. Plugins run in any order: whether they saw that container is chance."""
    spec = own["spec"]
    seen = {one["name"]: one for one in recorded["spec"].get("initContainers") or ()}
    made = []
    for container in spec.get("initContainers") or ():
        other = seen.get(container["name"])
        if container["name"] == _WAITS and other is not None:
            parts = {field: _parts_of_all(spec, field, other.get(field)) for field in ("env", "volumeMounts")}
            rest = {field: value for field, value in container.items() if field not in parts}
            made.append({**rest, **{field: value for field, value in parts.items() if value}})
        else:
            made.append(container)
    return {**own, "spec": {**spec, "initContainers": made}} if made else own


def _parts_of_all(spec: Doc, field: str, recorded: list[Doc] | None) -> list[Doc]:
    common = [part for container in spec["containers"] for part in container.get(field) or ()]
    return [part for part in recorded or () if part in common]


def _event(event: list[str]) -> tuple[str, ...]:
    return tuple(event[:4]) + (() if event[3] == "FailedCreate" else (event[4],))


def _comparable(section: str, objects: Doc) -> Doc:
    """Without the number of times that an object was made anew."""
    shown = {name: {k: v for k, v in one.items() if k != "try"} for name, one in objects.items()}
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


def _times_set(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: "set" if k.endswith(_TIMES) else _times_set(v) for k, v in value.items()}
    return [_times_set(part) for part in value] if isinstance(value, list) else value


def _unequal(field: str, recorded: Any, own: Any) -> Iterator[Difference]:
    if recorded != own:
        yield field, recorded, own
