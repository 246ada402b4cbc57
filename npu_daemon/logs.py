"""Log output as text or as JSON lines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timezone


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, message, and the ``fields`` that were logged with it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the formatted line."""
        line = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logging(log_format: str, level: str) -> None:
    """Write log lines to standard error.

    Args:
        log_format: ``text`` or ``json``.
        level: minimum level to log.
    """
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("npu-daemon: %(message)s")
    handler.setFormatter(JsonLines() if log_format == "json" else text)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
