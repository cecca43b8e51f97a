"""Setup: how a scheduler serves pods with the scheduling mode of one family, beside the profiles of kube-scheduler.

A family's setup is made from its flags and its own file. An assembly turns it into profiles, follows the file and runs
what must be there first, without knowing whose it is. The configuration of a file is opaque to the assembly: it comes
from the setup and goes back to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from fairlead.config.watcher import ConfigWatcher
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Controller, Doc, DocView
    from fairlead.core.model.usage import UsageBoard


class Setup(Protocol):
    """`family` is the name of the family's record; with `only` no kube profile is served."""

    @property
    def family(self) -> str: ...

    @property
    def only(self) -> bool: ...

    @property
    def scheduler_names(self) -> Sequence[str]:
        """The names by which pods choose this mode."""

    @property
    def usage(self) -> UsageBoard | None:
        """Where the use of nodes is written down for the profiles, if they read it."""

    def first_config(self) -> Any:
        """The configuration at the start. Raises ConfigError if it cannot be used."""

    def config_map(self, config: Any) -> tuple[str, str] | None:
        """The namespace and name of a ConfigMap that is read once, before the scheduler is made; None if there is
        none."""

    def prepared(self, config: Any, view: DocView | None, config_map: Doc | None) -> Self:
        """The same for a scheduler that sees `view`, with what its ConfigMap says."""

    def profiles(self, config: Any, others: Sequence[Profile]) -> Sequence[Profile]:
        """The profiles of a configuration, served beside `others`. Raises ConfigError if a name is taken."""

    def watcher(self, notify: Callable[[str], None]) -> ConfigWatcher[Any] | None:
        """What follows the file; None if there is none."""

    def summary(self, config: Any) -> Mapping[str, str]:
        """What the log says of a configuration that has been read again."""

    def first_objects(self, view: DocView) -> Controller:
        """Makes the objects that must be there before any pod is scheduled."""
