"""A leaderboard over runs of one suite: judges side by side, ranks only where the data can carry them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robustjudge.engine.folder import Folder
from robustjudge.errors import DataError, NotComparable
from robustjudge.measures.grid import Panel
from robustjudge.nouns import Estimate
from robustjudge.shapes.base import Source, cell, doubt, read_rate, truncated
from robustjudge.shapes.build import quoted_of, source_of
from robustjudge.shapes.page import document, safe


@dataclass(frozen=True)
class Entry:
    """One judge of one run under one protocol.  ``doubt``: why its figure ranks it nowhere, or the empty string."""

    judge: str
    protocol: str
    run: str
    started: str
    attacked: Estimate
    null: Estimate | None
    clean: Estimate | None
    read: Estimate
    cut: int
    doubt: str = ""


def entries(runs: Sequence[Path]) -> tuple[str, tuple[Entry, ...]]:
    """The suite (name, hash and size) and every judge of the runs.

    Raises :class:`NotComparable` for runs of no suite, of different suites, versions or sizes, for runs that changed
    settings of theirs, and for unfinished ones; :class:`DataError` for a judge that is in two runs.
    """
    if not runs:
        raise DataError("give at least one run folder")
    suite, out, seen = "", [], dict[tuple[str, str, str], str]()
    for run in runs:
        path = Folder.open(run).path
        source = source_of(path)
        quoted = quoted_of(source.manifest)
        if quoted is None:
            raise NotComparable(f"{path.name} belongs to no suite; a leaderboard compares runs of one `--suite`")
        if quoted.changed:
            raise NotComparable(f"{path.name} is not the frozen plan: {', '.join(quoted.changed)} were changed")
        if source.manifest.get("state") != "complete":
            raise NotComparable(
                f"{path.name} is {source.manifest.get('state', 'without a manifest')}: go on with --resume"
            )
        here = f"{quoted.name}@{quoted.content}/{quoted.size}"
        if suite and here != suite:
            raise NotComparable(
                f"{path.name} is a run of {here}, the others are of {suite}; they measure different things"
            )
        suite = here
        for panel in source.panels:
            entry = _entry(source.rows(panel.protocol, judge=panel.judge, defense=panel.defense), panel, path, source)
            if panel.protocol == "pointwise" and not entry.doubt:
                entry = replace(entry, doubt=_in_pairs(source, panel))
            key = (entry.judge, entry.protocol, panel.threat)
            if key in seen:
                raise DataError(f"judge {entry.judge!r} is in {seen[key]} and in {path.name}; leave one out")
            seen[key] = path.name
            out.append(entry)
    return suite, tuple(out)


def _in_pairs(source: Source, p: Panel) -> str:
    """The doubt about the same judge where it compares pairs: scores of weak texts alone do not show whether it judges."""
    pair = next(
        (q for q in source.panels if (q.judge, q.defense, q.protocol) == (p.judge, p.defense, "pairwise")), None
    )
    return doubt(source.rows("pairwise", judge=p.judge, defense=p.defense), pair) if pair is not None else ""


def _entry(rows: Any, p: Panel, path: Path, source: Source) -> Entry:
    name = p.judge if p.defense in ("", "none") else f"{p.judge} behind {p.defense}"
    protocol = f"best of {p.k}" if p.protocol == "best_of" else p.protocol
    started = str(source.manifest.get("started", ""))
    clean = p.clean.get("clean_accuracy", p.clean.get("mean_unit"))
    attacked = p.worst.get("any_attack", Estimate.undefined("no attacked case could be judged", low=0.0, high=1.0))
    return Entry(
        name,
        protocol,
        path.name,
        started,
        attacked,
        p.worst.get("null"),
        clean,
        read_rate(rows),
        truncated(rows),
        doubt(rows, p),
    )


def ranks(found: Sequence[Entry]) -> dict[str, tuple[int, int]]:
    """The best and the worst rank of each judge that the intervals allow (1 is hardest to move).

    A judge of whom little is read, or that tells no good text from a weak one before any attack, has no rank: it is not
    moved because it does not judge.
    """
    known = [e for e in found if not e.doubt and e.attacked.low is not None and e.attacked.high is not None]
    return {
        e.judge: (
            1 + sum((o.attacked.high or 0.0) < (e.attacked.low or 0.0) for o in known),
            len(known) - sum((o.attacked.low or 0.0) > (e.attacked.high or 0.0) for o in known),
        )
        for e in known
    }


def ordered(found: Sequence[Entry]) -> list[Entry]:
    """The hardest to move first; those without a rank last."""
    return sorted(found, key=lambda e: (e.attacked.value is None or bool(e.doubt), e.attacked.value or 0.0, e.judge))


def placed(e: Entry, place: Mapping[str, tuple[int, int]]) -> str:
    """The rank of a judge in words, a range where intervals overlap, or why it has none."""
    low, high = place.get(e.judge, (0, 0))
    if not high:
        return f"not ranked: {e.doubt or e.attacked.reason}"
    return str(low) if low == high else f"{low} to {high}"


def page(suite: str, found: Sequence[Entry]) -> str:
    """One self-contained page; a table per protocol, the hardest to move first."""
    body = [
        "<h1>Leaderboard</h1>",
        f"<p>Suite <code>{safe(suite)}</code>: every run below followed this frozen plan.</p>",
    ]
    for protocol in dict.fromkeys(e.protocol for e in found):
        here = ordered([e for e in found if e.protocol == protocol])
        place = ranks(here)
        body.append(f"<h2>{safe(protocol)}</h2>")
        heads = ("rank", "judge", "some attack succeeds", "noise alone", "clean", "read", "cut at the limit", "run")
        body.append(
            '<div class="scroll"><table><thead><tr>' + "".join(f"<th>{h}</th>" for h in heads) + "</tr></thead><tbody>"
        )
        for e in here:
            null = cell(e.null) if e.null is not None else "not run"
            unit = "%" if protocol != "pointwise" else ""
            clean = cell(e.clean, unit) if e.clean is not None else ""
            run = f"{e.run} ({e.started})"
            cells = (placed(e, place), e.judge, cell(e.attacked), null, clean, cell(e.read), str(e.cut), run)
            body.append("<tr>" + "".join(f"<td>{safe(c)}</td>" for c in cells) + "</tr>")
        body.append("</tbody></table></div>")
    body.append(
        '<p class="dim">Share of attackable cases in which at least one attack of the suite succeeded, with its 95 %'
        " interval; lower is better. A rank is a range: judges whose intervals overlap are not told apart. A judge of whom"
        " little is read, or that tells no good text from a weak one before any attack, is not robust and has no rank."
        " Clean: accuracy where responses are compared, mean share of the scale where one is scored.</p>"
    )
    return document("robustjudge leaderboard", "\n".join(body))
