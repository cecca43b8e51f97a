"""The one reader of YAML: files, request bodies and the texts inside of ConfigMaps mean the same to all of fairlead.

Words are resolved as Kubernetes resolves them: `yes` and `on` are booleans, a date is a string, no number has base 60.
What a text may cost is bounded before libyaml builds anything: its composer recurses in C and ends the process at some
30,000 brackets, so the depth is counted on the events of the parser, which does not recurse.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from fairlead.errors import ConfigError

DEEPEST = 1_000
"""How deep lists and mappings may be nested. kube-apiserver allows 10,000; no object of Kubernetes needs 50."""
LONGEST_NUMBER = 400
"""Longer words are text: Python reads no int of more than 4,300 digits, and floats end at 309."""
EXCEEDED_DEPTH = "exceeded max depth"
NO_ALIASES = "anchors and aliases are not accepted"
_TAG = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)\Z")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z"
)
_STARTS, _ENDS = (yaml.SequenceStartEvent, yaml.MappingStartEvent), (yaml.SequenceEndEvent, yaml.MappingEndEvent)


class TooDeep(yaml.MarkedYAMLError):
    """A text that is nested deeper than `DEEPEST`."""


class YamlLoader(yaml.CSafeLoader):
    """libyaml's loader with Kubernetes' idea of which plain words are numbers."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {
        first: [(tag, words) for tag, words in resolvers if tag.removeprefix(_TAG) not in ("int", "float", "timestamp")]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def _construct_int(loader: YamlLoader, node: yaml.ScalarNode) -> int | str:
    return node.value if (number := number_of(node.value)) is None else number  # type: ignore[return-value]


def _construct_float(loader: YamlLoader, node: yaml.ScalarNode) -> float | str:
    return node.value if (number := number_of(node.value)) is None else number


YamlLoader.add_implicit_resolver(f"{_TAG}int", _INT, list("-+0123456789"))
YamlLoader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+.0123456789"))
YamlLoader.add_constructor(f"{_TAG}int", _construct_int)
YamlLoader.add_constructor(f"{_TAG}float", _construct_float)


def number_of(word: str) -> int | float | None:
    """The number that a plain word is; None for text."""
    if len(word) > LONGEST_NUMBER:
        return None
    if _INT.match(word):
        digits = word.replace("_", "").lower()
        sign, digits = (-1 if digits[0] == "-" else 1), digits.lstrip("+-")
        if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
            digits = f"0o{digits[1:]}"
        try:
            return sign * int(digits, 0)
        except ValueError:  # such as `0x_`
            return None
    if not _FLOAT.match(word):
        return None
    plain = word.lower()
    return float(plain.replace(".inf", "inf").replace(".nan", "nan") if plain[-1].isalpha() else plain)


def check_events(text: str | bytes, *, aliases: bool = True) -> None:
    """Refuse a text that is too deep, or that has aliases where they are not allowed. Raises yaml.YAMLError."""
    depth = 0
    for event in yaml.parse(text, Loader=YamlLoader):
        if isinstance(event, _STARTS):
            depth += 1
            if depth > DEEPEST:
                raise TooDeep(problem=EXCEEDED_DEPTH, problem_mark=event.start_mark)  # type: ignore[arg-type]
        elif isinstance(event, _ENDS):
            depth -= 1
        elif not aliases and isinstance(event, yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem=NO_ALIASES, problem_mark=event.start_mark)  # type: ignore[arg-type]


def load_one(text: str | bytes, *, aliases: bool = True) -> Any:
    """The value that a text of one document describes. Raises yaml.YAMLError."""
    check_events(text, aliases=aliases)
    return yaml.load(text, Loader=YamlLoader)


def load_all(text: str | bytes) -> list[Any]:
    """The values of all documents of a text, None for an empty one. Raises yaml.YAMLError."""
    check_events(text)
    return list(yaml.load_all(text, Loader=YamlLoader))


def read_yaml(text: str) -> Any:
    """The value that a text inside of an object describes. Raises ConfigError."""
    try:
        return load_one(text)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"yaml: {error}") from None


def read_documents(path: Path) -> list[Any]:
    """The documents of a file, None for an empty one. Raises ConfigError that names the file and the line."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except UnicodeDecodeError as error:
        raise ConfigError("is not text", file=str(path)) from error
    try:
        return load_all(text)
    except TooDeep as error:
        raise ConfigError("is nested too deeply", file=str(path), line=line_of(error, text)) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError("not valid YAML", file=str(path), line=line_of(error, text)) from error


def line_of(error: Exception, text: str) -> int | None:
    """The line of a syntax error. libyaml counts a line behind the last one for what is missing at the end."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return None if mark is None else min(mark.line + 1, max(1, len(text.splitlines())))
