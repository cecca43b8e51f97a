"""KubeSchedulerConfiguration v1, read as kube-scheduler reads it.

    text -> source (lines) -> strict decoding -> draft (defaults, merged sets) -> validation, building -> KubeConfig

Errors carry the original's words, the file, the line, the path of the field and a suggestion, all of them at once.
One default is ours: without `percentageOfNodesToScore` every node is scored, because that is cheap here; it is None in
the records. 0 is the original's adaptive formula.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from fairlead.config.problems import CheckStage, ConfigProblems, Path, dotted, suggestion
from fairlead.config.shapes import ConfigStruct, Decoder, go_kind, note_unknown_fields
from fairlead.config.source import Source, document_source, note_duplicates
from fairlead.core.family import brought
from fairlead.kube.config.build import Building, build_profiles
from fairlead.kube.config.draft import draft_configuration
from fairlead.kube.config.gates import DEFAULT_GATES, Gates
from fairlead.kube.config.plugin_sets import IN_TREE, Capabilities
from fairlead.kube.config.records import KubeConfig
from fairlead.kube.config.shapes import API_VERSION, CONFIGURATION, GROUP, KIND, PLUGIN_ARGS
from fairlead.kube.config.validation import validate
from fairlead.kube.config.without_effect import moved_without_effect

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

SCHEME = "pkg/runtime/scheme.go:111"
_NO_TYPE_META = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct"
    ' {{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }}'
)


@cache
def _args_of_families() -> Mapping[str, ConfigStruct]:
    """The shapes of arguments of plugins that other families bring."""
    return {name: shape for shapes in brought("arguments") for name, shape in shapes.items()}


def kube_config_from(
    document: Doc, *, capabilities: Capabilities = IN_TREE, gates: Gates = DEFAULT_GATES
) -> KubeConfig:
    """A configuration from a document that is parsed already."""
    return configuration_from(document_source(document), capabilities=capabilities, gates=gates)


def default_kube_config(*, capabilities: Capabilities = IN_TREE, gates: Gates = DEFAULT_GATES) -> KubeConfig:
    """What runs without a configuration file."""
    return kube_config_from({"apiVersion": API_VERSION, "kind": KIND}, capabilities=capabilities, gates=gates)


def configuration_from(source: Source, *, capabilities: Capabilities, gates: Gates) -> KubeConfig:
    problems = ConfigProblems(source)
    check_kind(source, problems)
    decoded = _decode(source, problems)
    problems.raise_if_any(before=CheckStage.STRICT)
    draft = draft_configuration(decoded, gates)
    validate(draft, gates, problems)
    notices = ["only the first document of the file is read"] if source.more_documents else []
    profiles = build_profiles(draft, Building(capabilities, gates, problems, notices))
    problems.raise_if_any()
    config = KubeConfig(
        profiles=profiles,
        parallelism=draft.parallelism,
        leader_election=draft.leader_election,
        client_connection=draft.client_connection,
        enable_profiling=draft.enable_profiling,
        enable_contention_profiling=draft.enable_contention_profiling,
        percentage_of_nodes_to_score=draft.percentage,
        pod_initial_backoff_seconds=draft.pod_initial_backoff_seconds,
        pod_max_backoff_seconds=draft.pod_max_backoff_seconds,
        extenders=draft.extenders,
        delay_cache_until_active=draft.delay_cache_until_active,
        gates=gates,
    )
    return replace(config, notices=(*notices, *moved_without_effect(config)))


def check_kind(source: Source, problems: ConfigProblems) -> None:
    """Raise at once unless this is a KubeSchedulerConfiguration: no other check would make sense."""
    document, header = source.value, f"apiVersion: {API_VERSION}, kind: {KIND}"
    if document is None:
        document = {}
    if not isinstance(document, dict):
        words = _NO_TYPE_META.format(go_kind(document))
        problems.note(CheckStage.SYNTAX, (), "the file is not a mapping", hint=f"begin with {header}", original=words)
        problems.raise_if_any()
    for field, name in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        words = _no_text(field, document)
        if words:
            problems.note(CheckStage.SYNTAX, (field,), words, hint="wanted here: a text", original=words)
            problems.raise_if_any()
        if not document.get(field):
            original = f"Object '{name}' is missing in '{source.text}'"
            words = f"Object '{name}' is missing"
            problems.note(CheckStage.SYNTAX, (field,), words, hint=f"begin with {header}", original=original)
            problems.raise_if_any()
    _check_registered(document["apiVersion"], document["kind"], problems)
    problems.raise_if_any()


def _no_text(field: str, document: Mapping[str, Any]) -> str:
    """The original's words if apiVersion or kind is there but is no text."""
    value = document.get(field)
    if value is None or isinstance(value, str):
        return ""
    misfit = f"json: cannot unmarshal {go_kind(value)} into Go struct field .{field} of type string"
    return f"couldn't get version/kind; json parse error: {misfit}"


def _check_registered(version: Any, kind: Any, problems: ConfigProblems) -> None:
    if version == API_VERSION and kind == KIND:
        return
    if version == API_VERSION and kind in {f"{name}Args" for name in PLUGIN_ARGS}:
        words = f"couldn't decode as {KIND}, got {API_VERSION}, Kind={kind}: "
        hint = "plugin args belong into profiles[].pluginConfig[].args"
        problems.note(CheckStage.SYNTAX, ("kind",), words.strip(), hint=hint, original=words)
        return
    words = f'no kind "{kind}" is registered for version "{version}" in scheme "{SCHEME}"'
    if kind == KIND:
        problems.note(CheckStage.SYNTAX, ("apiVersion",), words, hint=_version_hint(str(version)), original=words)
    else:
        hint = suggestion(str(kind), [KIND]) or f"this is read as {KIND} of {API_VERSION}"
        problems.note(CheckStage.SYNTAX, ("kind",), words, hint=hint, original=words)


def _version_hint(version: str) -> str:
    if version.startswith(f"{GROUP}/v1beta"):
        return f"{API_VERSION} is the only version left; it has the same fields"
    return f'did you mean "{API_VERSION}"?'


def _decode(source: Source, problems: ConfigProblems) -> Mapping[str, Any]:
    decoder = Decoder(problems)
    decoded: Mapping[str, Any] = decoder.decode(CONFIGURATION, source.value)
    note_duplicates(source, problems)
    note_unknown_fields(decoder, problems)
    for at, profile in enumerate(decoded.get("profiles", ())):
        for number, entry in enumerate(profile.get("pluginConfig", ())):
            path: Path = ("profiles", at, "pluginConfig", number)
            if entry.get("name") in PLUGIN_ARGS and "args" in entry:
                entry["args"] = _decode_args(entry, path, problems)
            elif entry.get("name") in _args_of_families() and "args" in entry:
                _decode_args(entry, path, problems)  # read to be checked; the plugin's factory reads them for good
    return decoded


def _decode_args(entry: Mapping[str, Any], path: Path, problems: ConfigProblems) -> Mapping[str, Any]:
    name, args, place = entry["name"], entry["args"], f"decoding .{dotted(path)}: "
    here, context = (*path, "args"), f"decoding args for plugin {entry['name']}: "
    if not isinstance(args, dict):
        words = _NO_TYPE_META.format(go_kind(args))
        problems.note(CheckStage.TYPES, here, "the args are not a mapping", original=place + context + words)
        return {}
    wrong = _wrong_args_kind(name, args)
    if wrong:
        hint = f"leave apiVersion and kind out, or write {API_VERSION} and {name}Args"
        problems.note(CheckStage.TYPES, (*here, "kind"), wrong.removeprefix(context), hint=hint, original=place + wrong)
        return {}
    decoder = Decoder(problems, here, lambda words: place + context + words)
    decoded: Mapping[str, Any] = decoder.decode(PLUGIN_ARGS.get(name) or _args_of_families()[name], args)
    fields = [f'unknown field "{dotted(inner)}"' for inner, _, _ in decoder.unknown]
    whole = f"{place}strict decoding error: {context}strict decoding error: {', '.join(fields)}"
    for (inner, _, hint), words in zip(decoder.unknown, fields, strict=True):
        problems.note(CheckStage.STRICT, (*here, *inner), words, hint=hint, original=whole)
        whole = ""
    return decoded


def _wrong_args_kind(name: str, args: Mapping[str, Any]) -> str:
    words = _no_text("apiVersion", args) or _no_text("kind", args)
    if words:
        return f"decoding args for plugin {name}: {words}"
    version, kind = args.get("apiVersion") or API_VERSION, args.get("kind") or f"{name}Args"
    known = {f"{plugin}Args" for plugin in (*PLUGIN_ARGS, *_args_of_families())}
    if version != API_VERSION or kind not in known:
        unknown = f'no kind "{kind}" is registered for version "{version}" in scheme "{SCHEME}"'
        return f"decoding args for plugin {name}: {unknown}"
    if kind != f"{name}Args":
        return f"args for plugin {name} were not of type {name}Args.{GROUP}, got {kind}.{GROUP}"
    return ""
