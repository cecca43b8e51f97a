"""A configuration file as plain values that remember their lines.

YAML is read as the original reads it (YAML 1.1 words for booleans, no dates, no base-60 numbers, JSON as a subset), so
that a file means the same to both. The lines are kept by path beside the values, for error messages. Duplicate keys are
refused, and so is a document whose aliases make it huge or endless.

Invariant: `value` consists of dicts with string keys, lists, strings, numbers, booleans and None, nothing else.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml

from fairlead.config.problems import CheckStage, ConfigErrors, ConfigProblems, Path, suggestion
from fairlead.config.yaml_text import EXCEEDED_DEPTH, TooDeep, YamlLoader, check_events, line_of, number_of
from fairlead.errors import ConfigError

MAX_VALUES = 200_000
_SyntaxTree = yaml.Node


@dataclass(slots=True)
class Source:
    """One document of one file. `line` answers for any path: for one that is not written, the nearest that is."""

    file: str
    value: Any = None
    text: str = ""
    lines: dict[Path, int] = field(default_factory=dict)
    duplicates: list[tuple[Path, int, int]] = field(default_factory=list)
    """Keys set twice: path, line of the repetition, line of the first."""
    more_documents: bool = False

    def line(self, path: Path) -> int | None:
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


def read_text(path: str | pathlib.Path, *, presets: Iterable[str] = ()) -> str:
    """The text of a file. Raises ConfigError, which suggests the name of a preset that the path may have meant."""
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError as error:
        hint = suggestion(str(path), presets)
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(path), hint=hint) from None
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8 text", file=str(path)) from None


def document_source(document: Any, file: str = "") -> Source:
    """A document that came from no file."""
    return Source(file=file, value=document)


def parse_source(text: str, file: str = "") -> Source:
    """Parse YAML or JSON. Raises ConfigError for syntax, with the line."""
    source = Source(file=file, text=text)
    plain = _without_tabs(text)
    try:
        check_events(plain)
    except TooDeep as error:
        problem = ConfigError("is nested too deeply", file=file, line=line_of(error, text))
        raise ConfigErrors([problem], f"yaml: {EXCEEDED_DEPTH}") from None
    except yaml.YAMLError as error:
        raise _syntax_error(source, error) from None
    loader = YamlLoader(plain)
    try:
        if loader.check_node():
            _Builder(source, loader).build()
            source.more_documents = bool(loader.check_node())
    except yaml.YAMLError as error:
        raise _syntax_error(source, error) from None
    finally:
        loader.dispose()
    return source


def note_duplicates(source: Source, problems: ConfigProblems) -> None:
    """The original reports a repeated key only once the document as a whole makes sense."""
    texts = [f'  line {line}: key "{path[-1]}" already set in map' for path, line, _ in source.duplicates]
    original = "\n".join(["yaml: unmarshal errors:", *texts])
    for path, line, first in source.duplicates:
        message = f'key "{path[-1]}" already set in map'
        problems.note(CheckStage.STRICT, path, message, line=line, hint=f"first set in line {first}", original=original)
        original = ""


def _without_tabs(text: str) -> str:
    """JSON may be indented with tabs, which YAML forbids; inside JSON strings they cannot occur."""
    return text.replace("\t", " ") if text.lstrip()[:1] in ("{", "[") else text


def _syntax_error(source: Source, error: yaml.YAMLError) -> ConfigErrors:
    line, words = line_of(error, source.text) or 1, str(error)
    if isinstance(error, yaml.MarkedYAMLError):
        words = error.problem or words
    hint = "YAML is indented with spaces, never with tabs" if _tab_at(source.text, line) else ""
    problem = ConfigError(f"yaml: {words}", file=source.file, line=line, hint=hint)
    return ConfigErrors([problem], f"yaml: line {line}: {words}")


def _tab_at(text: str, line: int) -> bool:
    lines = text.splitlines()
    return any("\t" in lines[at][: len(lines[at]) - len(lines[at].lstrip())] for at in (line - 1,) if at < len(lines))


_MERGE = "tag:yaml.org,2002:merge"


class _Builder:
    """Turns the syntax tree into values, noting lines on the way."""

    def __init__(self, source: Source, loader: Any) -> None:
        self._source = source
        self._loader = loader
        self._count = 0

    def build(self) -> None:
        node = self._loader.get_node()
        self._source.lines[()] = node.start_mark.line + 1
        self._source.value = self._value(node, (), ())

    def _value(self, node: _SyntaxTree, path: Path, above: tuple[int, ...]) -> Any:
        self._count += 1
        if self._count > MAX_VALUES:
            raise yaml.MarkedYAMLError(None, None, "document contains excessive aliasing", node.start_mark)
        if id(node) in above:
            raise yaml.MarkedYAMLError(None, None, "anchor value contains itself", node.start_mark)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, (*above, id(node)))
        if isinstance(node, yaml.SequenceNode):
            return [self._item(child, (*path, at), (*above, id(node))) for at, child in enumerate(node.value)]
        return self._scalar(node)

    def _item(self, node: _SyntaxTree, path: Path, above: tuple[int, ...]) -> Any:
        self._source.lines[path] = node.start_mark.line + 1
        return self._value(node, path, above)

    def _mapping(self, node: yaml.MappingNode, path: Path, above: tuple[int, ...]) -> dict[str, Any]:
        inherited: dict[str, Any] = {}
        for merged in self._merged(node):
            if id(merged) in above:
                raise yaml.MarkedYAMLError(None, None, "anchor value contains itself", node.start_mark)
            inherited = {**self._mapping(merged, path, (*above, id(merged))), **inherited}
        own: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                continue
            name, line = _key_text(self._scalar(key)), key.start_mark.line + 1
            if name in own:
                self._source.duplicates.append(((*path, name), line, self._source.lines[(*path, name)]))
            self._source.lines[(*path, name)] = line
            own[name] = self._value(value, (*path, name), above)
        return {**inherited, **own}

    def _merged(self, node: yaml.MappingNode) -> Iterable[yaml.MappingNode]:
        for key, value in node.value:
            if key.tag == _MERGE:
                parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
                yield from (part for part in parts if isinstance(part, yaml.MappingNode))

    def _scalar(self, node: _SyntaxTree) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(None, None, "invalid map key", node.start_mark)
        plain = not node.style
        if plain and (number := number_of(node.value)) is not None:
            return number
        value = self._loader.construct_object(node)
        return value if isinstance(value, str | bool | int | float) or value is None else node.value


def _key_text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)
