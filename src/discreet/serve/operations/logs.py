"""Logs: one JSON object a line, with the ids of request and job, and never what an exception says."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[2]
NAME = "discreet.serve"
# What a line is about: set where a request or a job begins.
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
job_id: ContextVar[str | None] = ContextVar("job_id", default=None)


class JsonLines(logging.Formatter):
    """A record as one line of JSON; of an exception its kind and its place in the library."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        plain: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            # Loggers of other libraries may quote what they were given.
            "event": record.getMessage() if record.name.startswith((NAME, "uvicorn")) else "something, not shown here",
            "process": record.process,
        }
        about = {"request": request_id.get(), "job": job_id.get()}
        plain |= {name: value for name, value in about.items() if value is not None}
        plain |= record.__dict__.get("facts", {})
        if record.exc_info and isinstance(record.exc_info[1], BaseException):
            plain |= kind_and_place(record.exc_info[1])
        return json.dumps(plain, default=str)


def kind_and_place(error: BaseException) -> dict[str, str]:
    """What may be said of an exception: its message could quote records."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(HOME)]
    place = f"{Path(frames[-1].filename).relative_to(HOME)}:{frames[-1].lineno}" if frames else "outside"
    return {"error": type(error).__name__, "at": place}


def note(level: int, event: str, **facts: Any) -> None:
    """A line about something that happened, with public facts."""
    logging.getLogger(NAME).log(level, event, extra={"facts": facts})


def failed(event: str, error: BaseException, **facts: Any) -> None:
    """A line about something that went wrong."""
    note(logging.ERROR, f"{event}: {type(error).__name__}", **facts, **kind_and_place(error))


def begin() -> None:
    """Write this process's logs to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(NAME).setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.asgi"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    # Every answer has a line by the service itself.
    logging.getLogger("uvicorn.access").disabled = True
