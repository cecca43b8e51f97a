"""Whatever a file says, the answer is a configuration or a list of problems, never another exception."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.assembly.loading import load_config
from fairlead.config.problems import ConfigErrors
from fairlead.kube.config.document import to_document
from fairlead.kube.config.kube import kube_config_from
from fairlead.kube.config.records import KubeConfig

RIGHT = [yaml.safe_load(file.read_text()) for file in sorted((Path(__file__).parent / "right").glob("[!i]*.yaml"))]
leaf = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
words = st.sampled_from(["*", "5s", "NodeName", "a/b/c", "kind"])
nested = st.lists(leaf, max_size=2) | st.dictionaries(st.text(max_size=5), leaf, max_size=2)
values = leaf | words | nested | st.lists(nested, max_size=2)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """A right document with one or two values replaced."""
    document = copy.deepcopy(draw(st.sampled_from(RIGHT)))
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.sampled_from([place for place in places(document) if place]))
        holder = document
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = draw(values)
    return document


def outcome(load: Callable[[Any], KubeConfig], given: Any) -> KubeConfig | list[tuple[str, str]]:
    """The configuration, or what is wrong; any other exception is a bug and passes through."""
    try:
        return load(given)
    except ConfigErrors as error:
        return [(problem.path, problem.message) for problem in error.problems]


@settings(max_examples=200)
@given(damaged())
def test_a_damaged_document_loads_or_is_refused_with_reasons(document: Any) -> None:
    result = outcome(kube_config_from, document)
    assert result
    if isinstance(result, KubeConfig):
        assert kube_config_from(to_document(result)) == result


@settings(max_examples=100)
@given(st.text(max_size=60))
def test_any_text_is_refused_with_reasons(text: str) -> None:
    assert isinstance(outcome(load_config, text), list)


@settings(max_examples=50)
@given(damaged())
def test_a_document_means_the_same_parsed_and_as_text(document: Any) -> None:
    written, parsed = outcome(load_config, yaml.safe_dump(document)), outcome(kube_config_from, document)
    if isinstance(written, list) and isinstance(parsed, list):
        # Problems are told in the order of lines, and only a text has lines.
        written, parsed = sorted(written), sorted(parsed)
    assert written == parsed
