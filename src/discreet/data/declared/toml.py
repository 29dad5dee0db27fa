"""Values and keys of bounds files."""

import json
import re
from typing import Any


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, str):
        # JSON and TOML strings differ in one character: TOML wants DEL escaped too.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def toml_key(name: str) -> str:
    """A key as TOML writes it."""
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else toml_value(name)
