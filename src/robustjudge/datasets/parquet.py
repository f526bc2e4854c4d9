"""Reads Parquet files and Hugging Face dataset folders row by row through pyarrow, which is imported only here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from robustjudge.datasets.base import BadRow
from robustjudge.errors import DataError

BATCH = 256  # rows in memory at a time


def is_folder(path: Path) -> bool:
    """Is ``path`` a folder that ``datasets.save_to_disk`` wrote, or one that holds Parquet or Arrow files?"""
    return path.is_dir() and (
        (path / "dataset_dict.json").is_file() or any(path.glob("*.arrow")) or any(path.rglob("*.parquet"))
    )


def records(path: Path, split: str = "") -> Iterator[tuple[int, dict[str, Any]] | BadRow]:
    """Row number (from 1, counted through all files of the split) and fields of every row.

    ``path`` is a ``.parquet`` file or a dataset folder; ``split`` chooses one where the folder has several.
    Raises :class:`DataError` when pyarrow is absent, the split is unknown or a file is damaged.
    """
    files = _files(path, split)
    row = 0
    for file in files:
        for batch in _batches(file):
            for record in batch:
                row += 1
                yield row, record
    if not row:
        raise DataError(f"{path}: the data set holds no rows, so there is nothing to judge")


def _files(path: Path, split: str) -> list[Path]:
    if path.is_file():
        return [path]
    listing = path / "dataset_dict.json"
    if listing.is_file():
        splits = [str(s) for s in json.loads(listing.read_text("utf-8")).get("splits", [])]
        if split not in splits:
            raise DataError(
                f"{path}: choose one of the splits {', '.join(splits)}" + (f", not {split!r}" if split else "")
            )
        path = path / split
        return sorted(path.glob("*.arrow"))
    files = sorted(path.glob("*.arrow")) or sorted(path.rglob("*.parquet"))
    if split:
        named = [f for f in files if f.name.startswith((f"{split}-", f"{split}.")) or f.parent.name == split]
        if not named:
            raise DataError(f"{path}: no file of split {split!r}; the folder has {', '.join(f.name for f in files)}")
        return named
    prefixes = {f.name.split("-")[0] for f in files if f.suffix == ".parquet" and "-" in f.name}
    if len(prefixes) > 1:
        raise DataError(f"{path}: choose one of the splits {', '.join(sorted(prefixes))}")
    return files


def _batches(file: Path) -> Iterator[list[dict[str, Any]]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError(f"{file}: reading Parquet or Arrow needs pyarrow; install robustjudge[export]") from None
    try:
        if file.suffix == ".arrow":
            with pa.memory_map(str(file)) as mapped, pa.ipc.open_stream(mapped) as reader:
                for batch in reader:
                    for start in range(0, batch.num_rows, BATCH):
                        yield batch.slice(start, BATCH).to_pylist()
        else:
            with pq.ParquetFile(file) as table:
                for batch in table.iter_batches(batch_size=BATCH):
                    yield batch.to_pylist()
    except (pa.ArrowInvalid, OSError) as fault:
        raise DataError(f"{file}: not a readable {file.suffix[1:]} file ({fault})") from None
