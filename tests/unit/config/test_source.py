"""YAML with lines: what is read, what is refused, and where."""

from __future__ import annotations

import pytest

from fairlead.config.problems import ConfigErrors, nearest_word
from fairlead.config.source import parse_source


def test_plain_words_mean_what_they_mean_to_the_original() -> None:
    text = "a: yes\nb: 1:30\nc: 2001-01-01\nd: 010\ne: 1e1\nf: 0x10\ng: 1_0\nh: ~\ni: 'yes'\nj: -5\nk: 1.5\nl: 0o17"
    assert parse_source(text).value == {
        "a": True,
        "b": "1:30",
        "c": "2001-01-01",
        "d": 8,
        "e": 10.0,
        "f": 16,
        "g": 10,
        "h": None,
        "i": "yes",
        "j": -5,
        "k": 1.5,
        "l": 15,
    }


def test_every_path_knows_its_line_and_an_unwritten_one_that_of_its_parent() -> None:
    source = parse_source("a: 1\nb:\n  - c: 2\n    d: {e: 3}\n  - 4\n")
    assert source.line(("a",)) == 1
    assert source.line(("b", 0, "d", "e")) == 4
    assert source.line(("b", 1)) == 5
    assert source.line(("b", 0, "missing", 7)) == 3
    assert source.line(("missing",)) == 1


def test_json_with_tabs_is_read() -> None:
    assert parse_source('{\n\t"a": ["b\\/c", 1.0]\n}').value == {"a": ["b/c", 1.0]}


def test_merged_keys_give_way_to_those_that_are_written() -> None:
    source = parse_source("base: &base {a: 1, b: 2}\nmine:\n  <<: *base\n  b: 3\n")
    assert source.value["mine"] == {"a": 1, "b": 3}
    assert source.line(("mine", "b")) == 4
    assert source.duplicates == []


def test_a_repeated_key_is_noted_with_both_lines() -> None:
    assert parse_source("a: 1\nb: {c: 1,\n  c: 2}\n").duplicates == [(("b", "c"), 3, 2)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1\n", "f:1: yaml: did not find expected ',' or ']'"),
        ("a: b: c\n", "f:1: yaml: mapping values are not allowed in this context"),
        ("a: &a [*a]\n", "f:1: yaml: anchor value contains itself"),
        ("a: *b\n", "f:1: yaml: found undefined alias"),
        ("a: !!python/name:os.system x\n", "f:1: yaml: could not determine a constructor for the tag"),
        ("? [1]\n: 2\n", "f:1: yaml: invalid map key"),
    ],
)
def test_a_syntax_error_has_file_and_line(text: str, words: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        parse_source(text, "f")
    assert str(caught.value).startswith(words)


def test_aliases_cannot_blow_a_document_up() -> None:
    layers = [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 9)]
    with pytest.raises(ConfigErrors, match="document contains excessive aliasing"):
        parse_source("\n".join(["a0: &a0 [x, x]", *layers]))


def test_a_document_nested_without_end_is_refused_and_no_crash() -> None:
    with pytest.raises(ConfigErrors, match="is nested too deeply"):
        parse_source("[" * 5000 + "]" * 5000)


@pytest.mark.parametrize(
    ("word", "nearest"),
    [("paralellism", "parallelism"), ("Parallelism", "parallelism"), ("proflies", "profiles"), ("xyz", ""), ("", "")],
)
def test_the_nearest_known_word_is_suggested_if_it_is_near(word: str, nearest: str) -> None:
    assert nearest_word(word, ["parallelism", "profiles", "extenders"]) == nearest
