"""T1 translation: FLORES-200 sentences, aligned by line number across languages (NLLB Team, 2022)."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from robustjudge import spec
from robustjudge.datasets import files
from robustjudge.datasets.base import BadRow, Row, case_id, clash
from robustjudge.datasets.paper.common import draft, folder
from robustjudge.errors import DataError, UnknownName

LANGUAGES = {
    "en": ("eng_Latn", "English"),
    "zh": ("zho_Hans", "Chinese"),
    "de": ("deu_Latn", "German"),
    "yo": ("yor_Latn", "Yoruba"),
}
DIRECTIONS = ("zh-en", "de-en", "yo-en", "en-zh", "en-de", "en-yo")
FIELDS = ("URL", "domain", "topic", "has_image", "has_hyperlink")
PARTS = ("dev", "devtest")


@spec.register("flores")
@dataclass(frozen=True)
class Flores:
    """Sentence pairs of ``directions``, line by line: line 1 in every direction, then line 2, and so on.

    ``part`` is ``dev`` (what the paper uses; widely used for training) or ``devtest`` (held out).
    Neighbouring lines come from one article, so the cluster is its URL.
    """

    root: str
    part: str = "dev"
    directions: tuple[str, ...] = DIRECTIONS

    def __post_init__(self) -> None:
        if self.part not in PARTS:
            raise UnknownName("part of FLORES-200", self.part, PARTS)
        if not self.directions:
            raise DataError("FLORES-200: name at least one direction, such as 'zh-en'")
        for direction in self.directions:
            source, _, target = direction.partition("-")
            if source not in LANGUAGES or target not in LANGUAGES or source == target:
                raise UnknownName("direction of FLORES-200", direction, DIRECTIONS)

    def files(self) -> tuple[str, ...]:
        """The files read, as named inside the data folder."""
        codes = sorted({code for d in self.directions for code in d.split("-")})
        texts = (f"flores200/{self.part}/{LANGUAGES[code][0]}.{self.part}" for code in codes)
        return (*texts, f"flores200/metadata_{self.part}.tsv")

    def rows(self) -> Iterator[Row]:
        root = folder(self.root)
        *names, listing = self.files()
        codes = sorted({code for d in self.directions for code in d.split("-")})
        columns = {code: _lines(root / name) for code, name in zip(codes, names, strict=True)}
        about = _metadata(root / listing)
        counts = {name: len(columns[code]) for code, name in zip(codes, names, strict=True)} | {listing: len(about)}
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{n} in {name}" for name, n in counts.items())
            raise clash(f"flores200/{self.part}", "equally many lines in every file (they are aligned by line)", found)
        for number, tags in enumerate(about, 1):
            for direction in self.directions:
                yield self._row(root, direction, number, tags, columns)

    def _row(
        self, root: Path, direction: str, number: int, tags: dict[str, str], columns: dict[str, list[str | BadRow]]
    ) -> Row:
        source, target = direction.split("-")
        pair: list[str] = []
        for code in (source, target):
            text = columns[code][number - 1]
            if isinstance(text, BadRow):
                return text
            if not text.strip():
                name = f"flores200/{self.part}/{LANGUAGES[code][0]}.{self.part}"
                return BadRow(str(root / name), number, None, "the line is empty", "one sentence per line")
            pair.append(text)
        names = LANGUAGES[source][1], LANGUAGES[target][1]
        return draft(
            id=case_id(f"flores200/{self.part}", str(number), direction),
            task=f"Translate this sentence from {names[0]} into {names[1]}.\n\n{pair[0]}",
            response="",
            references=(pair[1],),
            kind="translation",
            dataset=f"flores200/{self.part}",
            language=target,
            cluster=tags["URL"],
            meta={
                "direction": direction,
                "domain": tags["domain"],
                "line": str(number),
                "original": pair[0],
                "source_language": names[0],
                "target_language": names[1],
                "topic": tags["topic"],
            },
            source=tags["URL"],
            licence="CC-BY-SA-4.0",
        )


def _lines(path: Path) -> list[str | BadRow]:
    with files.opened(path) as stream:
        # only "\n" ends a line: other separators inside a sentence must not break the alignment
        return [files.decoded(raw.rstrip(b"\r\n"), str(path), n) for n, raw in enumerate(stream, 1)]


def _metadata(path: Path) -> list[dict[str, str]]:
    with files.opened(path) as stream:
        try:
            text = stream.read().decode("utf-8")
        except UnicodeDecodeError as fault:
            raise DataError(f"{path}: byte {fault.start + 1} is not valid UTF-8; restore the published file") from None
        reader = csv.DictReader(text.split("\n"), delimiter="\t", quoting=csv.QUOTE_NONE)
        if tuple(reader.fieldnames or ()) != FIELDS:
            raise clash(str(path), f"the columns {', '.join(FIELDS)}", reader.fieldnames)
        return [{k: str(row.get(k) or "") for k in FIELDS} for row in reader]
