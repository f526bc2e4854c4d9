"""A judge prompt in parts written as TOML that reads back as the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robustjudge.errors import TemplateError


def to_toml(data: Mapping[str, Any]) -> str:
    """``data`` as TOML: plain values first, then tables; texts with line breaks stand in multi-line strings."""
    return "\n".join(_table(data, ())).strip("\n") + "\n"


def _table(data: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {k: v for k, v in data.items() if not isinstance(v, Mapping)}
    out = []
    if path and (plain or not data):
        out += ["", f"[{'.'.join(_key(p) for p in path)}]"]
    out += [f"{_key(k)} = {_value(v)}" for k, v in plain.items()]
    for key, value in data.items():
        if isinstance(value, Mapping):
            out += _table(value, (*path, key))
    return out


def _key(name: str) -> str:
    return name if name and all(c.isascii() and (c.isalnum() or c in "_-") for c in name) else _quoted(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return _block(value) if "\n" in value else _quoted(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(_value(v) for v in value)}]"
    raise TemplateError(f"a prompt file holds text, numbers and lists, not {type(value).__name__}")


def _escaped(text: str) -> str:
    return "".join(
        {"\\": "\\\\", '"': '\\"'}.get(c, c)
        if c == "\n" or c == "\t" or (c >= " " and c != "\x7f")
        else f"\\u{ord(c):04x}"
        for c in text
    )


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'.replace("\t", "\\t").replace("\n", "\\n")


def _block(text: str) -> str:
    return f'"""\n{_escaped(text)}"""'
