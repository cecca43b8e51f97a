"""From plugin names to plugins: those of families, installed ones and the user's own.

A name is one of a family's plugins, an entry point of the group `fairlead.plugins`, or `module:Name`. Nothing is
imported before it is requested, so reading a configuration costs no imports and one broken plugin does not stop the
others. A factory takes the plugin's args (a record of plugin_args, or the plain value from the file) and returns the
plugin; a Plugin class is such a factory.

Invariant: what is imported is imported once; `capabilities` never imports a plugin whose family names its points.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from fairlead.config.factories import makes
from fairlead.config.problems import suggestion
from fairlead.core.family import PluginEntry, families
from fairlead.core.framework.lift import NodeFilter, NodeScore
from fairlead.core.framework.plugin import Plugin
from fairlead.core.framework.results.cached_plugin import misplaced_members
from fairlead.errors import ConfigError

if TYPE_CHECKING:
    from fairlead.kube.config.plugin_args import Args

GROUP = "fairlead.plugins"

BUILT_IN: Mapping[str, PluginEntry] = {name: entry for family in families() for name, entry in family.plugins.items()}
"""The plugins of all families."""

METHOD_OF_POINT: Mapping[str, str] = {
    "preEnqueue": "pre_enqueue", "queueSort": "queue_key", "preFilter": "pre_filter", "filter": "filter",
    "postFilter": "post_filter", "preScore": "pre_score", "score": "score", "reserve": "reserve", "permit": "permit",
    "preBind": "pre_bind", "bind": "bind", "postBind": "post_bind", "placementGenerate": "placement_generate",
    "placementScore": "placement_score",
}  # fmt: skip
"""The extension points as our plugins spell them."""


def plugin_points(plugin: Plugin | type[Plugin]) -> frozenset[str]:
    """The extension points at which a plugin takes part: those whose method it overrides."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    return frozenset(
        point for point, method in METHOD_OF_POINT.items() if getattr(cls, method) is not getattr(Plugin, method)
    )


def installed_plugins() -> Mapping[str, EntryPoint]:
    """The plugins that installed distributions offer."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


class PluginRegistry:
    """Looks plugins up by name. `installed` is a parameter so that tests need not install anything."""

    def __init__(
        self, built_in: Mapping[str, PluginEntry] = BUILT_IN, installed: Mapping[str, EntryPoint] | None = None
    ) -> None:
        self._built_in = built_in
        self._installed = installed_plugins() if installed is None else installed
        self._resolved: dict[str, Any] = {}
        for name in self._installed:
            if name in built_in:
                raise ConfigError(f"a plugin named {name} already exists", hint=f"rename the entry point of {GROUP}")

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that can be listed; `module:Name` comes on top."""
        return (*self._built_in, *self._installed)

    @property
    def capabilities(self) -> Mapping[str, frozenset[str]]:
        """For kube/config/kube.py: which points each plugin implements."""
        return _Capabilities(self)

    def create(self, name: str, args: Args) -> Plugin:
        """The plugin of that name. Raises ConfigError if there is none or if it refuses its args."""
        found = self.find(name)
        if isinstance(found, NodeFilter | NodeScore):
            return found.named(name.rpartition(":")[2])
        if isinstance(found, Plugin):
            return _without_misplaced(found, name)
        if ":" in name and not makes(found, Plugin):
            what = "neither a Plugin class nor a function with the annotation `-> Plugin`, so it is not called"
            raise ConfigError(f'initializing plugin "{name}": {name.rpartition(":")[2]} is {what}', hint=_UNDECORATED)
        try:
            plugin = found(args) if _wants_args(found) else found()
        except ConfigError:
            raise
        except Exception as error:
            words = f'initializing plugin "{name}": {type(error).__name__}: {error}'
            raise ConfigError(words, hint="" if isinstance(found, type) else _UNDECORATED) from error
        if not isinstance(plugin, Plugin) and not isinstance(found, type):
            raise ConfigError(
                f'initializing plugin "{name}": {name.rpartition(":")[2]} gave no Plugin', hint=_UNDECORATED
            )
        if not isinstance(plugin, Plugin):
            raise ConfigError(f'initializing plugin "{name}": {type(plugin).__name__} is not a Plugin')
        if not plugin.name:
            plugin.name = name
        return _without_misplaced(plugin, name)

    def find(self, name: str) -> Any:
        """What the name stands for: a Plugin class, a factory or a ready plugin."""
        if name not in self._resolved:
            self._resolved[name] = self._load(name)
        return self._resolved[name]

    def points(self, name: str) -> frozenset[str]:
        """The points of a plugin; only those whose points no family names are imported for it."""
        entry = self._built_in.get(name)
        if entry is not None and entry.points is not None:
            return entry.points
        found = self.find(name)
        if isinstance(found, Plugin) or (isinstance(found, type) and issubclass(found, Plugin)):
            return plugin_points(found)
        return plugin_points(self.create(name, {}))

    def _load(self, name: str) -> Any:
        if name in self._built_in:
            return _imported(self._built_in[name].factory, name)
        if name in self._installed:
            return _imported(self._installed[name].value, name)
        if ":" in name:
            return _imported(name, name)
        raise ConfigError(f'plugin "{name}" does not exist', hint=suggestion(name, self.names))


_UNDECORATED = "decorate a function of a pod and a node with @node_filter(reason=...) or @node_score()"


class _Capabilities(Mapping[str, frozenset[str]]):
    """A view of a Registry; a `module:Name` that cannot be imported is a ConfigError, not an unknown name."""

    def __init__(self, registry: PluginRegistry) -> None:
        self._registry = registry

    def __getitem__(self, name: str) -> frozenset[str]:
        if name not in self._registry.names and ":" not in name:
            raise KeyError(name)
        return self._registry.points(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry.names)

    def __len__(self) -> int:
        return len(self._registry.names)


def _without_misplaced(plugin: Plugin, name: str) -> Plugin:
    """The plugin itself; raises if it defines something for the result cache that would not be called."""
    if misplaced := misplaced_members(plugin):
        hint = f"derive {type(plugin).__name__} from fairlead.CachedPlugin"
        raise ConfigError(f'initializing plugin "{name}": {"; ".join(misplaced)}', hint=hint)
    return plugin


def _imported(target: str, name: str) -> Any:
    module_name, _, attribute = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        hint = "is the directory on the Python path?" if isinstance(error, ModuleNotFoundError) else ""
        words = f'plugin "{name}": module {module_name} cannot be imported: {_said(error)}'
        raise ConfigError(words, hint=hint) from error
    try:
        return inspect.getattr_static(module, attribute) if "." not in attribute else _walk(module, attribute)
    except AttributeError:
        known = [known for known in vars(module) if not known.startswith("_")]
        words = f'plugin "{name}": module {module_name} has no {attribute}'
        raise ConfigError(words, hint=suggestion(attribute, known)) from None


def _said(error: Exception) -> str:
    """What an import raised; the name of the exception only where its words do not say it."""
    return str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"


def _walk(module: Any, attribute: str) -> Any:
    for part in attribute.split("."):
        module = getattr(module, part)
    return module


def _wants_args(factory: Any) -> bool:
    """A plugin that needs no args may be written without a parameter for them."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return True
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(parameter.kind in (*positional, inspect.Parameter.VAR_POSITIONAL) for parameter in parameters)
