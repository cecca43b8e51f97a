"""Addresses: paths on a server, as URLs and as they are written into a request.

Most paths need no quoting: the server's address is then parsed only once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import aiohttp
from yarl import URL

_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._~:-]*")


class Addresses:
    def __init__(self, server: str) -> None:
        self._text = server
        self._server: URL | None = None
        self._prefix: str | None = None

    def url(self, path: str) -> URL:
        """The path on the server."""
        try:
            if not _PLAIN_PATH.fullmatch(path):
                return URL(self._text + path)
            if self._server is None:
                self._server = URL(self._text)
        except ValueError as error:
            raise aiohttp.InvalidUrlClientError(self._text, str(error)) from error
        return self._server.with_path(self._server.raw_path.rstrip("/") + path, encoded=True)

    def target(self, path: str, params: Mapping[str, str] | None) -> str:
        """The same as it is written into a request."""
        if not params and self._prefix is not None and _PLAIN_PATH.fullmatch(path):
            return self._prefix + path
        url = self.url(path)
        self._prefix = None if self._server is None else self._server.raw_path.rstrip("/")
        return (url.extend_query(params) if params else url).raw_path_qs
