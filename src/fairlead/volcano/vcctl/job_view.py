"""The text of `vcctl job view`, field by field as the original prints it, its odd headings included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlead.cluster.store.quantities import canonical
from fairlead.cluster.tables.columns import human_duration
from fairlead.core.model.times import seconds_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_NOTES = (
    ("Cri . Cci . Io / Container - Type:          ", "cri.cci.io/container-type"),
    ("Kubernetes . Io / Availablezone:            ", "kubernetes.io/availablezone"),
    ("Network . Alpha . Kubernetes . Io / Network:", "network.alpha.kubernetes.io/network"),
)
_COUNTERS = (
    ("Succeeded:    ", "succeeded"), ("Pending:      ", "pending"), ("Running:      ", "running"),
    ("Failed:       ", "failed"), ("Terminating:  ", "terminating"), ("Unknown:      ", "unknown"),
    ("RetryCount:   ", "retryCount"), ("Min Available:", "minAvailable"), ("Version:      ", "version"),
)  # fmt: skip
_NEVER = "0001-01-01 00:00:00 +0000 UTC"


def shown_job(job: Doc, events: list[Doc], now: float) -> list[str]:
    return [*_head(job), *_spec(job["spec"]), *_status(job.get("status") or {}), *_events(events, now)]


def _line(level: int, title: str, value: Any = None) -> str:
    return "  " * level + (title if value is None else f"{title}\t{value}")


def _time(text: str | None) -> str:
    return _NEVER if not text else f"{text[:10]} {text[11:19]} +0000 UTC"


def _head(job: Doc) -> Iterator[str]:
    metadata = job["metadata"]
    yield _line(0, "Name:       ", metadata["name"])
    yield _line(0, "Namespace:  ", metadata["namespace"])
    for title, field in (("Labels:     ", "labels"), ("Annotations:", "annotations")):
        given = metadata.get(field)
        text = json.dumps(given, sort_keys=True, separators=(",", ":"), ensure_ascii=False) if given else "<none>"
        yield _line(0, title, text)
    yield _line(0, "API Version:", "")
    yield _line(0, "Kind:       ", "")
    yield "Metadata:"
    yield _line(1, "Creation Timestamp:", _time(metadata.get("creationTimestamp")))
    yield _line(1, "Generate Name:     ", metadata.get("generateName") or "")
    yield _line(1, "Generation:        ", metadata.get("generation") or 0)
    yield _line(1, "Resource Version:  ", metadata.get("resourceVersion") or "")
    yield _line(1, "UID:               ", metadata.get("uid") or "")


def _spec(spec: Doc) -> Iterator[str]:
    plugins = spec.get("plugins") or {}
    yield "Spec:"
    yield _line(1, "Min Available:     ", spec.get("minAvailable") or 0)
    yield _line(1, "Plugins:")
    for title, name in (("Env:", "env"), ("Ssh:", "ssh")):
        yield _line(2, title, f"[{' '.join(plugins.get(name) or ())}]")
    yield _line(1, "Scheduler Name:    ", spec.get("schedulerName") or "")
    yield _line(1, "Tasks:")
    for task in spec.get("tasks") or ():
        yield from _task(task)


def _task(task: Doc) -> Iterator[str]:
    template = task.get("template") or {}
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    notes = metadata.get("annotations") or {}
    yield _line(2, "Name:", task.get("name") or "")
    yield _line(2, "Replicas:", task.get("replicas") or 0)
    yield _line(2, "Template:")
    yield _line(3, "Metadata:")
    yield _line(4, "Annotations:")
    for title, key in _NOTES:
        yield _line(5, title, notes.get(key) or "")
    yield _line(4, "Creation Timestamp:", _time(metadata.get("creationTimestamp")))
    yield _line(3, "Spec:")
    yield _line(4, "Containers:")
    for container in spec.get("containers") or ():
        yield from _container(container)
    yield _line(4, "Image Pull Secrets:")
    for secret in spec.get("imagePullSecrets") or ():
        yield _line(5, "Name:     ", secret.get("name") or "")
    yield _line(4, "Restart Policy:   ", spec.get("restartPolicy") or "")


def _container(container: Doc) -> Iterator[str]:
    yield _line(5, "Command:")
    for word in container.get("command") or ():
        yield _line(6, word)
    yield _line(5, "Image:", container.get("image") or "")
    yield _line(5, "Name: ", container.get("name") or "")
    yield _line(5, "Ports:")
    for port in container.get("ports") or ():
        yield _line(6, "Container Port:", port.get("containerPort"))
        yield _line(6, "Name:          ", port.get("name") or "")
    yield _line(5, "Resources:")
    for title in ("Limits", "Requests"):
        amounts = (container.get("resources") or {}).get(title.lower()) or {}
        yield _line(6, f"{title}:")
        yield _line(7, "Cpu:   ", canonical(amounts.get("cpu") or "0"))
        yield _line(7, "Memory:", canonical(amounts.get("memory") or "0"))
    yield _line(6, "Working Dir:", container.get("workingDir") or "")


def _status(status: Doc) -> Iterator[str]:
    yield "Status:"
    for title, field in _COUNTERS:
        if status.get(field):
            yield _line(1, title, status[field])
    yield _line(1, "State:")
    yield _line(2, "Phase:", (status.get("state") or {}).get("phase") or "")
    if status.get("controlledResources"):
        yield _line(1, "Controlled Resources:")
        for name, value in sorted(status["controlledResources"].items()):
            yield _line(2, f"{name}: ", value)
    if status.get("conditions"):
        yield _line(1, "Conditions:")
        yield "    Status\tTransitionTime"
        for condition in status["conditions"]:
            yield f"    {condition['status']} \t{_time(condition.get('lastTransitionTime'))} "


def _events(events: list[Doc], now: float) -> Iterator[str]:
    if not events:
        yield "Events: \t<none>"
        return
    yield "Events:"
    yield _row("Type", "Reason", "Age", "Form", "Message")
    yield _row(*["-------"] * 5)
    for event in events:
        source = event.get("source") or {}
        source_text = ", ".join(filter(None, (source.get("component"), source.get("host"))))
        yield _row(
            event.get("type"), event.get("reason"), _ages(event, now), source_text, (event.get("message") or "").strip()
        )


def _row(kind: Any, reason: Any, age: str, source: str, message: str) -> str:
    return f"{kind:<15}\t{reason:<40}\t{age:<30}\t{source:<40}\t{message}"


def _ages(event: Doc, now: float) -> str:
    last, first = (_since(event.get(field), now) for field in ("lastTimestamp", "firstTimestamp"))
    count = event.get("count") or 0
    return f"{last} (x{count} over {first})" if count > 1 else first


def _since(text: str | None, now: float) -> str:
    return "<unknown>" if not text else human_duration(now - seconds_of(text))
