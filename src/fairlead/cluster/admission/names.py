"""Names, labels and keys: what the API accepts as one, and what it says when it does not.

The same few names come by again and again, so answers are remembered. Each function returns the complaints, none for
a good name.
"""

from __future__ import annotations

import re
from functools import lru_cache

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+\Z")
_ENVIRONMENT = re.compile(r"[ -<>-~]+\Z")
_PORT_NAME = re.compile(r"[-a-z0-9]+\Z")

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_QUALIFIED_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_CONFIG_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_ENVIRONMENT_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def _at_most(length: int) -> str:
    return f"must be no more than {length} characters"


@lru_cache(maxsize=65536)
def dns_label(name: str) -> tuple[str, ...]:
    """RFC 1123 label: containers, namespaces."""
    if _LABEL.match(name) and len(name) <= 63:
        return ()
    too_long = (_at_most(63),) if len(name) > 63 else ()
    return too_long + (() if _LABEL.match(name) else (_LABEL_TEXT,))


@lru_cache(maxsize=65536)
def dns_subdomain(name: str) -> tuple[str, ...]:
    """RFC 1123 subdomain: most objects."""
    if len(name) <= 253 and _SUBDOMAIN.match(name):
        return ()
    too_long = (_at_most(253),) if len(name) > 253 else ()
    return too_long + (() if _SUBDOMAIN.match(name) else (_SUBDOMAIN_TEXT,))


def path_segment(name: str) -> tuple[str, ...]:
    """What may stand between two slashes of a URL: roles, kinds that are referred to."""
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{sign}'" for sign in "/%" if sign in name)


@lru_cache(maxsize=65536)
def qualified_name(key: str) -> tuple[str, ...]:
    """A label key or the like: an optional DNS prefix and a name."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (
            f"a valid label key {_QUALIFIED_TEXT} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        )
    found: list[str] = []
    if slash:
        found += ["prefix part must be non-empty"] if not prefix else []
        found += [f"prefix part {text}" for text in dns_subdomain(prefix)] if prefix else []
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > 63:
        found.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.match(name):
        found.append(f"name part {_QUALIFIED_TEXT}")
    return tuple(found)


@lru_cache(maxsize=65536)
def label_value(value: str) -> tuple[str, ...]:
    if not value or (len(value) <= 63 and _QUALIFIED.match(value)):
        return ()
    too_long = ("must be no more than 63 bytes",) if len(value) > 63 else ()
    return too_long + (() if _QUALIFIED.match(value) else (_LABEL_VALUE_TEXT,))


@lru_cache(maxsize=4096)
def config_key(key: str) -> tuple[str, ...]:
    found = [_at_most(253)] if len(key) > 253 else []
    if not _CONFIG_KEY.match(key):
        found.append(_CONFIG_KEY_TEXT)
    elif key in (".", ".."):
        found.append(f"must not be '{key}'")
    elif key.startswith(".."):
        found.append("must not start with '..'")
    return tuple(found)


@lru_cache(maxsize=4096)
def environment_name(name: str) -> tuple[str, ...]:
    return () if _ENVIRONMENT.match(name) else (_ENVIRONMENT_TEXT,)


@lru_cache(maxsize=4096)
def port_name(name: str) -> tuple[str, ...]:
    """An IANA service name."""
    found = [] if len(name) <= 15 else ["must be no more than 15 characters"]
    if not _PORT_NAME.match(name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return tuple(found)


PORT_RANGE = "must be between 1 and 65535, inclusive"


def port_number(number: int) -> tuple[str, ...]:
    return () if 1 <= number <= 65535 else (PORT_RANGE,)
