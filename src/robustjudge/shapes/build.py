"""From a run folder to its suite's tables: a pure function of table and manifest, written beside the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from robustjudge.engine.folder import Folder
from robustjudge.reports.model import NEEDED, settings_of
from robustjudge.shapes import page
from robustjudge.shapes.attacks import fig3, fig4, fig6, standard
from robustjudge.shapes.base import Shape, Source
from robustjudge.shapes.best_of import fig5
from robustjudge.shapes.defenses import table5
from robustjudge.shapes.service import fig7, suffixes
from robustjudge.shapes.templates import table6
from robustjudge.suite import Quoted, about, shapes, size_of, suite_hash, suite_names
from robustjudge.table import Table, open_run

BUILDERS: Mapping[str, Callable[[Source], Shape]] = {
    "standard": standard,
    "fig3": fig3,
    "fig4": fig4,
    "fig5": fig5,
    "fig6": fig6,
    "fig7": fig7,
    "table5": table5,
    "table6": table6,
}


def source_of(path: Path) -> Source:
    """What the shapes of a run are made of."""
    folder = Folder.open(path)
    manifest = folder.manifest()
    db = open_run(folder.table)
    try:
        long = (
            suffixes(db)
            if "E10" in str(manifest.get("attacks", "")) or "long_suffix" in str(manifest.get("attacks", ""))
            else ()
        )
    finally:
        db.close()
    return Source(Table.load(folder.table, NEEDED), manifest, long, settings_of(manifest))


def quoted_of(manifest: Mapping[str, Any]) -> Quoted | None:
    """The suite that a run belongs to."""
    return Quoted.of(str(manifest.get("config", {}).get("suite", "")))


def built(path: Path) -> tuple[str, list[str], tuple[Shape, ...]] | None:
    """Title, lead and shapes of a suite's run; ``None`` where the run belongs to no suite that is known here."""
    source = source_of(path)
    suite = quoted_of(source.manifest)
    if suite is None or suite.name not in suite_names():
        return None
    lead = [about(suite.name), f"quote as {suite.name}, content hash {suite.content}, size {suite.size}"]
    if particular := size_of(suite.name, suite.size):
        lead.append(f"embedded size: {particular}; it shows the machinery and says nothing about judges")
    if suite.content != suite_hash(suite.name):
        lead.append(f"made by another version of this suite (this version's hash: {suite_hash(suite.name)})")
    if suite.changed:
        lead.append(f"NOT the frozen plan: {', '.join(suite.changed)} differ, so do not quote it by the suite's name")
    state = source.manifest.get("state")
    if state and state != "complete":
        lead.append(f"the run is {state}: rows are missing")
    tables = tuple(BUILDERS[name](source) for name in shapes(suite.name))
    return f"{suite.name} ({len(source.table):,} trials)", lead, tables


def write(path: Path) -> dict[str, Path]:
    """Write ``suite.md`` and ``suite.html`` into the run folder; nothing for a run that belongs to no suite."""
    found = built(path)
    if found is None:
        return {}
    home = Folder.open(path)
    return {"md": home.write("suite.md", page.markdown(*found)), "html": home.write("suite.html", page.html(*found))}


def told(path: Path) -> str:
    """The tables of a suite's run as text for a terminal; empty for other runs."""
    found = built(path)
    return page.text(*found) if found is not None else ""
