"""From a draft to profiles that can run: names resolved, points expanded, weights summed.

kube-scheduler starts its plugins at this point and stops at the first error; here all errors are collected. Two checks
are ours: names in `disabled` and in `pluginConfig` must exist too, because a misspelt one would silently do nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.config.problems import CheckStage, ConfigProblems, Path, suggestion
from fairlead.core.model.syntax import joined
from fairlead.errors import ConfigError
from fairlead.kube.config.plugin_args import Args, NodeResourcesFitArgs
from fairlead.kube.config.plugin_args_validation import args_errors
from fairlead.kube.config.plugin_sets import (
    ANY,
    PLUGIN_TYPES,
    SCORING_POINTS,
    Capabilities,
    PluginRef,
    Points,
    expand,
    needed_plugins,
    score_weights,
)
from fairlead.kube.config.records import KubeProfile
from fairlead.kube.config.shapes import POINTS
from fairlead.kube.config.validation import REMOVED

if TYPE_CHECKING:
    from fairlead.kube.config.draft import Draft, DraftProfile
    from fairlead.kube.config.gates import Gates

MAX_TOTAL_SCORE = 2**63 - 1
FORMER_PLUGINS = (
    *REMOVED, "NodeLabel", "NodePreferAvoidPods", "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated",
    "RequestedToCapacityRatio", "SelectorSpread", "ServiceAffinity",
)  # fmt: skip
"""Plugins of earlier versions: to disable one is pointless but no mistake."""


@dataclass(frozen=True, slots=True)
class Building:
    """What the checks of all profiles share."""

    capabilities: Capabilities
    gates: Gates
    problems: ConfigProblems
    notices: list[str]


def build_profiles(draft: Draft, building: Building) -> tuple[KubeProfile, ...]:
    ignored = _ignored_resources(draft, building.problems)
    built = [
        _ProfileBuilder(at, profile, building).build(draft.percentage, ignored)
        for at, profile in enumerate(draft.profiles)
    ]
    _same_queue_sort(built, building.problems)
    return tuple(built)


def _ignored_resources(draft: Draft, problems: ConfigProblems) -> tuple[str, ...]:
    """What extenders manage alone takes the place of NodeResourcesFit's ignoredResources in every profile."""
    ignored = tuple(
        resource.name
        for extender in draft.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    for at, profile in enumerate(draft.profiles):
        if ignored and all(entry.name != "NodeResourcesFit" for entry in profile.plugin_config):
            words = "can't find NodeResourcesFitArgs in plugin config"
            hint = "an extender's ignoredByScheduler needs the plugin NodeResourcesFit in every profile"
            original = f"couldn't build extenders: {words}"
            problems.note(CheckStage.BUILDING, ("profiles", at, "pluginConfig"), words, hint=hint, original=original)
    return ignored


def _same_queue_sort(profiles: Sequence[KubeProfile], problems: ConfigProblems) -> None:
    first = profiles[0]
    for at, profile in enumerate(profiles[1:], start=1):
        names, expected = profile.points["queueSort"], first.points["queueSort"]
        if len(names) != 1 or len(expected) != 1:
            continue
        name, wanted, path = names[0][0], expected[0][0], ("profiles", at)
        words = ""
        if name != wanted:
            words = f'different queue sort plugins for profile "{profile.scheduler_name}": "{name}", first: "{wanted}"'
        elif profile.args.get(name) != first.args.get(name):
            words = f'different queue sort plugin args for profile "{profile.scheduler_name}"'
        if words:
            problems.note(CheckStage.BUILDING, path, words, original=f"initializing profiles: {words}")


class _ProfileBuilder:
    def __init__(self, at: int, draft: DraftProfile, building: Building) -> None:
        self._at: Path = ("profiles", at)
        self._draft = draft
        self._building = building
        self._context = f"initializing profiles: creating profile for scheduler name {draft.scheduler_name}: "
        self._known = {name: self._points_of(name) for name in needed_plugins(draft.plugins)}

    def build(self, percentage: int | None, ignored: tuple[str, ...]) -> KubeProfile:
        draft = self._draft
        args = self._args(ignored)
        self._check_explicit_points()
        self._check_multi_point()
        self._check_idle_names()
        points = expand(draft.plugins, {name: points for name, points in self._known.items() if points is not None})
        self._check_counts(points)
        self._check_weights()
        return KubeProfile(
            scheduler_name=draft.scheduler_name,
            points=points,
            args=args,
            plugins=draft.plugins,
            percentage_of_nodes_to_score=percentage if draft.percentage is None else draft.percentage,
            own_percentage_of_nodes_to_score=draft.percentage,
        )

    def _note(self, path: Path, words: str, *, hint: str = "", original: str | None = None) -> None:
        self._building.problems.note(
            CheckStage.BUILDING,
            (*self._at, *path),
            words,
            hint=hint,
            original=self._context + words if original is None else original,
        )

    def _points_of(self, name: str) -> frozenset[str] | None:
        try:
            return self._building.capabilities.get(name)
        except ConfigError as error:
            self._note(self._mention(name), error.message, hint=error.hint)
            return frozenset()

    def _mention(self, name: str) -> Path:
        """Where the file enables a plugin."""
        for point in ("multiPoint", *POINTS):
            for at, ref in enumerate(self._draft.user[point].enabled):
                if ref.name == name:
                    return ("plugins", point, "enabled", at, "name")
        return ("plugins",)

    # ---- args ----

    def _args(self, ignored: tuple[str, ...]) -> Mapping[str, Args]:
        result: dict[str, Args] = {}
        for entry in self._draft.plugin_config:
            args = entry.args
            if isinstance(args, NodeResourcesFitArgs):
                args = replace(args, ignored_resources=ignored) if ignored else args
                self._check_fit(args, entry.at)
            if entry.name in self._known:
                result.setdefault(entry.name, args)
            elif entry.at is not None:
                self._check_unused_args(entry.name, entry.at)
        return result

    def _check_fit(self, args: NodeResourcesFitArgs, at: int | None) -> None:
        """The original looks at these when it starts the plugin."""
        errors = args_errors((), args, self._building.gates) if "NodeResourcesFit" in self._known else []
        whole = joined(str(error) for error in errors) if errors else ""
        original = f'{self._context}initializing plugin "NodeResourcesFit": {whole}'
        for error in errors:
            path: Path = ("pluginConfig", at or 0, "args", *error.path)
            self._note(path, error.body, hint=error.hint, original=original)
            original = ""

    def _check_unused_args(self, name: str, at: int) -> None:
        where = f"{self._draft.scheduler_name}: pluginConfig[{at}]"
        if name in self._building.capabilities:
            self._building.notices.append(f"{where}: plugin {name} is not enabled, its args have no effect")
        elif name not in REMOVED:
            hint = suggestion(name, self._building.capabilities)
            self._note(("pluginConfig", at, "name"), f'plugin "{name}" does not exist', hint=hint, original="")

    # ---- sets ----

    def _check_explicit_points(self) -> None:
        for point in PLUGIN_TYPES:
            seen: set[str] = set()
            for at, ref in enumerate(self._draft.plugins[point].enabled):
                self._check_explicit(point, at, ref, seen)
                seen.add(ref.name)

    def _check_explicit(self, point: str, at: int, ref: PluginRef, seen: set[str]) -> None:
        path, kind = ("plugins", point, "enabled", at, "name"), PLUGIN_TYPES[point]
        points = self._known[ref.name]
        if points is None:
            self._note(path, f'{kind} "{ref.name}" does not exist', hint=self._suggest(ref.name, point))
        elif point not in points:
            hint = f"it takes part at {', '.join(name for name in POINTS if name in points)}" if points else ""
            self._note(path, f'plugin "{ref.name}" does not extend {kind} plugin', hint=hint)
        elif ref.name in seen:
            self._note(path, f'plugin "{ref.name}" already registered as "{kind}"')
        elif point in SCORING_POINTS and not ref.weight:
            self._notice_lost_weight(point, ref.name)

    def _notice_lost_weight(self, point: str, name: str) -> None:
        weight = next((ref.weight for ref in self._draft.plugins["multiPoint"].enabled if ref.name == name), 0)
        if weight > 1:
            where = f"{self._draft.scheduler_name}: plugins.{point}.enabled"
            words = f"{where}: {name} is listed without a weight and weighs 1 instead of {weight}"
            self._building.notices.append(words)

    def _suggest(self, name: str, point: str = "") -> str:
        capabilities = self._building.capabilities
        fitting = [known for known in capabilities if not point or point in capabilities[known]]
        return suggestion(name, fitting) or suggestion(name, capabilities)

    def _check_multi_point(self) -> None:
        seen: set[str] = set()
        first = [point for point in PLUGIN_TYPES if ANY not in self._draft.plugins[point].disabled][:1]
        for ref in self._draft.plugins["multiPoint"].enabled:
            points = self._known[ref.name]
            if points is None:
                for point in first:
                    words = f'{PLUGIN_TYPES[point]} "{ref.name}" does not exist'
                    self._note(self._in_multi_point(ref.name), words, hint=self._suggest(ref.name))
            elif ref.name in seen:
                self._check_repeated(ref.name, points)
            seen.add(ref.name)

    def _check_repeated(self, name: str, points: frozenset[str]) -> None:
        """Twice in multiPoint is wrong only where the plugin is not listed or disabled by the point itself."""
        for point, kind in PLUGIN_TYPES.items():
            here = self._draft.plugins[point]
            settled = {ANY, name} & {*here.disabled} or any(ref.name == name for ref in here.enabled)
            if point in points and not settled:
                self._note(self._in_multi_point(name), f'plugin "{name}" already registered as "{kind}"')
                return

    def _in_multi_point(self, name: str) -> Path:
        mentions = [at for at, ref in enumerate(self._draft.user["multiPoint"].enabled) if ref.name == name]
        return ("plugins", "multiPoint", "enabled", mentions[-1], "name") if mentions else ("plugins", "multiPoint")

    def _check_idle_names(self) -> None:
        for point, plugin_set in self._draft.user.items():
            for at, name in enumerate(plugin_set.disabled):
                if name == ANY or name in self._building.capabilities:
                    continue
                if name in FORMER_PLUGINS:
                    words = f"plugins.{point}.disabled[{at}]: plugin {name} no longer exists"
                    self._building.notices.append(f"{self._draft.scheduler_name}: {words}")
                else:
                    path: Path = ("plugins", point, "disabled", at, "name")
                    self._note(path, f'plugin "{name}" does not exist', hint=self._suggest(name), original="")

    # ---- the whole ----

    def _check_counts(self, points: Points) -> None:
        name = self._draft.scheduler_name
        sorts = len(points["queueSort"])
        if sorts != 1:
            words = f'only one queue sort plugin required for profile with scheduler name "{name}", but got {sorts}'
            self._note(("plugins", "queueSort"), words, hint="" if sorts else "enable PrioritySort")
        if not points["bind"]:
            words = f'at least one bind plugin is needed for profile with scheduler name "{name}"'
            self._note(("plugins", "bind"), words, hint="enable DefaultBinder")
        if len(points["placementGenerate"]) > 1:
            words = f'at most one placement generate plugin is allowed for profile with scheduler name "{name}"'
            self._note(("plugins", "placementGenerate"), words)

    def _check_weights(self) -> None:
        for point, title in (("score", "score plugins"), ("placementScore", "placement score plugins")):
            total = 0
            for name, weight in score_weights(point, self._draft.plugins).items():
                if point not in (self._known[name] or ()):
                    continue
                # The original subtracts in 64 bits: a negative sum so far makes its difference wrap around.
                if total < 0 or weight * 100 > MAX_TOTAL_SCORE - total:
                    words = f"{title}: total score of Score plugins could overflow"
                    self._note(("plugins", point), words, hint="a weight is negative or far too large")
                    break
                total += weight * 100
