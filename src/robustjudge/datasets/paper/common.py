"""What the loaders of published files share: the root folder, records of a known shape, texts through the door."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from robustjudge import door
from robustjudge.datasets import files
from robustjudge.datasets.base import BadRow, Ids
from robustjudge.errors import DataError
from robustjudge.nouns import Case


def folder(root: str) -> Path:
    """The data folder; :class:`DataError` when it is unset or absent."""
    if not root:
        raise DataError("the published data sets are not part of this package; say where they are with root=FOLDER")
    path = Path(root).expanduser()
    if not path.is_dir():
        raise DataError(f"{path}: no such folder; root is the folder that holds the published data files")
    return path


def rows(root: str, name: str, key: str, texts: tuple[str, ...]) -> Iterator[tuple[int, dict[str, Any]] | BadRow]:
    """Records of the JSON array ``root/name`` with a unique ``key`` and a visible text in each field of ``texts``."""
    path = folder(root) / name
    ids = Ids(str(path))
    for record in files.records(path):
        if isinstance(record, BadRow):
            yield record
            continue
        line, fields = record
        bad = _shape(path, line, fields, key, texts) or ids.twice(str(fields[key]), line)
        yield bad if bad is not None else record


def _shape(path: Path, line: int, fields: Mapping[str, Any], key: str, texts: tuple[str, ...]) -> BadRow | None:
    if not isinstance(fields.get(key), (str, int)) or fields[key] == "":
        return BadRow(str(path), line, None, "the record has no id", "a text or a number", field=key)
    for name in texts:
        value = fields.get(name)
        if not isinstance(value, str) or not value.strip():
            what = "the field is missing" if value is None else "the text is empty"
            return BadRow(
                str(path),
                line,
                None,
                what if value is None or isinstance(value, str) else "not text",
                "a text",
                field=name,
            )
    return None


def draft(
    *,
    id: str,
    task: str,
    response: str,
    references: tuple[str, ...],
    kind: str,
    dataset: str,
    language: str,
    cluster: str,
    meta: Mapping[str, str],
    source: str,
    licence: str,
    defect: str = "",
    verified: str = "",
) -> Case:
    """A case of a published record, every text through the door.  An empty response is still to be made."""
    texts = (task, response, *references, *meta.values())
    safe = {k: door.safe(v) for k, v in meta.items() if v}
    return Case(
        id=id,
        task=door.safe(task),
        response=door.safe(response),
        references=tuple(door.safe(r) for r in references),
        kind=kind,
        dataset=dataset,
        language=language,
        defect=defect,
        verified=verified,
        cluster=cluster or id,
        meta=tuple(sorted(safe.items())),
        source=source,
        licence=licence,
        text_mapped=any(door.safe(t) is not t for t in texts),
    )
