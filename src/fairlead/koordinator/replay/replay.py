"""Replay of Koordinator's scheduler: put a recorded cluster together, decide again, and say where decisions differ.

A line has its configuration with it. Its decisions come in steps: what is in one step came together. After each
decision the replay follows the recorded one, with the annotations that were written then, so that ties which fell
otherwise (nodes, reservations, CPUs, devices) do not count as differences later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from random import Random
from typing import TYPE_CHECKING, Any

from fairlead.core.engine.cycle.attempt import (
    Committed,
    Rescue,
    commit_on,
    end_search,
    place,
    rescue,
    score_sheet,
    undo,
)
from fairlead.core.engine.cycle.outcome import Failure
from fairlead.core.engine.cycle.placement import Blocked, Broken, Placed, ScoreSheet, Search
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.framework.points import PERMITTED
from fairlead.core.model import kinds
from fairlead.core.model.documents import read_units
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.errors import ScenarioError
from fairlead.koordinator.devices.plugin import DeviceSharePlugin
from fairlead.koordinator.kinds import KOORD_POD_GROUP, KOORD_RESERVATION
from fairlead.koordinator.pod_annotations import annotations_to_write
from fairlead.koordinator.quotas.usage import request_of
from fairlead.koordinator.records.reservations import AVAILABLE, PENDING, SUCCEEDED
from fairlead.koordinator.replay.agreement import annotation_differences, comparable, decision_differences
from fairlead.koordinator.replay.gang_replay import GangReplay, GangStep, in_order_of_last_try, is_in_gang, second_round
from fairlead.koordinator.replay.quota_replay import QuotaReplay
from fairlead.koordinator.reservations.holdings import reservations_of
from fairlead.kube.replay.replay import NAMESPACES, DecisionDifference, FoundDecision, kind_of

if TYPE_CHECKING:
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind
    from fairlead.core.model.pod import Pod
    from fairlead.kube.replay.recording import Scenario

MakeProfile = Callable[["Doc", frozenset[str]], "Profile"]
"""The profile of a recorded configuration and the feature gates that were on."""
_NAMES = {"Pod": kinds.POD, "Reservation": KOORD_RESERVATION, "PodGroup": KOORD_POD_GROUP}
Found = Iterator[tuple[str, Any, Any]]


class KoordinatorReplay:
    """Replays one recorded cluster."""

    def __init__(self, scenario: Scenario, make_profile: MakeProfile) -> None:
        self._scenario = scenario
        self._doc = scenario.doc
        gates = frozenset(name for name, on in (self._doc.get("gates") or {}).items() if on)
        self._profile = make_profile(self._doc["config"], gates)
        self._evaluator = Evaluator(self._profile)
        self._cluster = Cluster()
        self._effects = Effects()
        self._reservations: dict[str, Doc] = {}
        self._ended: dict[str, Doc] = {}
        self._keep = bool(self._doc.get("keep"))
        self._build()
        self._gangs = GangReplay(self._profile)
        self._quotas = QuotaReplay(self._profile, self._cluster, self._doc)

    def decisions(self) -> Iterator[list[DecisionDifference]]:
        """Decide each recorded pod and reservation again; for each, the differences."""
        entries = list(enumerate(self._doc["decisions"]))
        last = max(at for at, decision in entries if "tried" in decision)
        for _, step in groupby(entries, key=lambda entry: entry[1]["step"]):
            for index, found in self._step(list(step)):
                differences = [*found, *(self._quotas.final_differences() if index == last else ())]
                yield [
                    DecisionDifference(self._scenario.file, self._scenario.seed, index, name, expected, got)
                    for name, expected, got in differences
                ]

    def _step(self, entries: list[tuple[int, Doc]]) -> Iterator[tuple[int, list[tuple[str, Any, Any]]]]:
        """What came together: changes of other objects, pods that come, and the attempts in their order."""
        tried: list[tuple[int, Doc]] = []
        for index, decision in entries:
            if "deleted" in decision:
                self._delete(*decision["deleted"])
            elif "object" in decision:
                self._put(kind_of(decision["object"], self._scenario), decision["object"])
            else:
                self._arrive(decision)
                tried.append((index, decision))
        step = GangStep(self._gangs, self._cluster, [decision for _, decision in tried], self._effects)
        results: dict[int, list[tuple[str, Any, Any]]] = {}
        second = second_round(tried)
        later = {index for index, _ in second}
        for index, decision in in_order_of_last_try(tried):
            results[index] = list(step.legality(decision))
            if decision["tried"]:
                results[index] += self._decide(decision, step, messages=index not in later)
        for _, decision in second:
            self._nominate({**decision, "nominated": decision.get("assumed") or decision.get("nominated")})
        for _, decision in second:
            step.note_message(decision, self._refusal(self._cycle(decision)))
            step.after_try()
        for index, decision in tried:
            results[index] += step.late_differences(decision)
            self._follow(decision, step)
        for index, decision in tried:
            results[index] += self._reservation_differences(decision)
            yield index, results[index]

    # ---- the cluster ----

    def _build(self) -> None:
        for name, labels in (*NAMESPACES, ("koordinator-system", {})):
            metadata = {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}}
            self._put(kinds.NAMESPACE, {"metadata": metadata})
        for doc in self._doc["nodes"]:
            self._put(kinds.NODE, doc)
        for doc in self._doc["objects"]:
            self._put(kind_of(doc, self._scenario), doc)
        for doc in self._doc["existing"]:
            self._put(kinds.POD, doc)
        if self._cluster.refused:
            raise ScenarioError(f"{self._scenario.file}:{self._scenario.line}: {self._cluster.refused[0]}")

    def _put(self, kind: Kind, doc: Doc, happened: Happened = Happened.ADDED) -> Any:
        applied = self._cluster.apply(Change(happened, kind, doc))
        return applied.new if applied is not None else None

    def _delete(self, kind: str, namespace: str | None, name: str) -> None:
        if kind == "Reservation" and name in self._reservations:
            self._put(_NAMES[kind], self._reservations.pop(name), Happened.DELETED)
            return
        if kind != "Pod":
            self._put(_NAMES[kind], {"metadata": {"name": name, "namespace": namespace}}, Happened.DELETED)
            return
        for pod_state in list(self._cluster.pods.values()):
            if pod_state.seen.key == f"{namespace}/{name}":
                metadata = {"name": name, "namespace": namespace, "uid": pod_state.seen.uid}
                self._put(kinds.POD, {"metadata": metadata, "spec": {"containers": []}}, Happened.DELETED)

    # ---- one decision ----

    def _decide(self, decision: Doc, step: GangStep, *, messages: bool) -> Found:
        cycle = self._cycle(decision)
        yield from self._attempt(decision, cycle, step, messages=messages)
        yield from self._quotas.differences(decision)
        step.after_try()

    def _cycle(self, decision: Doc) -> Cycle:
        pod_state = self._cluster.pods.get(_uid(decision))
        if pod_state is None:
            raise ScenarioError(f"{self._scenario.file}:{self._scenario.line}: a decision has no usable pod")
        now = float(decision.get("at") or self._doc.get("start") or 0.0)
        return Cycle(
            pod=pod_state.seen,
            cluster=self._cluster,
            profile=self._profile,
            now=now,
            rng=Random(0),
            effects=self._effects,
        )

    def _refusal(self, cycle: Cycle) -> str:
        """The message of a pod for which there is no room."""
        answer = place(cycle, self._evaluator, Search(nominated=self._nominated()))
        outcome = rescue(cycle, answer.refusals) if isinstance(answer, Blocked) else None
        end_search(cycle)
        failure = outcome.failure if isinstance(outcome, Rescue) else outcome
        return failure.message if failure is not None else ""

    def _said_otherwise(self, decision: Doc) -> bool:
        """Whether the recorded message is what we say if types of devices are looked at in the opposite order."""
        devices = [plugin for plugin in self._profile.plugins() if isinstance(plugin, DeviceSharePlugin)]
        if not devices or is_in_gang(decision.get("pod") or decision["reservation"]):
            return False
        devices[0].types_reversed = True
        said = comparable(self._refusal(self._cycle(decision)))
        devices[0].types_reversed = False
        return said == comparable(decision.get("message"))

    def _arrive(self, decision: Doc) -> Pod | None:
        if decision.get("again"):
            return None
        if "reservation" not in decision:
            return self._put(kinds.POD, decision["pod"])  # type: ignore[no-any-return]
        document = decision["reservation"]
        self._reservations[document["metadata"]["name"]] = document
        return self._put(KOORD_RESERVATION, document)  # type: ignore[no-any-return]

    def _attempt(self, decision: Doc, cycle: Cycle, step: GangStep, *, messages: bool) -> Found:
        search = Search(nominated=self._nominated())
        sheet: ScoreSheet | None = None
        outcome: Committed | Failure | Rescue
        answer = place(cycle, self._evaluator, search)
        self._quotas.note()
        if isinstance(answer, Broken):
            outcome = Failure(answer.status, answer.status.message)
        elif isinstance(answer, Blocked):
            outcome = rescue(cycle, answer.refusals)
        elif answer.sheet is None and answer.feasible > 1:
            sheet = score_sheet(cycle, self._evaluator)
        else:
            sheet = answer.sheet
        end_search(cycle)
        if isinstance(answer, Placed):
            found = FoundDecision.of(Committed(answer, PERMITTED), sheet, self._cluster)
            yield from self._commit(decision, cycle, found, step)
        else:
            found = FoundDecision.of(outcome, None, self._cluster)
            said = list(decision_differences(decision, found, messages=messages))
            if [name for name, _, _ in said] == ["message"] and self._said_otherwise(decision):
                said = []
            yield from said

    def _commit(self, decision: Doc, cycle: Cycle, found: FoundDecision, step: GangStep) -> Found:
        """Take the recorded node if it is among the best, else ours, and compare what is written on the pod."""
        row = self._chosen_row(decision, cycle, found)
        committed = commit_on(cycle, row)
        if isinstance(committed, Failure):
            if decision.get("assumed"):
                step.note_message(decision, committed.message)
            yield from decision_differences(decision, replace(found, message=committed.message))
            return
        step.placed(cycle, row)
        waits = bool(committed.waits)
        yield from decision_differences(replace_message(decision) if waits else decision, found)
        if not waits:
            for member, place in step.let_go():
                yield from self._written(step.decision_of(member), member, place)

    def _chosen_row(self, decision: Doc, cycle: Cycle, found: FoundDecision) -> int:
        """The recorded node if it is among the best. If the pod lost its node again, which one that was is not
        recorded: it is one of the best that refuses the pod in the recorded words."""
        row_of = self._cluster.table.row_of
        recorded = decision.get("node") or decision.get("assumed")
        if recorded in found.best:
            return row_of[recorded]
        said = comparable(decision.get("message"))
        for name in sorted(found.best) if said is not None and len(found.best) > 1 else ():
            committed = commit_on(cycle, row_of[name])
            if not isinstance(committed, Failure):
                undo(cycle, row_of[name])
            elif comparable(committed.message) == said:
                return row_of[name]
        return row_of[found.chosen]

    def _written(self, decision: Doc | None, cycle: Cycle, row: int) -> Found:
        """What is written on a pod that may be bound; then it gives its place back, to be bound as recorded."""
        if decision is not None and decision.get("node") == self._cluster.table.name(row):
            for plugin in self._profile.at("pre_bind"):
                plugin.pre_bind(cycle, row)
            yield from annotation_differences(decision, annotations_to_write(cycle))

    def _nominated(self) -> Mapping[int, list[Pod]]:
        nominated: dict[int, list[Pod]] = {}
        for pod_state in self._cluster.pods.values():
            pod = pod_state.seen
            row = self._cluster.table.row_of.get(pod.nominated_node) if pod.nominated_node else None
            if row is not None and not pod.node_name:
                nominated.setdefault(row, []).append(pod)
        return nominated

    # ---- following ----

    def _follow(self, decision: Doc, step: GangStep) -> None:
        """Leave the cluster as the recorded scheduler left it."""
        step.give_back(_uid(decision))
        if "reservation" in decision:
            self._follow_reservation(decision)
            return
        document, node = decision["pod"], decision.get("node")
        if node is None:
            # A recording ends when a pod had others evicted: they are leaving then, and the pod waits for their place.
            if not self._keep and not decision.get("victims") and not is_in_gang(document):
                self._put(kinds.POD, document, Happened.DELETED)
            else:
                self._nominate(decision)
            return
        metadata = document["metadata"]
        annotations = {**(metadata.get("annotations") or {}), **(decision.get("annotations") or {})}
        bound = {
            **document,
            "metadata": {**metadata, "annotations": annotations},
            "spec": {**document["spec"], "nodeName": node},
        }
        self._put(kinds.POD, bound, Happened.MODIFIED)

    def _nominate(self, decision: Doc) -> None:
        """A pod that waits for room on the node that it is nominated to, if any."""
        document = decision["pod"]
        status = {**(document.get("status") or {}), "nominatedNodeName": decision.get("nominated") or ""}
        self._put(kinds.POD, {**document, "status": status}, Happened.MODIFIED)

    def _follow_reservation(self, decision: Doc) -> None:
        document, node = decision["reservation"], decision.get("node")
        if node is None:
            self._put(KOORD_RESERVATION, document, Happened.DELETED)
            self._reservations.pop(document["metadata"]["name"], None)
            return
        self._set_reservation(document["metadata"]["name"], {"phase": AVAILABLE, "nodeName": node}, decision)

    def _set_reservation(self, name: str, status: Doc, decision: Doc) -> None:
        document = self._reservations[name]
        metadata = document["metadata"]
        annotations = {**(metadata.get("annotations") or {}), **(decision.get("annotations") or {})}
        document = {**document, "metadata": {**metadata, "annotations": annotations}, "status": status}
        self._reservations[name] = document
        self._put(KOORD_RESERVATION, document, Happened.MODIFIED)

    def _reservation_differences(self, decision: Doc) -> Found:
        """What stood in the reservations after the step, and ours; then they stand as recorded."""
        recorded = decision.get("reservations")
        if recorded is None:
            self._end_used_reservations()
            return
        for name, status in sorted(recorded.items()):
            if name not in self._reservations:
                continue
            ours = self._ended.get(name) or _status_of(self._cluster, self._reservations[name])
            expected = _comparable_status(status)
            if ours.get("phase") == SUCCEEDED:
                self._ended[name] = ours  # nobody writes to it any more
            if expected != ours:
                yield f"reservations.{name}", expected, ours
            current = (self._reservations[name].get("status") or {}).get("phase")
            if status.get("phase") != current:
                self._set_reservation(name, {"phase": status.get("phase"), "nodeName": status.get("nodeName")}, {})

    def _end_used_reservations(self) -> None:
        """Where reservations were not recorded: the controller ends those that serve one pod and have it."""
        for name, document in list(self._reservations.items()):
            state = reservations_of(self._cluster).by_uid.get(document["metadata"]["uid"])
            status = document.get("status") or {}
            if state is not None and state.record.once and state.owners and status.get("phase") == AVAILABLE:
                self._set_reservation(name, {**status, "phase": SUCCEEDED}, {})


def _uid(decision: Doc) -> str:
    return str((decision.get("pod") or decision["reservation"])["metadata"]["uid"])


def replace_message(decision: Doc) -> Doc:
    """A decision whose message is compared later: the pod had a place and waited for others."""
    return {**decision, "message": None, "node": decision.get("node") or decision.get("assumed")}


def _status_of(cluster: Cluster, document: Doc) -> Doc:
    """Phase, node, allocated amounts and owners of a reservation."""
    state = reservations_of(cluster).by_uid.get(document["metadata"]["uid"])
    if state is None:
        return {}
    record = state.record
    phase = SUCCEEDED if record.once and state.owners else record.phase
    owners = sorted(cluster.pods[uid].seen.name for uid in state.owners)
    allocated: dict[str, int] = {}
    for uid in state.owners:  # the status shows all that is held, also what owners are not charged for
        for name, amount in request_of(cluster.pods[uid].seen).items():
            if name in record.held and amount:
                allocated[name] = allocated.get(name, 0) + amount
    return {"phase": phase, "node": record.node, "allocated": allocated, "owners": owners}


def _comparable_status(status: Doc) -> Doc:
    return {
        "phase": status.get("phase") or PENDING,
        "node": status.get("nodeName") or "",
        "allocated": {n: a for n, a in read_units(status.get("allocated"), "allocated").items() if a},
        "owners": sorted(owner["name"] for owner in status.get("currentOwners") or ()),
    }
