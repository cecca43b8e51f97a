"""The syntax of label keys, label values and names, with the original's words for what is wrong.

Selectors are validated when they are built, and the complaints reach users through pod conditions, so the texts are
the original's to the letter. Invariant: an empty list of complaints means valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character"
)
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character"
)
_name = re.compile(_NAME)
_subdomain = re.compile(_SUBDOMAIN)
_integer = re.compile(r"[+-]?[0-9]+")


def subdomain_complaints(text: str) -> list[str]:
    complaints = []
    if _bytes(text) > 253:
        complaints.append(_too_long(253))
    if not _subdomain.fullmatch(text):
        complaints.append(_must_match(_SUBDOMAIN_RULE, _SUBDOMAIN, ["example.com"]))
    return complaints


def label_key_complaints(key: str) -> list[str]:
    """What is wrong with a label key (the original also calls this a qualified name)."""
    examples = ["MyName", "my.name", "123-abc"]
    prefix, slash, name = key.partition("/")
    if "/" in name:
        rule = _must_match(_NAME_RULE, _NAME, examples)
        return [f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    complaints = []
    if not slash:
        name = prefix
    elif not prefix:
        complaints.append("prefix part must be non-empty")
    else:
        complaints += [f"prefix part {complaint}" for complaint in subdomain_complaints(prefix)]
    if not name:
        complaints.append("name part must be non-empty")
    elif _bytes(name) > 63:
        complaints.append(f"name part {_too_long(63)}")
    if not _name.fullmatch(name):
        complaints.append(f"name part {_must_match(_NAME_RULE, _NAME, examples)}")
    return complaints


def label_value_complaints(value: str) -> list[str]:
    complaints = []
    if _bytes(value) > 63:
        complaints.append(_too_long(63))
    if value and not _name.fullmatch(value):
        complaints.append(_must_match(_VALUE_RULE, f"({_NAME})?", ["MyValue", "my_value", "12345"]))
    return complaints


def is_label_key(key: str) -> bool:
    return not label_key_complaints(key)


def parse_int64(text: str) -> int | None:
    """A base-10 int64 with an optional sign and nothing else; None for anything that is not one."""
    if not _integer.fullmatch(text) or len(text) > 40:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def quoted(text: str) -> str:
    """A string in double quotes, with escapes."""
    return json.dumps(text, ensure_ascii=False)


def joined(complaints: Iterable[str]) -> str:
    """Several errors as one text: `a` or `[a, b]`, each said once."""
    distinct = list(dict.fromkeys(complaints))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _bytes(text: str) -> int:
    return len(text.encode())


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def _must_match(rule: str, pattern: str, examples: Sequence[str]) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"
