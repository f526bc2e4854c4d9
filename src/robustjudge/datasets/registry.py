"""The door to data sets: built-in cases, the published tasks T1-T8 by name, and the user's own files by path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from robustjudge import spec
from robustjudge.datasets import checksums, files, parquet
from robustjudge.datasets.base import KINDS, OPEN, TASKS, BadRow, Cases, Ids, OnBad, Quality, Row, Source, warn
from robustjudge.datasets.columns import Columns
from robustjudge.datasets.paper.cnn import CnnDailyMail
from robustjudge.datasets.paper.code_to_text import CodeToText
from robustjudge.datasets.paper.codetrans import CodeTransOcean
from robustjudge.datasets.paper.flores import DIRECTIONS, PARTS, Flores
from robustjudge.datasets.paper.judgebench import JudgeBench
from robustjudge.datasets.paper.webquery import WebQuery
from robustjudge.datasets.weaken import DISTRACTORS, Pool, weaken
from robustjudge.errors import ConfigError, DataError, UnknownName
from robustjudge.nouns import Case

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Make = Callable[[str, str], Source]
"""``(root, option) -> source``; the option is what follows ``/`` in a name, mostly empty."""

_BY_NAME = Columns()  # columns named as the fields of a case
ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


def _plain(make: Callable[[str], Source]) -> Make:
    def build(root: str, option: str) -> Source:
        if option:
            raise UnknownName("option of this data set", option, ("none",))
        return make(root)

    return build


def _flores(root: str, option: str) -> Source:
    if option in PARTS or not option:
        return Flores(root, part=option or PARTS[0])
    if option in DIRECTIONS:
        return Flores(root, directions=(option,))
    raise UnknownName("option of the translation task", option, (*PARTS, *DIRECTIONS))


_PUBLISHED: dict[str, Make] = {
    "translation": _flores,
    "summarization": _plain(CnnDailyMail),
    "code_translation": _plain(CodeTransOcean),
    "code_summarization": _plain(CodeToText),
    "code_generation": _plain(WebQuery),
    "logic": _plain(lambda root: JudgeBench(root, "logic")),
    "mathematics": _plain(lambda root: JudgeBench(root, "mathematics")),
    "knowledge": _plain(lambda root: JudgeBench(root, "knowledge")),
}
_FILES_OF = (Flores, CnnDailyMail, CodeTransOcean, CodeToText, WebQuery, JudgeBench)
_OTHERS: dict[str, tuple[str, Make]] = {}


def register(name: str, make: Make, origin: str) -> None:
    """Make a data set known by name; :class:`ConfigError` naming both packages when the name is taken.

    Third parties use the entry-point group ``robustjudge.datasets`` instead of calling this.
    """
    owner = "robustjudge" if name in _reserved() else _OTHERS[name][0] if name in _OTHERS else ""
    if owner and owner != origin:
        raise ConfigError(f"the data set {name!r} is registered by both {owner} and {origin}; rename one")
    _OTHERS[name] = (origin, make)


def _reserved() -> tuple[str, ...]:
    return ("builtin", *TASKS, *KINDS)


def names() -> tuple[str, ...]:
    """Every data set that can be loaded by name."""
    return tuple(dict.fromkeys((*_reserved(), *sorted({*_OTHERS, *_plugged()}))))


def _plugged() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return {point.name: point for point in entry_points(group="robustjudge.datasets")}


@spec.register("builtin_cases")
@dataclass(frozen=True)
class Builtin:
    """The cases that come with the package: all, or those of one kind."""

    kind: str = ""

    def rows(self) -> Iterator[Row]:
        from robustjudge.datasets.builtin_cases import builtin

        yield from builtin(self.kind or None)


@spec.register("case_file")
@dataclass(frozen=True)
class CaseFile:
    """Cases in a file (JSONL, JSON, CSV, TSV, Parquet) or a Hugging Face dataset folder, through a column mapping.

    ``kind`` where the rows name none; ``require`` lists optional fields that must not be empty (``reference``);
    with ``response=False`` rows may lack a response; ``split`` chooses a part of a dataset folder.
    """

    path: str
    columns: Columns = Columns()
    kind: str = ""
    require: tuple[str, ...] = ()
    response: bool = True
    split: str = ""

    def rows(self) -> Iterator[Row]:
        path = Path(self.path)
        if self.kind and self.kind not in (*KINDS, OPEN):
            raise UnknownName("task kind", self.kind, (*KINDS, OPEN))
        if not path.exists():
            raise DataError(f"{path}: no such file or folder; known data sets: {', '.join(names())}")
        if path.is_dir() and not parquet.is_folder(path):
            raise DataError(
                f"{path}: a folder without Parquet or Arrow files; give one of {', '.join(ENDINGS)} instead"
            )
        columnar = path.is_dir() or path.suffix.lower() == ".parquet"
        found = parquet.records(path, self.split) if columnar else files.records(path)
        table = columnar or path.suffix.lower() in (".csv", ".tsv")
        ids, checked = Ids(self.path), not table
        for record in found:
            if isinstance(record, BadRow):
                yield record
                continue
            line, fields = record
            if not checked:
                self.columns.check(fields, self.path, response=self.response, require=self.require)
                checked = True
            case = self.columns.case(
                fields, self.path, line, dataset=path.name, kind=self.kind, response=self.response, require=self.require
            )
            if isinstance(case, Case) and (twice := ids.twice(case.id, line)) is not None:
                yield twice
            else:
                yield case


def source(name: str, *, root: str = "") -> Source | None:
    """The source known under ``name`` (``builtin``, ``T1``, ``translation``, ``T1/devtest``, ``builtin/logic``), or
    ``None`` for what looks like a path.  ``root`` is the folder of the published data files.

    Raises :class:`UnknownName` for what is neither.
    """
    head, _, option = name.partition("/")
    if head == "builtin":
        kind = TASKS.get(option, option)
        if kind and kind not in KINDS:
            raise UnknownName("task kind", option, (*TASKS, *KINDS))
        return Builtin(kind)
    if head.upper() in TASKS or head in KINDS:
        return _PUBLISHED[TASKS.get(head.upper(), head)](root, option)
    if head in _OTHERS:
        return _OTHERS[head][1](root, option)
    path = Path(name)
    if path.exists() or path.suffix.lower() in ENDINGS:
        return None
    if (point := _plugged().get(head)) is not None:
        make: Make = point.load()
        return make(root, option)
    if "/" in name:
        return None
    raise UnknownName("data set", name, names())


def load(
    name: str | Path | Source,
    *,
    root: str | Path = "",
    limit: int | None = None,
    columns: Columns = _BY_NAME,
    kind: str = "",
    require: Iterable[str] = (),
    split: str = "",
    make_weak: bool = False,
    quality: Quality | None = None,
    seed: int = 0,
    distractors: int = DISTRACTORS,
    verify_files: bool = True,
    on_bad: OnBad = warn,
) -> Cases:
    """Cases of a named data set, a file or a source, streamed.

    ``limit`` reads that many at once and raises :class:`DataError` when there are fewer; without it the cases stream
    in flat memory (ids are kept as hashes).  Bad rows go to ``on_bad`` and into ``.bad``, failed weak candidates into
    ``.aside``.  Published tasks get verified weak responses and distractors by rule, with ``quality`` as the measure
    (default: likeness to the reference; the final answer for T6-T8); files get them with ``make_weak=True``.
    With ``verify_files`` published files are compared with ``SHA256SUMS`` where ``root`` has one.
    """
    if isinstance(name, (str, Path)):
        label = str(name)
        file = CaseFile(label, columns, kind, tuple(require), response=not make_weak, split=split)
        found = (source(name, root=str(root)) if isinstance(name, str) else None) or file
    else:
        label, found = type(name).__name__, name
    published = isinstance(found, _FILES_OF)
    if isinstance(found, _FILES_OF) and verify_files and found.root and (Path(found.root) / checksums.NAME).is_file():
        checksums.check(Path(found.root), found.files())
    rows: Iterable[Row] = found.rows()
    if make_weak or published:
        rows = _weakened(found, quality, seed, distractors)
    cases = Cases(rows, on_bad)
    return cases if limit is None else cases.first(limit, label)


def _weakened(found: Source, quality: Quality | None, seed: int, distractors: int) -> Iterator[Row]:
    yield from weaken(found.rows(), Pool(found.rows()), quality=quality, seed=seed, distractors=distractors)
