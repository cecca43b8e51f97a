"""The formats that expressions know by name (`format.dns1123Label().validate(text)`), with their complaints."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from math import ceil

from fairlead.cel.net_functions import request_url
from fairlead.cel.patterns import pattern
from fairlead.cel.values import CelError, Maybe

_LABEL, _DNS1035 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?", "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN, _VALUE = rf"{_LABEL}(\.{_LABEL})*", r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_NAME_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"
_MOMENT = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"
_MOMENT_REGEX_SIZE = 70

_LABEL_SAYS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    f" an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_SUBDOMAIN_SAYS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_DNS1035_SAYS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    f" '{_DNS1035}')"
)
_VALUE_SAYS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    f" '{_VALUE}')"
)
_NAME_PART_SAYS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_PART}')"
)


@dataclass(frozen=True, slots=True)
class NamedFormat:
    name: str
    complaints: Callable[[str], list[str]]
    regex_size: int
    """Characters of the regular expression that the API server counts a check as."""

    def validate(self, text: str) -> Maybe:
        found = self.complaints(text)
        return Maybe(bool(found), found or None)

    def cost(self, text: str) -> int:
        return ceil((1 + len(text)) * 0.1) * ceil(self.regex_size * 0.25)


def _like(regex: str, says: str, longest: int, *, prefix: bool = False) -> Callable[[str], list[str]]:
    compiled = pattern(regex)

    def check(text: str) -> list[str]:
        masked = text[:-2] + "a" if prefix and len(text) > 1 and text.endswith("-") else text
        found = [f"must be no more than {longest} bytes"] if len(masked.encode()) > longest else []
        return found if compiled.is_all_of(masked) else [*found, says]

    return check


def _qualified(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [
            "a qualified name "
            + _NAME_PART_SAYS.replace(
                "')", "') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )
        ]
    found = []
    if slash:
        found = (
            ["prefix part must be non-empty"]
            if not prefix
            else [f"prefix part {one}" for one in _like(_SUBDOMAIN, _SUBDOMAIN_SAYS, 253)(prefix)]
        )
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > 63:
        found.append("name part must be no more than 63 bytes")
    return found if pattern(_NAME_PART).is_all_of(name) else [*found, f"name part {_NAME_PART_SAYS}"]


def _parses(parse: Callable[[str], object], says: str) -> Callable[[str], list[str]]:
    def check(text: str) -> list[str]:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return [says]
        return []

    return check


def _moment(text: str) -> object:
    if not pattern(_MOMENT).is_all_of(text):
        raise ValueError(text)
    return datetime.fromisoformat(text.upper().replace(" ", "T"))


def _uri(text: str) -> list[str]:
    try:
        request_url(text)
    except CelError as error:
        return [str(error)]
    return []


FORMATS: Mapping[str, NamedFormat] = {
    "dns1123Label": NamedFormat("DNS1123Label", _like(_LABEL, _LABEL_SAYS, 63), 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _like(_SUBDOMAIN, _SUBDOMAIN_SAYS, 253), 60),
    "dns1035Label": NamedFormat("DNS1035Label", _like(_DNS1035, _DNS1035_SAYS, 63), 30),
    "qualifiedName": NamedFormat("QualifiedName", _qualified, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _like(_LABEL, _LABEL_SAYS, 63, prefix=True), 30),
    "dns1123SubdomainPrefix": NamedFormat(
        "DNS1123SubdomainPrefix", _like(_SUBDOMAIN, _SUBDOMAIN_SAYS, 253, prefix=True), 60
    ),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _like(_DNS1035, _DNS1035_SAYS, 63, prefix=True), 30),
    "labelValue": NamedFormat("LabelValue", _like(_VALUE, _VALUE_SAYS, 63), 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat("uuid", lambda text: [] if pattern(_UUID).matches(text) else ["does not match the UUID format"],
                        len(_UUID)),
    "byte": NamedFormat("byte", _parses(lambda text: base64.b64decode(text, validate=True), "invalid base64"), 84),
    "date": NamedFormat("date", _parses(date.fromisoformat, "invalid date"), _MOMENT_REGEX_SIZE),
    "datetime": NamedFormat("datetime", _parses(_moment, "invalid datetime"), _MOMENT_REGEX_SIZE),
}  # fmt: skip
