"""T3 code translation: CodeTransOcean MultilingualTrans, programs of Rosetta Code (Yan et al., 2023)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from robustjudge import spec
from robustjudge.datasets.base import BadRow, Row, case_id, clash
from robustjudge.datasets.paper.common import draft, folder, rows

FILE = "code_task/code2code/multilingual_train.json"
LANGUAGES = ("C", "C++", "C#", "Go", "Java", "Python")


@spec.register("codetransocean")
@dataclass(frozen=True)
class CodeTransOcean:
    """One case per record.  The direction is given by **key order**: the third key is the source language, the
    fourth the target.  A file whose keys were sorted has lost it, and raises :class:`DataError` instead of
    flipping it.  The cluster is the program name, since some programs occur in several records."""

    root: str

    def files(self) -> tuple[str, ...]:
        """The files read, as named inside the data folder."""
        return (FILE,)

    def rows(self) -> Iterator[Row]:
        where = str(folder(self.root) / FILE)
        for record in rows(self.root, FILE, "id", ("name",)):
            if isinstance(record, BadRow):
                yield record
                continue
            line, fields = record
            keys = list(fields)
            if len(keys) != 4 or keys[:2] != ["id", "name"] or not set(keys[2:]) <= set(LANGUAGES):
                raise clash(
                    f"{FILE}:{line}",
                    "the keys id, name, source language, target language in this order",
                    ", ".join(keys),
                )
            source, target = keys[2:]
            if not all(isinstance(fields[k], str) and fields[k].strip() for k in (source, target)):
                yield BadRow(where, line, None, "a program is empty", f"code under {source!r} and {target!r}")
                continue
            yield draft(
                id=case_id(FILE, str(fields["id"]), f"{source}-{target}"),
                task=f"Translate this {source} program into {target}.\n\n{fields[source].strip()}",
                response="",
                references=(fields[target].strip(),),
                kind="code_translation",
                dataset="codetransocean",
                language="en",
                cluster=fields["name"],
                meta={
                    "code_language": target,
                    "direction": f"{source}-{target}",
                    "original": fields[source].strip(),
                    "program": fields["name"],
                    "source_language": source,
                    "target_language": target,
                },
                source=f"CodeTransOcean MultilingualTrans, record {fields['id']} (Rosetta Code)",
                licence="not stated; Apache-2.0 repository, GFDL content (unverified)",
            )
