"""PortIndex: which host ports are taken on which rows.

A set, not a count, as in kube-scheduler: of two pods with the same port on one node (which only a race can bring about)
the first to leave frees it for both.
"""

from __future__ import annotations

from collections.abc import Iterable

HostPort = tuple[str, str, int]
"""(ip, protocol, port), with the defaults filled in."""
ANY_IP = "0.0.0.0"


class PortIndex:
    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], dict[str, set[int]]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> tuple[HostPort, ...]:
        """Take ports; returns those that were not taken before, which is what an undo frees again."""
        fresh = []
        for ip, protocol, port in ports:
            rows = self._rows.setdefault((protocol, port), {}).setdefault(ip, set())
            if row not in rows:
                rows.add(row)
                fresh.append((ip, protocol, port))
        return tuple(fresh)

    def remove(self, row: int, ports: Iterable[HostPort]) -> tuple[HostPort, ...]:
        """Free ports; returns those that were taken, which is what an undo takes again."""
        freed = []
        for ip, protocol, port in ports:
            by_ip = self._rows.get((protocol, port), {})
            rows = by_ip.get(ip)
            if rows is not None and row in rows:
                rows.remove(row)
                freed.append((ip, protocol, port))
                if not rows:
                    del by_ip[ip]
                    if not by_ip:
                        del self._rows[protocol, port]
        return tuple(freed)

    def taken(self, wanted: HostPort) -> set[int]:
        """Rows on which a wanted port is not to be had."""
        ip, protocol, port = wanted
        by_ip = self._rows.get((protocol, port))
        if not by_ip:
            return set()
        if ip == ANY_IP:
            return set().union(*by_ip.values())
        return by_ip.get(ip, set()) | by_ip.get(ANY_IP, set())
