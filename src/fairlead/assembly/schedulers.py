"""SchedulerAssembly: the one way from configurations to a Scheduler, and to what changes it while it runs.

`fairlead up`, `fairlead scheduler`, the demo, the Harness and the benchmarks make their schedulers here, so that a
configuration means the same to all of them.

    KubeConfig (of a file, or the default) ─┐
    VolcanoSetup, if wanted ────────────────┼─▶ profiles ─▶ Scheduler ◀── Reload, when a file has changed
    Options ────────────────────────────────┘

Invariant: a configuration that cannot be used raises ConfigError when the assembly is made or a file is loaded, never
later; a running scheduler keeps the last good one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fairlead.assembly.assemble import profiles_of
from fairlead.assembly.registry import PluginRegistry
from fairlead.config.watcher import ReloadOutcome
from fairlead.core.engine.scheduler import Options, Scheduler
from fairlead.core.framework.plugin import Plugin
from fairlead.core.framework.results.cached_plugin import misplaced_members
from fairlead.errors import ConfigError
from fairlead.kube.config.gates import OWN_GATES
from fairlead.kube.config.kube import default_kube_config

if TYPE_CHECKING:
    from fairlead.config.watcher import ConfigWatcher
    from fairlead.core.framework.extender import Extender
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Doc, DocView
    from fairlead.kube.config.gates import Gates
    from fairlead.kube.config.records import KubeConfig
    from fairlead.volcano.config.records import VolcanoConfig
    from fairlead.volcano.config.setup import VolcanoSetup

Reload = Callable[[Scheduler], Mapping[str, str]]
"""Gives a scheduler a new configuration, between two of its steps. Returns what to say of it in the log."""
Look = Callable[[], "Reload | None"]
"""Looks at a file once; None if there is nothing new."""
_OPTIONS = Options()


def default_scheduler(*, seed: int = 0, gates: Gates = OWN_GATES) -> Scheduler:
    """What schedules without a configuration file."""
    return SchedulerAssembly(gates=gates, options=Options(seed=seed)).scheduler()


class SchedulerAssembly:
    def __init__(
        self,
        config: KubeConfig | None = None,
        *,
        volcano: VolcanoSetup | None = None,
        gates: Gates = OWN_GATES,
        options: Options = _OPTIONS,
        plugins: Sequence[Plugin] = (),
    ) -> None:
        """`config` is the default one with these gates unless given; it also decides the backoffs of `options`.
        `plugins` take part in every kube profile, after those that the configuration names."""
        self.current = default_kube_config(gates=gates) if config is None else config
        self.volcano = volcano
        self._volcano_config = None if volcano is None else volcano.first_config()
        self._options = options
        self._plugins = tuple(map(_usable, plugins))
        self._view: DocView | None = None
        if config is not None:
            self._make_plugins(config)

    @property
    def card_config_map(self) -> tuple[str, str] | None:
        """The namespace and name of the ConfigMap that says what accelerator cards are like, if any are shared."""
        if self._volcano_config is None:
            return None
        from fairlead.volcano.config.devices import device_config_map

        return device_config_map(self._volcano_config)

    def scheduler(self, view: DocView | None = None, *, cards: Doc | None = None) -> Scheduler:
        """A Scheduler. Extenders are sent documents of the `view`; `cards` is what `card_config_map` names."""
        self._view = view
        if self.volcano is not None:
            volcano = self.volcano if view is None else self.volcano.with_documents(view)
            self.volcano = volcano if self.card_config_map is None else volcano.with_cards(cards)
        config = self.current
        options = replace(
            self._options,
            initial_backoff=config.pod_initial_backoff_seconds, max_backoff=config.pod_max_backoff_seconds,
        )  # fmt: skip
        return Scheduler(self._profiles(config, self._volcano_config), options)

    # ---- while it runs ----

    def load(self, text: str, *, file: str) -> KubeConfig:
        """A configuration of the same gates that can be used: its plugins are made, to find out."""
        from fairlead.assembly.loading import load_config

        capabilities = PluginRegistry().capabilities
        config = load_config(text, file=file, capabilities=capabilities, gates=self.current.gates)
        self._make_plugins(config)
        return config

    def look_at(self, watcher: ConfigWatcher[KubeConfig]) -> Reload | None:
        """A Look at the file of the kube profiles."""
        changed = watcher.look() is ReloadOutcome.CHANGED
        return partial(self._reload, config=watcher.current) if changed else None

    def look_at_volcano(self, watcher: ConfigWatcher[VolcanoConfig]) -> Reload | None:
        """A Look at Volcano's file."""
        changed = watcher.look() is ReloadOutcome.CHANGED
        return partial(self._reload_volcano, config=watcher.current) if changed else None

    def _reload(self, scheduler: Scheduler, config: KubeConfig) -> Mapping[str, str]:
        profiles = self._profiles(config, self._volcano_config)
        scheduler.reconfigure(
            profiles,
            initial_backoff=config.pod_initial_backoff_seconds,
            max_backoff=config.pod_max_backoff_seconds,
        )
        self.current = config
        return {"profiles": ", ".join(profile.name for profile in profiles)}

    def _reload_volcano(self, scheduler: Scheduler, config: VolcanoConfig) -> Mapping[str, str]:
        scheduler.reconfigure(self._profiles(self.current, config))
        self._volcano_config = config
        return {"actions": ", ".join(config.actions)}

    # ---- profiles ----

    def _profiles(self, config: KubeConfig, volcano_config: VolcanoConfig | None) -> list[Profile]:
        profiles: list[Profile] = []
        if self.volcano is None or not self.volcano.only:
            made = profiles_of(_without_managed_resources(config), extenders=self._extenders(config))
            profiles = [profile.with_plugins(self._plugins) for profile in made] if self._plugins else made
        if self.volcano is not None and volcano_config is not None:
            self.volcano.check_names(profiles)
            profiles.append(self.volcano.profile(volcano_config))
        return profiles

    def _extenders(self, config: KubeConfig) -> tuple[Extender, ...]:
        if not config.extenders or self._view is None:
            return ()
        from fairlead.kube.config.extenders import extenders_of

        return extenders_of(config, self._view)

    def _make_plugins(self, config: KubeConfig) -> None:
        """Make all plugins and throw them away, so that those which refuse their arguments do so now."""
        if self.volcano is None or not self.volcano.only:
            profiles_of(_without_managed_resources(config))


def _usable(plugin: object) -> Plugin:
    """A plugin object; raises ConfigError for what is none, or would not be heard."""
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
