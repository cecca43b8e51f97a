"""HyperNodes found by labels of nodes, as Volcano's hyperNode-controller makes them.

The ConfigMap volcano-controller-configmap of volcano-system says which labels describe the network:

    networkTopologyDiscovery:
    - source: label
      enabled: true
      config:
        networkTopologyTypes:
          fabric: [{nodeLabel: zone}, {nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]

Labels stand from the highest layer to the lowest; the last one is the host and makes no HyperNode. Nodes of one rack
are a HyperNode of tier 1, the racks of one zone a HyperNode of tier 2. A node that lacks a label counts in the layers
below it.

Invariant: only HyperNodes that bear our source label are written or deleted. While no such ConfigMap is there, nodes
are not looked at, and HyperNodes that were made before stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from fairlead.cluster.controllers.workqueue import ControllerContext, Reconciler
from fairlead.cluster.controllers.writes import create, delete, merge_patch, patch
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.core.model.kinds import CONFIG_MAP, NODE
from fairlead.errors import ConfigError
from fairlead.volcano.controller_settings import VolcanoSettings
from fairlead.volcano.jobs.job_pod_builder import random_word
from fairlead.volcano.kinds import VC_HYPER_NODE
from fairlead.volcano.records.quirks import FIXED, Quirks

if TYPE_CHECKING:
    from collections.abc import Callable

SYSTEM_NAMESPACE = "volcano-system"
CONFIG_NAME, CONFIG_KEY = "volcano-controller-configmap", "volcano-controller.conf"
SOURCE, LABEL_SOURCE = "volcano.sh/network-topology-source", "label"
_LONGEST_TYPE = 20  # longer names of types are refused, as by the original: they are part of object names
_SUFFIX = 5

Layers = tuple[str, ...]


class _Place(NamedTuple):
    """A value of a layer's label, within a value of the layer above where it occurs below several of them."""

    tier: int
    value: str
    within: _Place | None = None


@dataclass(slots=True)
class _Found:
    """A HyperNode as nodes describe it; members of tier 1 are names of nodes, of others places."""

    labels: dict[str, str]
    members: dict[_Place | str, None] = field(default_factory=dict)


class HyperNodeDiscovery(Reconciler[str]):
    """The one key is the source of the HyperNodes."""

    name = "volcano-hypernode-controller"
    component = "vc-controller-manager"
    watches: Sequence[Watch] = (
        Watch(CONFIG_MAP, namespace=SYSTEM_NAMESPACE, optional=True), Watch(NODE), Watch(VC_HYPER_NODE),
    )  # fmt: skip

    def __init__(
        self, view: DocView, *, read_yaml: Callable[[str], Any], announce: bool = True, quirks: Quirks = FIXED
    ) -> None:
        super().__init__(view, announce=announce)
        self._read_yaml, self._quirks = read_yaml, quirks
        self._config: Doc | None = None
        self._types: dict[str, Layers] = {}  # type -> labels from the lowest layer to the highest
        self._problem = ""
        self._labels: dict[str, Layers] = {}  # node -> values of all labels that matter

    @classmethod
    def from_context(cls, context: ControllerContext) -> Self:
        return cls(
            context.view,
            read_yaml=context.read_yaml,
            announce=context.announce,
            quirks=context.of(VolcanoSettings).quirks,
        )

    def observe(self, change: Change) -> None:
        doc, gone = change.doc, change.gone
        metadata = doc["metadata"]
        if change.kind is CONFIG_MAP:
            if (metadata.get("namespace"), metadata["name"]) == (SYSTEM_NAMESPACE, CONFIG_NAME):
                self._configure(None if gone else doc)
        elif not self._types:
            return
        elif change.kind is NODE:
            values = () if gone else self._values(doc)
            if self._labels.get(metadata["name"], ()) != values:
                self._labels[metadata["name"]] = values
                self.queue.add(LABEL_SOURCE)
        elif (metadata.get("labels") or {}).get(SOURCE) == LABEL_SOURCE:
            self.queue.add(LABEL_SOURCE)

    def _values(self, node: Doc) -> Layers:
        labels = node["metadata"].get("labels") or {}
        return tuple(labels.get(key, "") for layers in self._types.values() for key in layers)

    def _configure(self, config: Doc | None) -> None:
        before = ((self._config or {}).get("data") or {}).get(CONFIG_KEY)
        text = ((config or {}).get("data") or {}).get(CONFIG_KEY)
        self._config = config
        if text == before:
            return
        self._problem = ""
        try:
            self._types = read_topology_types({} if text is None else self._read_yaml(text))
        except ConfigError as error:
            self._problem = str(error)
        self._labels.clear()
        self.queue.add(LABEL_SOURCE)

    def visit(self, key: str, now: float) -> Iterator[Write]:
        if self._problem and self._config is not None:
            yield from self.event(CONFIG_MAP, self._config, "InvalidConfiguration", self._problem, warning=True)
            self._problem = ""
        if not self._types:
            return
        there = {
            doc["metadata"]["name"]: doc
            for doc in self.view.list(VC_HYPER_NODE)
            if (doc["metadata"].get("labels") or {}).get(SOURCE) == LABEL_SOURCE
        }
        wanted = self._wanted(there)
        for name, doc in wanted.items():
            if name not in there:
                yield create(VC_HYPER_NODE, doc)
            elif changes := _changes(there[name], doc):
                yield patch(VC_HYPER_NODE, there[name], changes)
        yield from (delete(VC_HYPER_NODE, doc) for name, doc in there.items() if name not in wanted)

    def _wanted(self, there: Mapping[str, Doc]) -> dict[str, Doc]:
        nodes = sorted(self.view.list(NODE), key=lambda node: str(node["metadata"]["name"]))
        documents: dict[str, Doc] = {}
        for type_name, layers in self._types.items():
            found = _hyper_nodes(layers, nodes, splits=not self._quirks.hyper_nodes_share_labels)
            names: dict[_Place | str, str] = {}
            for place, one in found.items():
                names[place] = _name(type_name, place, one.labels, there, names.values())
            for place, one in found.items():
                members = sorted(names.get(member, str(member)) for member in one.members)
                documents[names[place]] = _document(names[place], place.tier, layers[place.tier - 1], one, members)
        return documents


def read_topology_types(config: Any) -> dict[str, Layers]:
    """The labels of each type of network, lowest layer first and without the host; empty if labels are not used. Raises
    ConfigError."""
    types: dict[str, Layers] = {}
    sources = config.get("networkTopologyDiscovery") if isinstance(config, dict) else None
    for index, source in enumerate(sources or ()):
        where = f"{CONFIG_KEY}: networkTopologyDiscovery[{index}]"
        if not isinstance(source, dict):
            raise ConfigError(f"{where}: not a source", hint="write source, enabled and config")
        if not source.get("enabled"):
            continue
        if source.get("source") != LABEL_SOURCE:
            raise ConfigError(f'{where}.source: no discovery by "{source.get("source")}" here', hint="only label")
        described = (source.get("config") or {}).get("networkTopologyTypes") or {}
        for name, labels in described.items():
            types[str(name)] = _layers(f"{where}.config.networkTopologyTypes.{name}", str(name), labels)
    return {name: layers for name, layers in types.items() if layers}


def _layers(where: str, name: str, labels: Any) -> Layers:
    keys = [one.get("nodeLabel") if isinstance(one, dict) else None for one in labels or ()]
    if len(name) > _LONGEST_TYPE:
        raise ConfigError(f"{where}: the name has more than {_LONGEST_TYPE} characters")
    if not all(isinstance(key, str) and key for key in keys):
        raise ConfigError(f"{where}: each layer is written as nodeLabel: KEY")
    if len(set(keys)) != len(keys):
        raise ConfigError(f"{where}: there are duplicate labels")
    return tuple(str(key) for key in reversed(keys[:-1]))


def _hyper_nodes(layers: Layers, nodes: Iterable[Doc], *, splits: bool) -> dict[_Place, _Found]:
    """What nodes describe. A value of a label that occurs below several values of the layer above is as many HyperNodes
    if it `splits`, and else one with several parents."""
    chains = {node["metadata"]["name"]: _chain(node, layers) for node in nodes}
    above: dict[tuple[int, str], set[str]] = {}
    for values in chains.values():
        for layer, (own, upper) in enumerate(pairwise(values)):
            above.setdefault((layer, own), set()).add(upper)
    found: dict[_Place, _Found] = {}
    for node_name, values in chains.items():
        places: list[_Place] = []  # highest first
        for layer in reversed(range(len(values))):
            is_shared = splits and len(above.get((layer, values[layer]), ())) > 1
            place = _Place(layer + 1, values[layer], places[-1] if is_shared and places else None)
            labels = {} if place.within is None else found[place.within].labels
            found.setdefault(place, _Found({**labels, layers[layer]: values[layer]}))
            if places:
                found[places[-1]].members[place] = None
            places.append(place)
        if places:
            found[places[-1]].members[node_name] = None
    return found


def _chain(node: Doc, layers: Layers) -> list[str]:
    """The values of a node's labels, lowest layer first, up to the first that it does not have."""
    labels = node["metadata"].get("labels") or {}
    return [str(labels[key]) for key in takewhile(labels.__contains__, layers)]


def _name(
    type_name: str, place: _Place, labels: Mapping[str, str], there: Mapping[str, Doc], taken: Collection[str]
) -> str:
    """The name of a HyperNode that is there already with these labels, or a new one."""
    stem = f"hypernode-{_plain(type_name)}-tier{place.tier}"
    for name in sorted(there):
        own = there[name]["metadata"].get("labels") or {}
        if name.startswith(stem) and labels.items() <= own.items() and name not in taken:
            return name
    seed = [type_name, *(f"{key}={value}" for key, value in labels.items())]
    while (name := f"{stem}-{random_word(*seed)[:_SUFFIX]}") in there or name in taken:
        seed.append("again")
    return name


def _plain(text: str) -> str:
    """`text` as a part of an object's name."""
    return "".join(one.lower() if one.isascii() and (one.isalnum() or one in ".-") else "-" for one in text)


def _document(name: str, tier: int, key: str, found: _Found, members: Iterable[str]) -> Doc:
    kind = "Node" if tier == 1 else VC_HYPER_NODE.kind
    return {
        "apiVersion": VC_HYPER_NODE.api_version,
        "kind": VC_HYPER_NODE.kind,
        "metadata": {"name": name, "labels": {SOURCE: LABEL_SOURCE, **found.labels}},
        "spec": {
            "tier": tier,
            "tierName": key,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members],
        },
    }


def _changes(there: Doc, wanted: Doc) -> dict[str, Any]:
    """The merge patch that brings a HyperNode up to date; labels of others stay."""
    changes = {}
    if spec := merge_patch(there.get("spec") or {}, wanted["spec"]):
        changes["spec"] = spec
    own = there["metadata"].get("labels") or {}
    if labels := {key: value for key, value in wanted["metadata"]["labels"].items() if own.get(key) != value}:
        changes["metadata"] = {"labels": labels}
    return changes
