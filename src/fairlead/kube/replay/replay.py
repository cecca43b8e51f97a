"""Replay: put a recorded cluster together, decide again, and say exactly where the two decisions differ.

A decision agrees when the feasible nodes are equal, every plugin's score of every feasible node is equal, the recorded
node is among those with the highest total, a refusal's message is equal to the letter, and, where room was made, the
nominated node is among those that the tie-breaks leave and its victims are the recorded ones. Ties are the scheduler's
to break, so after each decision the replay follows the recorded one.

A decision that is `partial` has only the chosen node, and the scores of some: it agrees when that node is among our
best, and those scores are ours.

Decisions about resource claims say more (claim_replay.py): what kept a pod from being tried at all, the allocations it
was given, and what went wrong when they were written down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.core.engine.cycle.attempt import Committed, Rescue, attempt, score_sheet, undo
from fairlead.core.engine.cycle.placement import ScoreSheet, Search
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.framework.points import merge_pre_enqueue
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.errors import ScenarioError
from fairlead.kube.claims.plugin import DynamicResources
from fairlead.kube.replay.claim_replay import ClaimReplay, failed_in_filter, failed_in_prebind, same_error, same_gate
from fairlead.kube.replay.recorded_extender import RecordedExtender

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.outcome import Failure
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind
    from fairlead.core.model.pod import Pod
    from fairlead.kube.replay.recording import Scenario

NAMESPACES: tuple[tuple[str, dict[str, str]], ...] = (
    ("default", {}),
    ("team-a", {"team": "a"}),
    ("team-b", {"team": "b"}),
)
_NOW = 4_102_444_800.0
"""When decisions are made again: later than any time in a recording. It matters for pods that have not started."""


@dataclass(frozen=True, slots=True)
class DecisionDifference:
    """One field of one decision in which we do not agree."""

    file: str
    seed: Any
    index: int
    field: str
    expected: Any
    got: Any


@dataclass(slots=True)
class ReplayTally:
    total: int = 0
    agree: int = 0


@dataclass(slots=True)
class Report:
    families: dict[str, ReplayTally] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    """Decisions that cannot be made again, by the reason."""
    differences: list[DecisionDifference] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(tally.total for tally in self.families.values())

    @property
    def agree(self) -> int:
        return sum(tally.agree for tally in self.families.values())

    def add(self, family: str, differences: Sequence[DecisionDifference]) -> None:
        tally = self.families.setdefault(family, ReplayTally())
        tally.total += 1
        tally.agree += not differences
        self.differences += differences

    def to_document(self) -> Doc:
        return {
            "total": self.total,
            "agree": self.agree,
            **({"leftOut": dict(self.left_out)} if self.left_out else {}),
            "families": {name: {"total": t.total, "agree": t.agree} for name, t in sorted(self.families.items())},
            "differences": [asdict(difference) for difference in self.differences],
        }


class KubeReplay:
    """Replays one recorded cluster."""

    def __init__(self, scenario: Scenario, profiles: Iterable[Profile]) -> None:
        self._scenario = scenario
        self._doc = scenario.doc
        self._evaluators = {profile.name: Evaluator(profile) for profile in profiles}
        self._cluster = Cluster()
        self._independent = bool(self._doc.get("independent"))
        self._nominated: dict[int, list[Pod]] = {}
        self._build()
        namespaces = {decision["pod"]["metadata"].get("namespace") for decision in self._doc["decisions"]}
        self._claims = ClaimReplay(self._cluster, self._doc.get("objects") or (), self._doc["existing"], namespaces)

    def decisions(self) -> Iterator[list[DecisionDifference]]:
        """Decide each recorded pod again; for each, the differences."""
        for index, decision in enumerate(self._doc["decisions"]):
            yield list(self._decide(index, decision))

    # ---- the cluster ----

    def _build(self) -> None:
        for name, labels in NAMESPACES:
            metadata = {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}}
            self._put(kinds.NAMESPACE, {"metadata": metadata})
        for doc in self._doc["nodes"]:
            self._put(kinds.NODE, doc)
        for doc in self._doc.get("objects") or ():
            self._put(kind_of(doc, self._scenario), doc)
        for doc in self._doc["existing"]:
            self._put(kinds.POD, doc)
        for doc in self._doc.get("waiting") or ():
            self._promise(self._put(kinds.POD, doc))
        if self._cluster.refused:
            raise ScenarioError(f"{self._scenario.file}:{self._scenario.line}: {self._cluster.refused[0]}")

    def _promise(self, pod: Pod | None) -> None:
        """A pod that waits for room that was made for it: nobody of its priority or less is put in its place."""
        row = self._cluster.table.row_of.get(pod.nominated_node) if pod is not None else None
        if pod is not None and row is not None:
            self._nominated.setdefault(row, []).append(pod)

    def _put(self, kind: Kind, doc: Doc, happened: Happened = Happened.ADDED) -> Any:
        applied = self._cluster.apply(Change(happened, kind, doc))
        return applied.new if applied is not None else None

    # ---- one decision ----

    def _decide(self, index: int, decision: Doc) -> Iterator[DecisionDifference]:
        self._claims.before(decision)
        for name, expected, got in self._differences(index, decision):
            yield DecisionDifference(self._scenario.file, self._scenario.seed, index, name, expected, got)
        self._follow(decision)
        self._claims.after(decision)

    def _differences(self, index: int, decision: Doc) -> Iterator[tuple[str, Any, Any]]:
        pod = self._waiting(decision["pod"])
        if pod is None:
            raise ScenarioError(f"{self._scenario.file}:{self._scenario.line}: decision {index} has no usable pod")
        evaluator = self._evaluator(index, pod, decision)
        gate = merge_pre_enqueue(evaluator.profile.at("pre_enqueue"), pod, self._cluster)
        if gate is not None or decision.get("gated"):
            if not same_gate(decision.get("gated"), gate.message if gate is not None else None):
                yield "gated", decision.get("gated"), gate.message if gate is not None else None
            return
        cycle = Cycle(
            pod=pod, cluster=self._cluster, profile=evaluator.profile, now=_NOW, rng=Random(0), effects=Effects()
        )
        outcome = attempt(cycle, evaluator, Search(nominated=self._nominated))
        sheet: ScoreSheet | None = None
        if isinstance(outcome, Committed):
            undo(cycle, outcome.placed.row)
            sheet = outcome.placed.sheet
            if sheet is None and outcome.placed.feasible > 1:
                sheet = score_sheet(cycle, evaluator)
        found = FoundDecision.of(outcome, sheet, self._cluster)
        if isinstance(outcome, Committed):
            said = yield from self._with_claims(decision, cycle, outcome)
            found = replace(found, message=said)
        elif failed_in_filter(found.message) and decision.get("message") in self._errors_of_rows(cycle, evaluator):
            found = replace(found, message=decision["message"])
        yield from self._compare(decision, found, outcome)

    def _evaluator(self, index: int, pod: Pod, decision: Doc) -> Evaluator:
        """The evaluator for a pod. Extenders are those that were asked then, and answer what they answered then."""
        evaluator = self._evaluators.get(pod.scheduler_name)
        if evaluator is None:
            raise ScenarioError(
                f"{self._scenario.file}:{self._scenario.line}: the pod of decision {index} wants the scheduler"
                f" {pod.scheduler_name!r}, which the configuration has no profile for"
            )
        if not decision.get("extenders"):
            return evaluator
        extenders = tuple(RecordedExtender(answers) for answers in decision["extenders"])
        return Evaluator(replace(evaluator.profile, extenders=extenders))

    def _errors_of_rows(self, cycle: Cycle, evaluator: Evaluator) -> set[str]:
        """What each node fails with if it alone is judged: which of them is reported is left to chance."""
        codes = {evaluator.judge_row(cycle, row) for row in self._cluster.table.order().tolist()}
        return {evaluator.codes.verdict(code).reasons[0] for code in codes & evaluator.codes.errors}

    def _with_claims(
        self, decision: Doc, cycle: Cycle, outcome: Committed
    ) -> Generator[tuple[str, Any, Any], None, str | None]:
        """Compare what a pod's claims were given; returns what went wrong when it was written down."""
        for plugin in cycle.profile.at("pre_bind"):
            if isinstance(plugin, DynamicResources) and "allocations" in decision:
                yield from self._claims.differences(decision, cycle, plugin)
                said = self._claims.write_down(decision, cycle, plugin, outcome.placed.row)
                recorded = decision.get("message")
                return recorded if said and recorded and same_error(recorded, said) else said or None
        return None

    def _waiting(self, document: Doc) -> Pod | None:
        """A pod that is to be decided. One that names its node has not been put there."""
        wanted = document["spec"].get("nodeName")
        if not wanted:
            return self._put(kinds.POD, document)  # type: ignore[no-any-return]
        pod: Pod | None = self._put(kinds.POD, {**document, "spec": {**document["spec"], "nodeName": ""}})
        return replace(pod, node_name=wanted) if pod is not None else None

    def _compare(
        self, decision: Doc, found: FoundDecision, outcome: Committed | Failure | Rescue
    ) -> Iterator[tuple[str, Any, Any]]:
        recorded_scores = decision.get("scores") or {}
        feasible = decision.get("feasible")
        if decision.get("partial") and decision.get("node"):
            yield from _partial_differences(decision["node"], recorded_scores, found)
            return
        if feasible is None:
            feasible = list(recorded_scores) or ([decision["node"]] if decision.get("node") else [])
            if not feasible and failed_in_prebind(decision.get("message")) and len(found.feasible) == 1:
                feasible = found.feasible  # which node it was is not recorded
        same_nodes = sorted(feasible) == sorted(found.feasible)
        if not same_nodes:
            yield "feasible", sorted(feasible), sorted(found.feasible)
        elif recorded_scores:
            yield from score_differences(recorded_scores, found.scores)
            node = decision.get("node")
            if node is not None and found.best and node not in found.best:
                yield "node", node, sorted(found.best)
            if node is None and not self._independent and found.message is None:
                yield "node", None, sorted(found.best)
            if found.chosen not in found.best:
                yield "chosen", sorted(found.best), found.chosen
        said = decision.get("message")
        if said != found.message and (said is not None or ("message" in decision and same_nodes)):
            yield "message", said, found.message
        yield from _preemption_differences(decision, outcome, all_victims=not self._independent)

    def _follow(self, decision: Doc) -> None:
        """Leave the cluster as the recorded scheduler left it."""
        node = decision.get("node")
        if self._independent or node is None:
            self._put(kinds.POD, decision["pod"], Happened.DELETED)
            self._remove(() if self._independent else decision.get("victims") or ())
            return
        document = decision["pod"]
        bound = {**document, "spec": {**document["spec"], "nodeName": node}}
        self._put(kinds.POD, bound, Happened.MODIFIED)
        self._put(kinds.POD, bound, Happened.MODIFIED)
        self._bind_claims(decision)

    def _remove(self, victims: Iterable[str]) -> None:
        """Pods that were evicted are not there for the decisions that follow."""
        names = set(victims)
        for pod_state in [pod_state for pod_state in self._cluster.pods.values() if pod_state.seen.name in names]:
            metadata = {"name": pod_state.seen.name, "namespace": pod_state.seen.namespace, "uid": pod_state.seen.uid}
            self._put(kinds.POD, {"metadata": metadata, "spec": {"containers": []}}, Happened.DELETED)

    def _bind_claims(self, decision: Doc) -> None:
        """Claims that were bound once the pod had its node, and the volumes they were bound to."""
        for claim, volume in (decision.get("claims") or {}).items():
            kind_index = self._claim_documents()
            document = kind_index.get(claim)
            if document is None:
                continue
            self._put(kinds.PERSISTENT_VOLUME_CLAIM, bound_claim(document, volume), Happened.MODIFIED)
            self._put(kinds.PERSISTENT_VOLUME, self._bound_volume(document, volume), Happened.MODIFIED)

    def _claim_documents(self) -> dict[str, Doc]:
        listed = [doc for doc in self._doc.get("objects") or () if doc["kind"] == "PersistentVolumeClaim"]
        return {doc["metadata"]["name"]: doc for doc in listed if doc["metadata"].get("namespace") == "default"}

    def _bound_volume(self, claim: Doc, name: str) -> Doc:
        """The volume of a bound claim: a recorded one, or, if it was provisioned, one as provisioners make them."""
        reference = {"namespace": claim["metadata"]["namespace"], "name": claim["metadata"]["name"]}
        if claim["metadata"].get("uid"):
            reference["uid"] = claim["metadata"]["uid"]
        for doc in self._doc.get("objects") or ():
            if doc["kind"] == "PersistentVolume" and doc["metadata"]["name"] == name:
                return {**doc, "spec": {**doc["spec"], "claimRef": reference}, "status": {"phase": "Bound"}}
        spec = claim["spec"]
        return {
            "kind": "PersistentVolume",
            "apiVersion": "v1",
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "accessModes": spec["accessModes"],
                "storageClassName": spec.get("storageClassName"),
                "claimRef": reference,
                **self._source_of(spec.get("storageClassName"), name),
            },
            "status": {"phase": "Bound"},
        }

    def _source_of(self, storage_class: str | None, volume: str) -> Doc:
        """A driver that provisions volumes also attaches them, and they count against its limits."""
        for doc in self._doc.get("objects") or ():
            if doc["kind"] == "StorageClass" and doc["metadata"]["name"] == storage_class:
                provisioner = doc.get("provisioner") or ""
                in_tree = provisioner.startswith("kubernetes.io/")
                return {} if in_tree else {"csi": {"driver": provisioner, "volumeHandle": volume}}
        return {}


def bound_claim(document: Doc, volume: str) -> Doc:
    """A claim as it looks once it is bound."""
    metadata = document["metadata"]
    annotations = {**(metadata.get("annotations") or {}), "pv.kubernetes.io/bind-completed": "yes"}
    return {
        **document,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**document["spec"], "volumeName": volume},
        "status": {**(document.get("status") or {}), "phase": "Bound"},
    }


@dataclass(frozen=True, slots=True)
class FoundDecision:
    """Our decision in the words of a recording. `best` are the nodes with the highest total."""

    feasible: list[str]
    scores: dict[str, dict[str, int]]
    best: set[str]
    chosen: str
    message: str | None

    @classmethod
    def of(cls, outcome: Committed | Failure | Rescue, sheet: ScoreSheet | None, cluster: Cluster) -> FoundDecision:
        table = cluster.table
        if isinstance(outcome, Committed):
            name = table.name(outcome.placed.row)
            if sheet is None:
                return cls([name], {}, {name}, name, None)
            candidates = [sheet.candidate(position) for position in range(len(sheet.rows))]
            scores = {table.name(candidate.row): dict(candidate.scores) for candidate in candidates}
            highest = int(np.max(sheet.totals))
            best = {table.name(candidate.row) for candidate in candidates if candidate.total == highest}
            return cls(list(scores), scores, best, name, None)
        failure = outcome.failure if isinstance(outcome, Rescue) else outcome
        return cls([], {}, set(), "", failure.message)


def score_differences(
    recorded: dict[str, dict[str, int]], ours: dict[str, dict[str, int]]
) -> Iterator[tuple[str, Any, Any]]:
    """Plugins whose score of a node differs."""
    for node in sorted(recorded):
        mine = ours.get(node, {})
        for plugin in sorted({*recorded[node], *mine}):
            expected, got = recorded[node].get(plugin), mine.get(plugin)
            if expected != got:
                yield f"scores.{node}.{plugin}", expected, got


def _partial_differences(
    node: str, scores: dict[str, dict[str, int]], found: FoundDecision
) -> Iterator[tuple[str, Any, Any]]:
    """Where only the chosen node is known, and the scores of some."""
    if node not in found.feasible:
        yield "feasible", [node], sorted(found.feasible)
    elif node not in found.best:
        yield "node", node, sorted(found.best)
    yield from score_differences({name: scores[name] for name in scores if name in found.feasible}, found.scores)


def _preemption_differences(
    decision: Doc, outcome: Committed | Failure | Rescue, *, all_victims: bool
) -> Iterator[tuple[str, Any, Any]]:
    """A recording made in process lists only the victims that were not leaving already."""
    if "nominated" not in decision:
        return
    allowed = dict(outcome.rescued.alternatives()) if isinstance(outcome, Rescue) else {}
    nominated = decision["nominated"]
    if nominated is None:
        if allowed:
            yield "nominated", None, sorted(allowed)
        elif decision.get("victims"):
            yield "victims", sorted(decision["victims"]), []
        return
    if nominated not in allowed:
        yield "nominated", nominated, sorted(allowed)
        return
    if decision.get("partial") and "victims" not in decision:
        return
    victims = sorted(pod.name for pod in allowed[nominated] if all_victims or not pod.terminating)
    if sorted(decision.get("victims") or ()) != victims:
        yield "victims", sorted(decision.get("victims") or ()), victims


def kind_of(doc: Doc, scenario: Scenario) -> Kind:
    """The kind of a recorded object; raises if it is unknown."""
    kind = kinds.Registry().by_kind(doc.get("apiVersion", ""), doc.get("kind", ""))
    if kind is None:
        raise ScenarioError(f"{scenario.file}:{scenario.line}: unknown kind {doc.get('apiVersion')} {doc.get('kind')}")
    return kind
