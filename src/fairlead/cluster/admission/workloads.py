"""Rules for the kinds that make pods: selectors that match their templates, counts, strategies, what may change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission.metadata import check_labels
from fairlead.cluster.admission.names import dns_label
from fairlead.cluster.admission.pods import check_pod_spec
from fairlead.cluster.admission.problems import IMMUTABLE, ValidationProblems
from fairlead.cluster.admission.selectors import check_label_selector, selector_matches
from fairlead.cluster.controllers.workloads.cron_schedule import ScheduleError, is_zone_part, parse_schedule, zone_of
from fairlead.core.model import kinds as k

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_MISMATCH = "`selector` does not match template `labels`"
_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)

# -- parts ------------------------------------------------------------------------------------------------------------


def _labels(template: Doc) -> dict[str, str]:
    labels: dict[str, str] = template.get("metadata", {}).get("labels", {})
    return labels


def _check_selector(
    problems: ValidationProblems, spec: Doc, noun: str, *, bad: str | None = None, required: bool = True
) -> None:
    selector = spec.get("selector")
    if selector is None:
        if required:
            problems.required("spec.selector")
        return
    inner = ValidationProblems()
    check_label_selector(inner, "spec.selector", selector)
    problems.found += inner.found
    if inner and bad is not None:
        problems.invalid("spec.selector", selector, bad)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        problems.invalid("spec.selector", selector, f"empty selector is invalid for {noun}")


def _sound(selector: Doc | None) -> bool:
    """Whether a selector can be asked at all."""
    if not selector:
        return True
    inner = ValidationProblems()
    check_label_selector(inner, "", selector)
    return not inner


def _check_template(problems: ValidationProblems, template: Doc, path: str, *, always: bool = True) -> None:
    check_labels(problems, f"{path}.metadata.labels", _labels(template))
    before = len(problems.found)
    check_pod_spec(problems, f"{path}.spec", template.get("spec", {}))
    policy = template.get("spec", {}).get("restartPolicy")
    if always and policy != "Always" and len(problems.found) == before:
        problems.unsupported(f"{path}.spec.restartPolicy", policy, ("Always",))


def _check_matches(problems: ValidationProblems, spec: Doc) -> None:
    labels, selector = _labels(spec["template"]), spec.get("selector")
    empty = selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")
    if not empty and _sound(selector) and not selector_matches(selector, labels):
        problems.invalid("spec.template.metadata.labels", labels, _MISMATCH)


def _check_share(problems: ValidationProblems, path: str, value: Any, *, at_most_all: bool) -> None:
    """A count or a percentage."""
    if isinstance(value, str):
        if not (value.endswith("%") and value[:-1].isdigit()):
            problems.invalid(path, value, _PERCENT)
        elif at_most_all and int(value[:-1]) > 100:
            problems.invalid(path, value, "must not be greater than 100%")
    else:
        problems.negative(path, value)


# -- kinds ------------------------------------------------------------------------------------------------------------


def _deployment(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc["spec"]
    problems.negative("spec.replicas", spec["replicas"])
    _check_selector(problems, spec, "deployment", bad="invalid label selector")
    _check_matches(problems, spec)
    _check_template(problems, spec["template"], "spec.template")
    _check_strategy(problems, spec["strategy"])
    for field in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        problems.negative(f"spec.{field}", spec.get(field))
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds", 0)
    if deadline is not None and deadline <= ready and deadline >= 0 and ready >= 0:
        problems.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _check_strategy(problems: ValidationProblems, strategy: Doc) -> None:
    path = "spec.strategy"
    match strategy.get("type"):
        case "Recreate":
            if "rollingUpdate" in strategy:
                detail = "may not be specified when strategy `type` is 'Recreate'"
                problems.forbidden(f"{path}.rollingUpdate", detail)
        case "RollingUpdate":
            rolling = strategy.get("rollingUpdate", {})
            surge, unavailable = rolling.get("maxSurge"), rolling.get("maxUnavailable")
            _check_share(problems, f"{path}.rollingUpdate.maxSurge", surge, at_most_all=False)
            _check_share(problems, f"{path}.rollingUpdate.maxUnavailable", unavailable, at_most_all=True)
            if surge in (0, "0%") and unavailable in (0, "0%"):
                detail = "may not be 0 when `maxSurge` is 0"
                problems.invalid(f"{path}.rollingUpdate.maxUnavailable", unavailable, detail)
        case other:
            problems.unsupported(f"{path}.type", other, ("Recreate", "RollingUpdate"))


def _replica_set(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc["spec"]
    problems.negative("spec.replicas", spec["replicas"])
    problems.negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    _check_selector(problems, spec, "deployment", bad="invalid label selector")
    _check_matches(problems, spec)
    _check_template(problems, spec["template"], "spec.template")


def _stateful_set(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc["spec"]
    problems.negative("spec.replicas", spec["replicas"])
    problems.negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    if service := spec.get("serviceName"):
        problems.each_invalid("spec.serviceName", service, dns_label(service))
    _check_selector(problems, spec, "statefulset", bad="")
    _check_matches(problems, spec)
    _check_template(problems, _with_claims(spec), "spec.template")
    if spec["template"].get("spec", {}).get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in StatefulSet is not Supported"
        problems.forbidden("spec.template.spec.activeDeadlineSeconds", detail)


def _with_claims(spec: Doc) -> Doc:
    """A StatefulSet's template as its controller will complete it: a volume for each claim template, and a hostname and
    a subdomain that the template does not choose."""
    claims = [template["metadata"].get("name", "") for template in spec.get("volumeClaimTemplates", ())]
    template: Doc = spec["template"]
    pod = {key: value for key, value in template.get("spec", {}).items() if key not in ("hostname", "subdomain")}
    if not claims:
        return {**template, "spec": pod}
    own = [volume for volume in pod.get("volumes", ()) if volume.get("name") not in claims]
    pod["volumes"] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims] + own
    return {**template, "spec": pod}


def _daemon_set(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc["spec"]
    _check_selector(problems, spec, "daemonset", required=False)
    _check_matches(problems, spec)
    _check_template(problems, spec["template"], "spec.template")


def _replication_controller(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc["spec"]
    problems.negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    if not spec.get("selector"):
        problems.required("spec.selector")
    problems.negative("spec.replicas", spec["replicas"])
    if not selector_matches({"matchLabels": spec.get("selector", {})}, _labels(spec["template"])):
        problems.invalid("spec.template.metadata.labels", _labels(spec["template"]), _MISMATCH)
    _check_template(problems, spec["template"], "spec.template")


_COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")


def _job(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc["spec"]
    generated = {
        "controller-uid": doc["metadata"].get("uid", ""),
        "batch.kubernetes.io/controller-uid": doc["metadata"].get("uid", ""),
    }
    selector = spec.get("selector", {})
    if not spec.get("manualSelector") and not set(selector.get("matchLabels", {}).items()) <= set(generated.items()):
        problems.invalid("spec.selector", selector, "`selector` not auto-generated")
    _check_job_spec(problems, "spec", spec)


def _check_job_spec(problems: ValidationProblems, path: str, spec: Doc) -> None:
    for field in _COUNTS:
        problems.negative(f"{path}.{field}", spec.get(field))
    mode = spec.get("completionMode", "NonIndexed")
    problems.not_one_of(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and spec.get("completions") is None and "completionMode" in spec:
        problems.required(f"{path}.completions", "when completion mode is Indexed")
    _check_template(problems, spec["template"], f"{path}.template", always=False)
    policy = spec["template"].get("spec", {}).get("restartPolicy")
    if policy == "Always":
        problems.required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def _cron_job(problems: ValidationProblems, doc: Doc) -> None:
    spec = doc["spec"]
    schedule = spec.get("schedule", "")
    if not schedule:
        problems.required("spec.schedule")
    elif "TZ" in schedule:
        problems.invalid("spec.schedule", schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    else:
        _check_schedule(problems, "spec.schedule", schedule)
    _check_zone(problems, "spec.timeZone", spec.get("timeZone"))
    problems.negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    problems.not_one_of("spec.concurrencyPolicy", spec["concurrencyPolicy"], ("Allow", "Forbid", "Replace"))
    problems.negative("spec.successfulJobsHistoryLimit", spec.get("successfulJobsHistoryLimit"))
    problems.negative("spec.failedJobsHistoryLimit", spec.get("failedJobsHistoryLimit"))
    _check_job_spec(problems, "spec.jobTemplate.spec", spec["jobTemplate"]["spec"])


def _check_schedule(problems: ValidationProblems, path: str, schedule: str) -> None:
    try:
        parse_schedule(schedule)
    except ScheduleError as error:
        problems.invalid(path, schedule, str(error))


_EXPLICIT = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"


def _check_zone(problems: ValidationProblems, path: str, zone: str | None) -> None:
    if zone is None:
        return
    if not zone:
        problems.invalid(path, zone, "timeZone must be nil or non-empty string")
    elif not all(map(is_zone_part, zone.split("/"))):
        problems.invalid(path, zone, f"unknown time zone {zone}")
    elif zone.lower() == "local":
        problems.invalid(path, zone, _EXPLICIT)
    else:
        try:
            zone_of(zone)
        except ScheduleError as error:
            problems.invalid(path, zone, str(error))


WORKLOAD_RULES: dict[Kind, Callable[[ValidationProblems, Doc], None]] = {
    k.DEPLOYMENT: _deployment,
    k.REPLICA_SET: _replica_set,
    k.STATEFUL_SET: _stateful_set,
    k.DAEMON_SET: _daemon_set,
    k.REPLICATION_CONTROLLER: _replication_controller,
    k.JOB: _job,
    k.CRON_JOB: _cron_job,
}

# -- from one state to the next ---------------------------------------------------------------------------------------


def _selector_stays(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    if new["spec"].get("selector") != old["spec"].get("selector"):
        problems.invalid("spec.selector", new["spec"].get("selector"), IMMUTABLE)


_STATEFUL_MAY = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip


def _stateful_set_stays(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    def rest(doc: Doc) -> Doc:
        return {key: value for key, value in doc["spec"].items() if key not in _STATEFUL_MAY}

    if rest(new) != rest(old):
        listed = ", ".join(f"'{field}'" for field in _STATEFUL_MAY[:-1])
        detail = f"updates to statefulset spec for fields other than {listed} and 'minReadySeconds' are forbidden"
        problems.forbidden("spec", detail)


def _job_stays(problems: ValidationProblems, new: Doc, old: Doc) -> None:
    for field in ("completions", "selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"):
        if field == "completions" and new["spec"].get("completionMode") == "Indexed":
            continue  # an indexed job may grow and shrink
        if field == "template" and old["spec"].get("suspend"):
            continue  # a suspended job may be given a place to run
        if new["spec"].get(field) != old["spec"].get(field):
            problems.invalid(f"spec.{field}", new["spec"].get(field), IMMUTABLE)


WORKLOAD_STEPS: dict[Kind, Callable[[ValidationProblems, Doc, Doc], None]] = {
    k.DEPLOYMENT: _selector_stays,
    k.REPLICA_SET: _selector_stays,
    k.DAEMON_SET: _selector_stays,
    k.STATEFUL_SET: _stateful_set_stays,
    k.JOB: _job_stays,
}

_WITHIN_REPLICAS = ("readyReplicas", "availableReplicas", "fullyLabeledReplicas", "updatedReplicas")


def check_workload_status(problems: ValidationProblems, doc: Doc) -> None:
    """Counts of a status: none negative, none above the replicas there are."""
    status = doc.get("status", {})
    replicas = status.get("replicas", 0)
    problems.negative("status.replicas", replicas)
    for field in _WITHIN_REPLICAS:
        value = status.get(field, 0)
        problems.negative(f"status.{field}", value)
        if value > replicas:
            problems.invalid(f"status.{field}", value, "cannot be greater than status.replicas")
