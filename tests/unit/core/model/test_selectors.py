"""Label and node selectors from documents, maps and text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.core.model.selectors import (
    EVERYTHING,
    NOTHING,
    NodeSelectorTerm,
    Op,
    Requirement,
    SelectorError,
    parse_label_selector,
    parse_node_selector,
    parse_preferred_terms,
    selector_from_document,
    selector_from_map,
)


def expression(key: str, operator: str, *values: str) -> dict[str, object]:
    return {"key": key, "operator": operator, "values": list(values)}


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert selector_from_document(None) is NOTHING
    assert not NOTHING.matches({"a": "b"})
    assert not NOTHING.empty
    assert selector_from_document({}) is EVERYTHING
    assert EVERYTHING.matches({})
    assert EVERYTHING.empty
    assert selector_from_map({}) is EVERYTHING
    assert parse_label_selector("") is EVERYTHING
    assert parse_label_selector("  ") is EVERYTHING


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a=b", {}, False),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a in (x,y)", {"a": "y"}, True),
        ("a notin (x,y)", {"a": "y"}, False),
        ("a notin (x,y)", {}, True),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("!a", {"a": ""}, False),
        ("a>1", {"a": "2"}, True),
        ("a>1", {"a": "1"}, False),
        ("a<1", {"a": "-5"}, True),
        ("a<1", {"a": "+0"}, True),
        ("a>1", {"a": "x"}, False),
        ("a>1", {}, False),
        ("a>1", {"a": "1_0"}, False),
        ("a>1", {"a": " 10"}, False),
        ("a>1", {"a": "9223372036854775808"}, False),
        ("a=,b", {"a": "", "b": "c"}, True),
        ("a in (,x)", {"a": ""}, True),
        ("a in ()", {"a": ""}, True),
        ("in in (in, notin)", {"in": "notin"}, True),
        (" a = b , c in ( d , e ) ", {"a": "b", "c": "e"}, True),
    ],
)
def test_text_matches_as_the_original_does(text: str, labels: dict[str, str], matches: bool) -> None:
    assert parse_label_selector(text).matches(labels) is matches


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a=!b", "unable to parse requirement: found '!', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        (
            "a>x",
            'unable to parse requirement: values[0]: Invalid value: "x":'
            " for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_a_mistyped_text_is_answered_in_the_words_of_the_original(text: str, complaint: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(text)
    assert str(caught.value) == complaint


def test_a_bad_value_is_named_with_its_place_and_the_rule() -> None:
    with pytest.raises(SelectorError) as caught:
        selector_from_document({"matchLabels": {"a": "not valid"}})
    assert str(caught.value) == (
        'values[0][a]: Invalid value: "not valid": a valid label must be an empty string or consist of alphanumeric'
        " characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or"
        " 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    )


@pytest.mark.parametrize(
    "document",
    [
        {"matchLabels": {"": "a"}},
        {"matchLabels": {"a/b/c": "d"}},
        {"matchLabels": {"UP.case/x": "d"}},
        {"matchLabels": {"a": "x" * 64}},
        {"matchExpressions": [expression("a", "In")]},
        {"matchExpressions": [expression("a", "Exists", "b")]},
        {"matchExpressions": [expression("a", "Gt", "1")]},
        {"matchExpressions": [expression("a", "")]},
    ],
)
def test_an_invalid_document_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(SelectorError):
        selector_from_document(document)


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(SelectorError, match='"Near" is not a valid label selector operator'):
        selector_from_document({"matchExpressions": [expression("a", "Near", "b")]})


def test_a_map_is_not_validated() -> None:
    assert selector_from_map({"not valid": "!"}).matches({"not valid": "!"})


def test_equal_selectors_in_other_words_are_one_object() -> None:
    document = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [expression("c", "NotIn", "e", "d"), expression("a", "In", "b"), expression("f", "Exists")],
    }
    text = parse_label_selector("f,c notin (d,e,d),a==b")
    assert selector_from_document(document) is text
    assert hash(selector_from_document(document)) == hash(text)
    assert text.requirements == (
        Requirement("a", Op.IN, ("b",)),
        Requirement("c", Op.NOT_IN, ("d", "e")),
        Requirement("f", Op.EXISTS),
    )
    assert str(text) == "a=b,c notin (d,e),f"


def test_further_requirements_narrow_a_selector_but_nothing_stays_nothing() -> None:
    wanted = Requirement("b", Op.IN, ("c",))
    assert selector_from_map({"a": "b"}).plus([wanted]) is selector_from_map({"a": "b", "b": "c"})
    assert selector_from_map({"b": "c"}).plus([wanted]) is selector_from_map({"b": "c"})
    assert NOTHING.plus([wanted]) is NOTHING


words = st.sampled_from(["a", "b", "c", "app", "x.io/y"])
values = st.sampled_from(["", "1", "v", "web-1", "7"])
pairs = st.tuples(
    words, st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]), st.lists(values, min_size=1, max_size=3)
)


def as_text(key: str, operator: str, chosen: list[str]) -> str:
    if operator in ("In", "NotIn"):
        return f"{key} {operator.lower()} ({','.join(chosen)})"
    return key if operator == "Exists" else "!" + key


def as_expression(key: str, operator: str, chosen: list[str]) -> dict[str, object]:
    return expression(key, operator, *(chosen if operator in ("In", "NotIn") else ()))


@given(st.lists(pairs, max_size=4), st.dictionaries(words, values))
def test_text_and_document_twins_are_the_same_selector(
    parts: list[tuple[str, str, list[str]]], labels: dict[str, str]
) -> None:
    document = {"matchExpressions": [as_expression(*part) for part in reversed(parts)]}
    from_text, from_document = parse_label_selector(",".join(as_text(*part) for part in parts)), None
    from_document = selector_from_document(document)
    assert from_text == from_document
    assert from_text is from_document
    assert from_text.matches(labels) == all(
        {
            "In": key in labels and labels[key] in chosen,
            "NotIn": key not in labels or labels[key] not in chosen,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }[operator]
        for key, operator, chosen in parts
    )
    assert parse_label_selector(str(from_text)) is from_text


def node_terms(*terms: dict[str, object]) -> dict[str, object]:
    return {"nodeSelectorTerms": list(terms)}


def test_an_empty_term_matches_nothing_and_so_does_a_selector_without_terms() -> None:
    assert not parse_node_selector(node_terms({})).matches({"a": "b"}, "n")
    assert not parse_node_selector(node_terms()).matches({"a": "b"}, "n")
    assert parse_node_selector(node_terms({}, {"matchExpressions": [expression("a", "Exists")]})).matches(
        {"a": "b"}, "n"
    )


@pytest.mark.parametrize(
    ("requirement", "labels", "matches"),
    [
        (expression("a", "NotIn", "b"), {}, True),
        (expression("a", "DoesNotExist"), {}, True),
        (expression("a", "Gt", "5"), {"a": "5"}, False),
        (expression("a", "Gt", "5"), {"a": "6"}, True),
        (expression("a", "Lt", "5"), {"a": "4"}, True),
        (expression("a", "Lt", "5"), {"a": "four"}, False),
        (expression("a", "Gt", "5"), {}, False),
    ],
)
def test_terms_match_absent_keys_and_numbers_as_the_original(
    requirement: dict[str, object], labels: dict[str, str], matches: bool
) -> None:
    assert parse_node_selector(node_terms({"matchExpressions": [requirement]})).matches(labels, "n") is matches


def test_fields_speak_of_the_name_and_do_not_count_without_one() -> None:
    selector = parse_node_selector(node_terms({"matchFields": [expression("metadata.name", "In", "n1")]}))
    assert selector.matches({}, "n1")
    assert not selector.matches({}, "n2")
    assert selector.matches({}, "")
    unknown = parse_node_selector(node_terms({"matchFields": [expression("spec.x", "NotIn", "n1")]}))
    assert unknown.matches({}, "n1"), "an unknown field reads as empty"


def test_a_broken_term_does_not_spoil_the_others_unless_strict() -> None:
    terms = node_terms(
        {"matchExpressions": [expression("a", "Gt", "-5")]},
        {"matchFields": [expression("metadata.name", "In", "n1", "n2")]},
        {"matchFields": [expression("metadata.name", "Exists")]},
        {"matchExpressions": [expression("zone", "In", "a")]},
    )
    selector = parse_node_selector(terms)
    assert selector.matches({"zone": "a", "a": "7"}, "n1")
    assert not selector.matches({"zone": "b", "a": "7"}, "n1")
    assert (
        "nodeSelectorTerms[1].matchFields[0].values: Invalid value: "
        '["n1","n2"]: must have one element, nodeSelectorTerms[2].matchFields[0].operator: Unsupported value: '
        '"Exists": supported values: "In", "NotIn"]'
    ) in selector.error
    with pytest.raises(SelectorError):
        parse_node_selector(terms, strict=True)


def test_preferred_terms_skip_what_weighs_nothing_and_fail_on_what_is_broken() -> None:
    good = {"weight": 5, "preference": {"matchExpressions": [expression("a", "Exists")]}}
    broken = {"matchExpressions": [expression("a", "In")]}
    skipped = [{"weight": 0, "preference": broken}, {"weight": 3, "preference": {}}]
    assert parse_preferred_terms([*skipped, good]) == ((5, NodeSelectorTerm((Requirement("a", Op.EXISTS),))),)
    with pytest.raises(SelectorError) as caught:
        parse_preferred_terms([good, {"weight": 1, "preference": broken}])
    assert str(caught.value) == (
        "[1].matchExpressions[0].values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    )
