"""Functions of addresses, networks and URLs. Names that begin with a dot are functions, the others methods."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from fairlead.cel.text_functions import Typed
from fairlead.cel.values import NO_OVERLOAD, AddressRange, CelError, succeeds

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(text: str) -> Address:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        raise CelError(f'IP Address "{text}" parse error during conversion from string: {_go_address(text)}') from None
    if isinstance(found, ipaddress.IPv6Address):
        if found.scope_id is not None:
            raise CelError(f'IP address "{text}" with zone value is not allowed')
        if found.ipv4_mapped is not None:
            raise CelError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return found


def _go_address(text: str) -> str:
    """What Go's netip.ParseAddr says of a text that is no address."""
    said = f'ParseAddr("{text}"): '
    if ":" not in text and "." in text:
        parts = text.split(".")
        if any(not char.isdigit() and char != "." for char in text):
            return said + "unexpected character" + _at(text)
        if any(not part for part in parts):
            return said + "IPv4 field must have at least one digit" + _at(text)
        if any(int(part) > 255 for part in parts):
            return said + "IPv4 field has value >255"
        if any(len(part) > 1 and part[0] == "0" for part in parts):
            return said + "IPv4 field has octet with leading zero"
        return said + ("IPv4 address too short" if len(parts) < 4 else "IPv4 address too long")
    return said + "unable to parse IP"


def _at(text: str) -> str:
    bad = next((at for at, char in enumerate(text) if not char.isdigit() and char != "."), None)
    return f' (at "{text[bad:]}")' if bad is not None else ""


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _network(text: str) -> AddressRange:
    base, slash, length = text.partition("/")
    try:
        if not slash or not length.isdigit():
            raise ValueError(text)
        if len(length) > 1 and length[0] == "0":
            raise ValueError(text)
        return AddressRange(_address(base), ipaddress.ip_network(text, strict=False))
    except (ValueError, CelError):
        if not slash:
            why = "no '/'"
        elif not _is_address(base):
            why = _go_address(base)
        elif length.isdigit() and (length == "0" or length[0] != "0"):
            why = "prefix length out of range"
        else:
            why = f'bad bits after slash: "{length}"'
        said = "network address parse error during conversion from string: "  # the original says it twice
        raise CelError(f'{said}{said}netip.ParsePrefix("{text}"): {why}') from None


def request_url(text: str) -> SplitResult:
    """An absolute URL or an absolute path. The complaint is that of Go's url.ParseRequestURI."""
    if not text:
        raise CelError('parse "": empty url')
    try:
        found = urlsplit(text)
    except ValueError:
        raise CelError(f"parse \"{text}\": missing ']' in host") from None
    if not found.scheme and not text.startswith("/"):
        raise CelError(f'parse "{text}": invalid URI for request')
    host = found.netloc.rpartition("@")[2]
    if " " in host:
        raise CelError(f'parse "{text}": invalid character " " in host name')
    port = host.rpartition("]")[2].partition(":")
    if port[1] and port[2] and not port[2].isdigit():
        raise CelError(f'parse "{text}": invalid port ":{port[2]}" after host')
    return found


def _url(text: str) -> SplitResult:
    try:
        return request_url(text)
    except CelError as error:
        raise CelError(f"URL parse error during conversion from string: {error}") from None


def _contains_network(outer: AddressRange, inner: AddressRange | str) -> bool:
    other = _network(inner) if isinstance(inner, str) else inner
    if outer.range.version != other.range.version:
        return False
    return other.range.subnet_of(outer.range)  # type: ignore[arg-type]


def _contains_address(outer: AddressRange, address: Address | str) -> bool:
    if isinstance(address, str):
        try:
            address = _address(address)
        except CelError:
            raise CelError(NO_OVERLOAD) from None
    return address in outer.range


def _host(url: SplitResult) -> str:
    return url.netloc.rpartition("@")[2]


def _port(url: SplitResult) -> str:
    return _host(url).rpartition("]")[2].partition(":")[2]


def _query(url: SplitResult) -> dict[str, list[str]]:
    return parse_qs(url.query, keep_blank_values=True)


def _global_unicast(address: Address) -> bool:
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or str(address) == "255.255.255.255"
    )


def _link_local_multicast(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.ip_network("224.0.0.0/24")
    return address.is_multicast and address.packed[1] & 0x0F == 2


_S, _IP, _NET, _URL = "string", "ip", "cidr", "url"
NET_FUNCTIONS: dict[str, tuple[Typed, ...]] = {
    ".ip": (Typed((_S,), _address),),
    ".isIP": (Typed((_S,), succeeds(_address)),),
    ".ip.isCanonical": (Typed((_S,), lambda text: str(_address(text)) == text),),
    "family": (Typed((_IP,), lambda address: address.version),),
    "isUnspecified": (Typed((_IP,), lambda address: address.is_unspecified),),
    "isLoopback": (Typed((_IP,), lambda address: address.is_loopback),),
    "isLinkLocalMulticast": (Typed((_IP,), _link_local_multicast),),
    "isLinkLocalUnicast": (Typed((_IP,), lambda address: address.is_link_local),),
    "isGlobalUnicast": (Typed((_IP,), _global_unicast),),
    ".cidr": (Typed((_S,), _network),),
    ".isCIDR": (Typed((_S,), succeeds(_network)),),
    "containsIP": (Typed((_NET, _IP), _contains_address), Typed((_NET, _S), _contains_address)),
    "containsCIDR": (Typed((_NET, _NET), _contains_network), Typed((_NET, _S), _contains_network)),
    "ip": (Typed((_NET,), lambda network: network.address),),
    "masked": (Typed((_NET,), lambda network: AddressRange(network.range.network_address, network.range)),),
    "prefixLength": (Typed((_NET,), lambda network: network.range.prefixlen),),
    ".url": (Typed((_S,), _url),),
    ".isURL": (Typed((_S,), succeeds(_url)),),
    "getScheme": (Typed((_URL,), lambda url: url.scheme),),
    "getHost": (Typed((_URL,), _host),),
    "getHostname": (Typed((_URL,), lambda url: url.hostname or ""),),
    "getPort": (Typed((_URL,), _port),),
    "getEscapedPath": (Typed((_URL,), lambda url: quote(url.path, safe="/%:@!$&'()*+,;=~")),),
    "getQuery": (Typed((_URL,), _query),),
}
