"""Family: what one family of schedulers brings, as data; `families` returns all of them.

A family is a package such as `fairlead.kube`. The core, the cluster and the commands know no family by name: each of
their tables is the union of a built-in part and of what the families' records name. Records are read while the core is
imported, and for `fairlead --help`, so that the module of a record imports this one and nothing else. What has to be
imported is named as "module:name" and imported when it is used (`resolve`). For the same reason the records here
are NamedTuples: Python makes one in a fifth of the time that a dataclass takes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, Write
    from fairlead.core.model.kinds import Kind
    from fairlead.core.model.pod import Pod

_NAMED = "fairlead.builtin_families:named_families"
"""Returns the "module:name" of every record."""
Settings = TypeVar("Settings")
GroupReader = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Reads fields of fairlead.core.model.group's PodGroup, by their names, from a document."""


class ReadBy(Enum):
    """Which schedulers watch a kind: all; those with a profile that has a scheduling mode of its own; those with a
    plugin that names the kind."""

    ALL = "all"
    MODES = "modes"
    PLUGINS = "plugins"


@dataclass(frozen=True, slots=True)
class PodLike:
    """How objects of a kind are scheduled as pods: for each stands a pod that the API does not have.

    `as_pod` makes the document of that pod from the record of an object. `refused` makes the patch by which an object
    shows that an attempt failed, from its pod, the time, the reason and the message; None if it shows that already.
    `index` is "module:name" of a PodLikeIndex of fairlead.core.state.cluster, which clusters have from the first such
    object on.
    """

    as_pod: Callable[[Any], Doc]
    refused: Callable[[Pod, float, str, str], Write | None]
    index: str = ""


class KindEntry(NamedTuple):
    """A kind that scheduling reads.

    `compile` makes its record. `event` is the resource under which its changes wake pods; empty if they wake none. An
    `optional` kind is one that a server may not have, or that a scheduler of single pods may not be allowed to read.
    A kind of groups with `counts_ended` has its pods kept after they have ended, because its groups count them.
    `pod_like` is given for objects that are scheduled as pods.
    """

    kind: Kind
    compile: Callable[[Doc], Any]
    event: str = ""
    read_by: ReadBy = ReadBy.ALL
    optional: bool = True
    counts_ended: bool = False
    pod_like: PodLike | None = None


class PluginEntry(NamedTuple):
    """A scheduling plugin: "module:name" of its class or of the function that makes it from its arguments.

    `points` are the extension points at which it takes part; None if its methods are to be looked at, which imports it.
    """

    factory: str
    points: frozenset[str] | None = None


class ControllerEntry(NamedTuple):
    """A controller of embedded clusters: "module:name" of its class, whose `from_context` makes it.

    One that runs `with_plugins` cannot be chosen by name: it runs where a scheduler has plugins that read its family's
    kinds, and only there.
    """

    target: str
    with_plugins: bool = False


class CommandEntry(NamedTuple):
    """A command of `fairlead`: "module:name" of the click command, and its line in the list of commands.

    In that list it stands directly `before` or `after` one of fairlead's own commands, or last. A name that fairlead or
    a family before this one has taken cannot be given again.
    """

    target: str
    help: str
    after: str = ""
    before: str = ""


class SchedulerField(NamedTuple):
    """Where an object that stands for pods says who is to schedule them: the path to what has the field
    `schedulerName`, and the name that counts if it is not there."""

    path: tuple[str, ...]
    default: str


class Family(NamedTuple):
    """One family of schedulers; every field but the name may be left out. A text that is described as a table or as a
    function is its "module:name"."""

    name: str
    extends: tuple[str, ...] = ()
    """The families whose modules those of this one import. They come before it."""
    kinds: str = ""
    """A tuple of KindEntry: kinds that scheduling reads. A scheduler watches them in this order, after the kinds of
    Kubernetes."""
    plugins: Mapping[str, PluginEntry] = {}
    """Plugins by the name that configurations use."""
    modes: Mapping[str, str] = {}
    """Scheduling modes by the name in the settings of a profile: each makes a SchedulingMode from the SchedulerParts of
    fairlead.core.engine.modes."""
    finish: str = ""
    """A function (KubeProfile, Finish) -> KubeProfile of fairlead.kube.config.finish: what the family changes in a
    configured profile before its plugins are made, such as arguments that depend on feature gates."""
    arguments: str = ""
    """A mapping from plugins to the shapes of their arguments, fairlead.config.shapes, by which a file is checked. A
    plugin that is not in it takes what the file has."""
    gates: frozenset[str] = frozenset()
    """Feature gates of the family that `--feature-gates` takes; all are off unless they are requested."""
    gates_without_effect: str = ""
    """A mapping from those of these gates that nothing reads to what happens whatever they say."""
    presets: str = ""
    """A mapping of names to the texts of configurations that come with the family."""
    controllers: Mapping[str, ControllerEntry] = {}
    """Controllers by name, each after those whose objects it owns; they run in this order, after Kubernetes' own."""
    commands: Mapping[str, CommandEntry] = {}
    """Commands of `fairlead` by name."""
    grants: str = ""
    """A mapping from tasks to the rights that they take, tuples of Grant of fairlead.console.roles.grants. A task is
    the name of one of the family's controllers, or `PLUGINS`, or what the family's commands call it."""
    group_readers: str = ""
    """A mapping from API groups to the GroupReader of the family's PodGroups there."""
    group_annotations: str = ""
    """A mapping from annotations by which a pod names its group to the API group of that group."""
    group_preferences: str = ""
    """A GroupReader of annotations: what those of the family say of groups of other APIs."""
    group_of: str = ""
    """A function (labels, annotations) -> str: the name of the group that they put a pod into, for groups that the
    family's plugins hold together; the empty text for none."""
    adjust_node: str = ""
    """A function (allocatable, annotations) -> allocatable: what a node can allocate as its annotations change it,
    whichever plugins are named; the same dict if they do not."""
    served: str = ""
    """A tuple of all kinds of the family that the embedded API serves, in the order of discovery."""
    saved: str = ""
    """A tuple of the kinds that a snapshot of a cluster saves, those to which others refer first."""
    kept_annotations: tuple[str, ...] = ()
    """What annotations begin with by which the family schedules. Redacted snapshots keep them."""
    scheduler_fields: str = ""
    """A mapping from kinds of the family that stand for pods to their SchedulerField."""
    unattended: str = ""
    """A mapping from kinds on whose objects nobody acts where no scheduler of the family runs to what is said of
    them."""
    served_by: Mapping[str, str] = {}
    """Names of schedulers of the family, each with what makes a cluster serve it."""
    settings: str = ""
    """Makes the settings of the family's controllers and hooks of admission: a function of the setups of a cluster,
    fairlead.config.setup, and of its seed, which is None where the randomness is the operating system's."""
    hooks: str = ""
    """Makes the hooks of admission from the settings of all families: a mapping from kinds to `KindHooks` of
    fairlead.cluster.admission.hooks."""
    metrics: str = ""
    """Makes the family's source of metrics, a `MetricsSource` of fairlead.runtime.metrics."""
    replay: str = ""
    """The forms of recordings that the family's decisions come in: a sequence of `RecordedForm` of
    fairlead.kube.replay.recording."""
    explainers: Mapping[str, str] = {}
    """By the name of a field that explanations of the family's groups have: a function (console, document) that prints
    it for `fairlead explain`."""
    rows: str = ""
    """The family's workloads, queues, quotas and devices for people, a `FamilyRows` of
    fairlead.core.engine.explain.rows."""
    network_domains: str = ""
    """Makes the source of domains for groups with a network topology: a `NetworkDomains` of
    fairlead.kube.gangs.placements."""
    run_together: str = ""
    """A function (document of a pod, DocView) -> int: how many pods of its job have to run for a simulated pod of the
    family's jobs to compute; 0 if it computes alone."""
    what_if: str = ""
    """The family's part in questions about what would happen, a `WhatIf` of fairlead.core.engine.what_if.families."""


def resolve(target: str) -> Any:
    """What "module:name" names."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def brought(field_name: str) -> list[Any]:
    """What the families name in one field of their records, resolved, in the order of the families."""
    return [resolve(target) for family in families() if (target := getattr(family, field_name))]


def settings_of(settings: Iterable[object], which: type[Settings]) -> Settings:
    """Those settings that are of the type `which`, or its defaults. Settings of families are handed through the core
    and the cluster as one sequence, from which a family takes its own by their type."""
    return next((one for one in settings if isinstance(one, which)), None) or which()


def tables(field_name: str) -> dict[Any, Any]:
    """The union of the mappings that the families name in one field of their records."""
    return {key: value for table in brought(field_name) for key, value in table.items()}


def families_read(watched: Iterable[Kind]) -> list[Family]:
    """The families with plugins in a scheduler that watches these kinds: those with a kind that is read only where a
    plugin names it, and that is among them."""
    read = set(watched)
    return [
        family
        for family in families()
        if family.kinds
        and any(entry.read_by is ReadBy.PLUGINS and entry.kind in read for entry in resolve(family.kinds))
    ]


@cache
def families() -> tuple[Family, ...]:
    """The built-in families in the order of builtin_families.py, then those of entry points by name."""
    return tuple(resolve(target) for target in resolve(_NAMED)())
