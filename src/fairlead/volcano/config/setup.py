"""VolcanoSetup: everything that makes a scheduler serve pods with the Volcano profile.

It is a volcano-scheduler.conf (or the name of a preset) and what Volcano takes as flags. Heavy imports are inside the
methods, because most processes that could have a VolcanoSetup have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.errors import ConfigError
from fairlead.volcano.config.options import VolcanoOptions
from fairlead.volcano.family import FAMILY

if TYPE_CHECKING:
    from fairlead.config.watcher import ConfigWatcher
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Controller, Doc, DocView
    from fairlead.core.model.usage import UsageBoard
    from fairlead.volcano.config.records import VolcanoConfig


@dataclass(frozen=True, slots=True)
class VolcanoSetup:
    """`conf` is a file or a preset; `compatible` keeps the original's known bugs; `only` serves no kube profile."""

    conf: str = "default"
    options: VolcanoOptions = field(default_factory=VolcanoOptions)
    compatible: bool = False
    only: bool = False

    @property
    def file(self) -> Path | None:
        """The file to follow; None for a preset."""
        from fairlead.volcano.config.presets import PRESETS

        return None if self.conf in PRESETS else Path(self.conf)

    def load(self, text: str) -> VolcanoConfig:
        """A configuration that can be used: its plugins are made, to find out."""
        from fairlead.volcano.config.reading import load_volcano_config

        config = load_volcano_config(text, file=self.conf, compatible=self.compatible)
        self.profile(config)
        return config

    def first_config(self) -> VolcanoConfig:
        from fairlead.config.source import read_text
        from fairlead.volcano.config.presets import PRESETS

        return self.load(PRESETS[self.conf] if self.file is None else read_text(self.conf, presets=PRESETS))

    @property
    def family(self) -> str:
        return FAMILY.name

    @property
    def scheduler_names(self) -> Sequence[str]:
        return self.options.scheduler_names

    @property
    def usage(self) -> UsageBoard:
        return self.options.usage

    def summary(self, config: VolcanoConfig) -> Mapping[str, str]:
        return {"actions": ", ".join(config.actions)}

    def config_map(self, config: VolcanoConfig) -> tuple[str, str] | None:
        """Says what accelerator cards are like, if any are shared."""
        from fairlead.volcano.config.devices import device_config_map

        return device_config_map(config)

    def prepared(self, config: VolcanoConfig, view: DocView | None, config_map: Doc | None) -> VolcanoSetup:
        """With documents to send to extenders, and with what a ConfigMap says of accelerator cards."""
        seen = self if view is None else self.with_documents(view)
        return seen if self.config_map(config) is None else seen.with_cards(config_map)

    def profiles(self, config: VolcanoConfig, others: Sequence[Profile]) -> Sequence[Profile]:
        self.check_names(others)
        return (self.profile(config),)

    def profile(self, config: VolcanoConfig) -> Profile:
        from fairlead.volcano.config.build import profile_of_volcano

        made = profile_of_volcano(config, self.options)
        self.options.usage.metrics = config.metrics
        return made

    def with_cards(self, config_map: Doc | None) -> VolcanoSetup:
        """The same with what a ConfigMap says of accelerator cards."""
        from fairlead.volcano.config.devices import device_config

        return replace(self, options=replace(self.options, devices=device_config(config_map)))

    def with_documents(self, view: DocView) -> VolcanoSetup:
        """The same with documents to send to extenders."""
        return replace(self, options=replace(self.options, documents=view.get))

    def watcher(self, notify: Callable[[str], None]) -> ConfigWatcher[VolcanoConfig] | None:
        from fairlead.config.watcher import ConfigWatcher

        return None if self.file is None else ConfigWatcher(self.file, self.load, notify)

    def check_names(self, profiles: Sequence[Profile]) -> None:
        """No pod may belong to two profiles."""
        for profile in profiles:
            if profile.name in self.options.scheduler_names:
                raise ConfigError(
                    f"the scheduler name \"{profile.name}\" is both a kube profile's and Volcano's",
                    hint="rename one of them, or leave the kube profiles out with --volcano-only",
                )

    def first_objects(self, view: DocView) -> Controller:
        """Makes the queues that must be there, as the original does when it starts."""
        from fairlead.volcano.queues.controller import FirstQueues

        return FirstQueues(view, default=self.options.default_queue)
