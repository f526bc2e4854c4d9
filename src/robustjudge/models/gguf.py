"""Reads what a GGUF file says about itself: architecture, context length, tokens and their kinds; no tensors.

Format: the GGUF specification of the ggml project (little-endian header, then key-value pairs).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from robustjudge.errors import ConfigError

_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_CONTROL, _USER_DEFINED = 3, 4
_MOST = 1 << 26
"""No string or array of a header is longer; a larger count means a damaged file."""


@dataclass(frozen=True)
class Header:
    """``context``: trained context in tokens; ``vocabulary``: number of tokens; ``control``: texts that the tokenizer
    turns into control tokens (with those user-defined tokens that the chat template writes)."""

    name: str
    architecture: str
    licence: str
    context: int
    vocabulary: int
    control: tuple[str, ...]
    chat_template: str


@lru_cache(maxsize=16)
def header(path: Path) -> Header:
    """The header of the file at ``path``; :class:`ConfigError` says what is wrong with a file that has none."""
    try:
        with path.open("rb") as file:
            pairs = _pairs(file, path)
    except OSError as fault:
        raise ConfigError(f"cannot read the model file {path}: {fault.strerror or fault}") from None
    architecture = str(pairs.get("general.architecture", ""))
    tokens = pairs.get("tokenizer.ggml.tokens") or []
    kinds = pairs.get("tokenizer.ggml.token_type") or []
    template = str(pairs.get("tokenizer.chat_template", ""))
    control = [
        token
        for token, kind in zip(tokens, kinds)
        if token and (kind == _CONTROL or (kind == _USER_DEFINED and token.strip() and token in template))
    ]
    return Header(
        name=str(pairs.get("general.name", path.stem)),
        architecture=architecture,
        licence=str(pairs.get("general.license", "")),
        context=int(pairs.get(f"{architecture}.context_length", 0)),
        vocabulary=len(tokens),
        control=tuple(control),
        chat_template=template,
    )


def _pairs(file: BinaryIO, path: Path) -> dict[str, Any]:
    if file.read(4) != b"GGUF":
        raise ConfigError(f"{path} is no GGUF file (it does not start with 'GGUF'); was the download cut short?")
    try:
        version, _tensors, count = struct.unpack("<IQQ", file.read(20))
        if version not in (2, 3):
            raise ConfigError(f"{path} is GGUF version {version}; versions 2 and 3 are read")
        return {_string(file): _value(file, _number(file, "<I")) for _ in range(count)}
    except (struct.error, UnicodeDecodeError, KeyError, EOFError):
        raise ConfigError(f"{path}: the GGUF header is damaged or cut short; fetch the file again") from None


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY:
        inner, count = _number(file, "<I"), _number(file, "<Q")
        if count > _MOST:
            raise EOFError
        if inner in _NUMBERS:
            form = f"<{count}{_NUMBERS[inner][1]}"
            return list(struct.unpack(form, file.read(struct.calcsize(form))))
        return [_value(file, inner) for _ in range(count)]
    return _number(file, _NUMBERS[kind])


def _string(file: BinaryIO) -> str:
    size = _number(file, "<Q")
    raw = file.read(size) if size <= _MOST else b""
    if len(raw) != size:
        raise EOFError
    return raw.decode("utf-8", "replace")


def _number(file: BinaryIO, form: str) -> Any:
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]
