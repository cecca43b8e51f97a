"""SchedulerAssembly: the one way from configurations to a Scheduler, and to what changes it while it runs.

`fairlead up`, `fairlead scheduler`, the demo, the Harness and the benchmarks make their schedulers here, so that a
configuration means the same to all of them.

    KubeConfig (of a file, or the default) ─┐
    Setups of families, if wanted ──────────┼─▶ profiles ─▶ Scheduler ◀── Reload, when a file has changed
    Options ────────────────────────────────┘

Invariant: a configuration that cannot be used raises ConfigError when the assembly is made or a file is loaded, never
later; a running scheduler keeps the last good one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlead.assembly.assemble import profiles_of
from fairlead.assembly.registry import PluginRegistry
from fairlead.config.watcher import ReloadOutcome
from fairlead.core.engine.scheduler import Options, Scheduler
from fairlead.core.family import families, resolve
from fairlead.core.framework.plugin import Plugin
from fairlead.core.framework.results.cached_plugin import misplaced_members
from fairlead.errors import ConfigError
from fairlead.kube.config.gates import OWN_GATES
from fairlead.kube.config.kube import default_kube_config

if TYPE_CHECKING:
    from fairlead.config.setup import Setup
    from fairlead.config.watcher import ConfigWatcher, Notify
    from fairlead.core.framework.extender import Extender
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Controller, Doc, DocView
    from fairlead.core.model.kinds import Kind
    from fairlead.core.model.usage import UsageBoard
    from fairlead.kube.config.gates import Gates
    from fairlead.kube.config.records import KubeConfig

Reload = Callable[[Scheduler], Mapping[str, str]]
"""Gives a scheduler a new configuration, between two of its steps. Returns what to say of it in the log."""
Look = Callable[[], "Reload | None"]
"""Looks at a file once; None if there is nothing new."""
_OPTIONS = Options()
_NO_DOCUMENTS: Mapping[tuple[str, str], Doc | None] = {}


def default_scheduler(*, seed: int = 0, gates: Gates = OWN_GATES) -> Scheduler:
    """What schedules without a configuration file."""
    return SchedulerAssembly(gates=gates, options=Options(seed=seed)).scheduler()


class SchedulerAssembly:
    def __init__(
        self,
        config: KubeConfig | None = None,
        *,
        setups: Sequence[Setup] = (),
        gates: Gates = OWN_GATES,
        options: Options = _OPTIONS,
        plugins: Sequence[Plugin] = (),
    ) -> None:
        """`config` is the default one with these gates unless given; it also decides the backoffs of `options`.
        `setups` make further profiles, with the scheduling modes of their families; `plugins` take part in every kube
        profile, after those that the configuration names."""
        self.current = default_kube_config(gates=gates) if config is None else config
        self.setups = tuple(setups)
        self._configs = [setup.first_config() for setup in self.setups]
        self._options = options
        self._plugins = tuple(map(_usable, plugins))
        self._view: DocView | None = None
        self._watchers: list[ConfigWatcher[Any]] = []
        if config is not None:
            self._make_plugins(config)

    @property
    def config_maps(self) -> Sequence[tuple[str, str]]:
        """Namespaces and names of the ConfigMaps that the setups read once, before the scheduler is made."""
        return [place for setup, config in self._served() if (place := setup.config_map(config)) is not None]

    @property
    def scheduler_names(self) -> frozenset[str]:
        """The names by which pods choose one of the setups."""
        return frozenset(name for setup in self.setups for name in setup.scheduler_names)

    @property
    def controllers(self) -> Sequence[str]:
        """Names of the controllers of families that have one of the setups. A plain cluster does not have them."""
        present = {setup.family for setup in self.setups}
        return [
            name
            for family in families()
            if family.name in present
            for name, entry in family.controllers.items()
            if not entry.with_plugins
        ]

    @property
    def unattended(self) -> Mapping[Kind, str]:
        """Kinds of families that have none of the setups, each with why nobody acts on its objects."""
        present = {setup.family for setup in self.setups}
        absent = [family for family in families() if family.name not in present]
        named = [resolve(family.unattended) for family in absent if family.unattended]
        return {kind: words for table in named for kind, words in table.items()}

    @property
    def usage_boards(self) -> Sequence[UsageBoard]:
        """Where the use of nodes is written down for the setups."""
        return [setup.usage for setup in self.setups if setup.usage is not None]

    def scheduler(
        self, view: DocView | None = None, *, config_maps: Mapping[tuple[str, str], Doc | None] = _NO_DOCUMENTS
    ) -> Scheduler:
        """A Scheduler. Extenders are sent documents of the `view`; `config_maps` are documents by `config_maps`."""
        self._view = view
        self.setups = tuple(
            setup.prepared(config, view, None if place is None else config_maps.get(place))
            for setup, config in self._served()
            for place in (setup.config_map(config),)
        )
        config = self.current
        options = replace(
            self._options,
            initial_backoff=config.pod_initial_backoff_seconds,
            max_backoff=config.pod_max_backoff_seconds,
            pops_from_backoff="SchedulerPopFromBackoffQ" in config.gates,
        )
        return Scheduler(self._profiles(config, self._configs), options)

    def first_objects(self, view: DocView) -> list[Controller]:
        """Controllers that make what must be there before a pod is scheduled."""
        return [setup.first_objects(view) for setup in self.setups]

    # ---- while it runs ----

    def load(self, text: str, *, file: str) -> KubeConfig:
        """A configuration of the same gates that can be used: its plugins are made, to find out."""
        from fairlead.assembly.loading import load_config

        capabilities = PluginRegistry().capabilities
        config = load_config(text, file=file, capabilities=capabilities, gates=self.current.gates)
        self._make_plugins(config)
        return config

    @property
    def refused(self) -> list[str]:
        """What is wrong with files that cannot be used as they are now."""
        return [watcher.trouble for watcher in self._watchers if watcher.trouble]

    def follow(self, watcher: ConfigWatcher[KubeConfig]) -> None:
        """Count the file of the kube profiles among those that may be `refused`."""
        self._watchers.append(watcher)

    def look_at(self, watcher: ConfigWatcher[KubeConfig]) -> Reload | None:
        """A Look at the file of the kube profiles."""
        changed = watcher.look() is ReloadOutcome.CHANGED
        return partial(self._reload, config=watcher.current) if changed else None

    def looks_of_setups(self, notify: Notify) -> list[Look]:
        """A Look at the file of each setup that has one."""
        found = [(at, setup.watcher(notify)) for at, setup in enumerate(self.setups)]
        watchers = [(at, watcher) for at, watcher in found if watcher is not None]
        self._watchers += [watcher for _, watcher in watchers]
        return [partial(self._look_at_setup, at, watcher) for at, watcher in watchers]

    def _look_at_setup(self, at: int, watcher: ConfigWatcher[Any]) -> Reload | None:
        changed = watcher.look() is ReloadOutcome.CHANGED
        return partial(self._reload_setup, at=at, config=watcher.current) if changed else None

    def _reload(self, scheduler: Scheduler, config: KubeConfig) -> Mapping[str, str]:
        profiles = self._profiles(config, self._configs)
        scheduler.reconfigure(
            profiles,
            initial_backoff=config.pod_initial_backoff_seconds,
            max_backoff=config.pod_max_backoff_seconds,
        )
        self.current = config
        return {"profiles": ", ".join(profile.name for profile in profiles)}

    def _reload_setup(self, scheduler: Scheduler, at: int, config: object) -> Mapping[str, str]:
        configs = [*self._configs[:at], config, *self._configs[at + 1 :]]
        scheduler.reconfigure(self._profiles(self.current, configs))
        self._configs = configs
        return self.setups[at].summary(config)

    # ---- profiles ----

    def _served(self) -> Iterator[tuple[Setup, Any]]:
        return zip(self.setups, self._configs, strict=True)

    @property
    def _serves_kube(self) -> bool:
        return not any(setup.only for setup in self.setups)

    def _profiles(self, config: KubeConfig, configs: Sequence[object]) -> list[Profile]:
        profiles: list[Profile] = []
        if self._serves_kube:
            made = profiles_of(_without_managed_resources(config), extenders=self._extenders(config))
            profiles = [profile.with_plugins(self._plugins) for profile in made] if self._plugins else made
        for setup, of_setup in zip(self.setups, configs, strict=True):
            profiles += setup.profiles(of_setup, profiles)
        return profiles

    def _extenders(self, config: KubeConfig) -> tuple[Extender, ...]:
        if not config.extenders or self._view is None:
            return ()
        from fairlead.kube.config.extenders import extenders_of

        return extenders_of(config, self._view)

    def _make_plugins(self, config: KubeConfig) -> None:
        """Make all plugins and throw them away, so that those which refuse their arguments do so now."""
        if self._serves_kube:
            profiles_of(_without_managed_resources(config))


def _usable(plugin: object) -> Plugin:
    """A plugin object; raises ConfigError for what is no plugin, or would not be called."""
    if not isinstance(plugin, Plugin):
        what = plugin.__name__ if isinstance(plugin, type) else repr(plugin)
        hint = "call the class" if isinstance(plugin, type) else "decorate a function with @node_filter or @node_score"
        raise ConfigError(f"{what} is not a plugin object", path="plugins", hint=hint)
    if wrong := misplaced_members(plugin):
        raise ConfigError("; ".join(wrong), path=f"plugins: {plugin.name}")
    return plugin


def _without_managed_resources(config: KubeConfig) -> KubeConfig:
    """Resources that an extender counts are not counted here."""
    if not config.extenders:
        return config
    from fairlead.kube.config.extenders import without_what_extenders_manage

    return without_what_extenders_manage(config)
