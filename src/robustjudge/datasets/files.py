"""Reads JSONL, JSON arrays and CSV record by record, each with its line; a broken record never stops the rest."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeAlias

from robustjudge.datasets.base import BadRow
from robustjudge.errors import DataError

Record: TypeAlias = tuple[int, dict[str, Any]]
"""Line number (from 1) of a record's first line, and its fields."""

MAX_FIELD = 1 << 26  # characters; the csv module's own limit of 131,072 would refuse long documents

_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


def records(path: Path) -> Iterator[Record | BadRow]:
    """The records of a ``.jsonl``, ``.ndjson``, ``.csv`` or ``.tsv`` file, streamed; a ``.json`` array is read whole.

    Raises :class:`DataError` where the file as a whole cannot be used: absent, unknown ending, not UTF-8, no header,
    no rows.
    """
    readers = {".jsonl": jsonl, ".ndjson": jsonl, ".json": json_array, ".csv": table, ".tsv": table}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"{path}: unknown file ending {path.suffix!r}; expected one of {', '.join(sorted(readers))}")
    empty = True
    for record in reader(path):
        empty = False
        yield record
    if empty:
        raise DataError(f"{path}: the file holds no rows, so there is nothing to judge")


def opened(path: Path) -> BinaryIO:
    """``path`` opened for reading behind its UTF-8 byte-order mark, if it has one."""
    try:
        stream = path.open("rb")
    except OSError as fault:
        raise DataError(f"{path}: cannot be read ({fault.strerror or fault}); check the path and its rights") from None
    head = stream.read(3)
    if head[:2] in _UTF16_BOMS:
        stream.close()
        raise DataError(f"{path}: line 1: this is UTF-16; save the file as UTF-8")
    stream.seek(3 if head == _UTF8_BOM else 0)
    return stream


def decoded(raw: bytes, file: str, line: int) -> str | BadRow:
    """``raw`` as text, or a bad row that names the first byte that is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as fault:
        byte = raw[fault.start]
        return BadRow(file, line, fault.start + 1, f"byte 0x{byte:02x} is not valid UTF-8", "a file saved as UTF-8")


# --------------------------------------------------------------------------- JSON


class _Refused(ValueError):
    """JSON that the parser accepts and we do not."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        keys = [k for k, _ in pairs]
        raise _Refused(f"key {next(k for k in keys if keys.count(k) > 1)!r} stands twice in one object")
    return out


def _constant(name: str) -> NoReturn:
    raise _Refused(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def jsonl(path: Path) -> Iterator[Record | BadRow]:
    """One JSON object per line; blank lines are skipped; a broken last line without its end is called cut off."""
    file = str(path)
    with opened(path) as stream:
        for line, raw in enumerate(stream, 1):
            if not raw.strip():
                continue
            text = decoded(raw, file, line)
            if isinstance(text, BadRow):
                yield text
                continue
            found = _object(text.strip(), file, line)
            if isinstance(found, BadRow):
                torn = not raw.endswith(b"\n")
                note = f"the last line is cut off: {found.message}" if torn else found.message
                yield BadRow(file, line, found.column, note, found.expected)
            else:
                yield line, found


def _object(text: str, file: str, line: int) -> dict[str, Any] | BadRow:
    want = "one JSON object per line"
    try:
        value, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError as fault:
        return BadRow(file, line, fault.colno, fault.msg, want)
    except (_Refused, RecursionError, ValueError) as fault:
        return BadRow(file, line, None, str(fault) or type(fault).__name__, want)
    if text[end:].strip():
        return BadRow(file, line, _skip(text, end) + 1, "more text after the object", want)
    if not isinstance(value, dict):
        return BadRow(file, line, 1, f"found {_kind(value)}", want)
    return value


def json_array(path: Path) -> Iterator[Record | BadRow]:
    """The objects of one JSON array; after a syntax error the rest of the file is unreadable and reported as such."""
    file = str(path)
    with opened(path) as stream:
        text = decoded(stream.read(), file, 1)
    if isinstance(text, BadRow):
        raise DataError(str(text))
    at, line, seen = _skip(text, 0), 1, 0
    if text[at : at + 1] != "[":
        raise DataError(f"{path}: line 1: expected a JSON array of objects; for one object per line use .jsonl")
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        line, seen = line + text.count("\n", seen, at), at
        column = at - (text.rfind("\n", 0, at) + 1) + 1
        try:
            value, at = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as fault:
            yield BadRow(file, fault.lineno, fault.colno, f"{fault.msg}; the rest of the file is unreadable", "JSON")
            return
        except (_Refused, RecursionError, ValueError) as fault:
            yield BadRow(file, line, column, f"{fault}; the rest of the file is unreadable", "JSON")
            return
        if isinstance(value, dict):
            yield line, value
        else:
            yield BadRow(file, line, column, f"found {_kind(value)}", "a JSON object")
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != "]":
            last = 1 + text.count("\n", 0, at)
            yield BadRow(file, last, None, "the array does not end here; the file may be cut off", "',' or ']'")
            return


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _kind(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "an array"}
    return names.get(type(value), type(value).__name__)


# --------------------------------------------------------------------------- CSV


def table(path: Path) -> Iterator[Record | BadRow]:
    """CSV (RFC 4180: quoted fields may hold newlines), tab-separated for ``.tsv``; the first row is the header."""
    file = str(path)
    if csv.field_size_limit() < MAX_FIELD:
        csv.field_size_limit(MAX_FIELD)
    with opened(path) as stream:
        # surrogateescape keeps a bad byte inside its own row, where it is found and reported
        text = (raw.decode("utf-8", "surrogateescape") for raw in stream)
        reader = csv.reader(text, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
        header: list[str] | None = None
        while True:
            line = reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                break
            except csv.Error as fault:
                if header is None:
                    raise DataError(f"{path}: line {line}: the header cannot be read ({fault})") from None
                yield BadRow(file, line, None, _csv_message(str(fault)), "CSV with balanced double quotes")
                continue
            if not row:
                continue
            if header is None:
                header = _header(row, path, line)
            elif len(row) != len(header):
                yield BadRow(file, line, None, f"{len(row)} fields", f"{len(header)}, as in the header")
            elif (broken := _not_utf8(row, header, file, line)) is not None:
                yield broken
            else:
                yield line, dict(zip(header, row, strict=True))


def _header(row: list[str], path: Path, line: int) -> list[str]:
    names = [name.strip() for name in row]
    for name in names:
        if not name or names.count(name) > 1:
            what = f"column {name!r} stands twice" if name else "a column has no name"
            raise DataError(f"{path}: line {line}: {what} in the header; each column needs its own name")
    return names


def _not_utf8(row: list[str], header: list[str], file: str, line: int) -> BadRow | None:
    for name, value in zip(header, row, strict=True):
        for char in value:
            if "\udc80" <= char <= "\udcff":
                message = f"byte 0x{ord(char) - 0xDC00:02x} is not valid UTF-8"
                return BadRow(file, line, None, message, "a file saved as UTF-8", field=name)
    return None


def _csv_message(fault: str) -> str:
    if "unexpected end of data" in fault:
        return "a quote opened in this row never closes (the file may be cut off)"
    return fault
