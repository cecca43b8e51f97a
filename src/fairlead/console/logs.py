"""Logs of long-running commands: lines of text, or one JSON object per line, on standard error.

Verbosity follows kube-scheduler's numbers: 0 is what an operator must know, 2 adds every decision, 4 and more is for
looking into fairlead itself.
"""

from __future__ import annotations

import json
import logging
import sys

from fairlead.console.terminal import KeyValues

DECISIONS = 2
EVERYTHING = 4
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """`{"ts":1767225600123.4,"level":"info","logger":"fairlead.scheduler","msg":"...","pod":"default/web-1"}`"""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "ts": round(record.created * 1000, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        entry |= {key: value for key, value in vars(record).items() if key not in _PLAIN}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)


def log_as_asked(form: str, verbosity: int) -> None:
    """Send fairlead's logs to standard error, in the form and depth requested."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else KeyValues(dated=True))
    root = logging.getLogger("fairlead")
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbosity >= EVERYTHING else logging.INFO)
    root.propagate = False
