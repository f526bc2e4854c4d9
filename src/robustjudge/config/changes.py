"""Which judges changed since they were last run: prompt, model, data and attack by hash, against the last run folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustjudge.engine.folder import TABLE, Folder
from robustjudge.errors import RobustJudgeError
from robustjudge.execution import described
from robustjudge.gate.evidence import templates
from robustjudge.plan import Plan
from robustjudge.scales import READER_VERSION
from robustjudge.spec import canonical, digest

MEASURED = ("defenses", "protocols", "attacks", "threats", "seeds", "evaluators", "replicas", "reader")
"""What decides how a judge is measured; any of it changed is a change of the attack."""


@dataclass(frozen=True)
class Change:
    """How a judge stands to its last run (``None``: it has none): the parts that differ, none of them where it is the same."""

    run: Path | None
    parts: tuple[str, ...]

    @property
    def words(self) -> str:
        """Why the judge is run or not, for a terminal."""
        if self.run is None:
            return "never run to its end before"
        return (
            f"{', '.join(self.parts)} changed since {self.run.name}"
            if self.parts
            else f"unchanged since {self.run.name}"
        )


def changes(plan: Plan, config: Mapping[str, Any], inputs: Mapping[str, Any], root: Path) -> dict[str, Change]:
    """Every judge of a plan held against the newest complete run under ``root`` that has a judge of its name."""
    new = {**described(plan), "config": config, "inputs": inputs, "reader": READER_VERSION}
    left, out = {name for name, _ in plan.judges}, dict[str, Change]()
    for path in runs_under(root) if left else ():
        if not left:
            break
        old = manifest_of(path)
        if old.get("state") != "complete":
            continue
        for name in sorted(left & set(old.get("judges", {}))):
            before, now = signature(old, name), signature(new, name)
            out[name] = Change(path, tuple(k for k in now if now[k] != before[k]))
            left.discard(name)
    return {name: out.get(name, Change(None, ())) for name, _ in plan.judges}


def unfinished(plan: Plan, config: Mapping[str, Any], inputs: Mapping[str, Any], root: Path) -> Path | None:
    """The newest run under ``root`` where it was left before its end and is of this very plan: it is gone on with."""
    path = next(iter(runs_under(root)), None)
    old = manifest_of(path) if path is not None else {}
    new = {**described(plan), "config": config, "inputs": inputs, "reader": READER_VERSION}
    names = {name for name, _ in plan.judges}
    same = set(old.get("judges", {})) == names and all(signature(old, n) == signature(new, n) for n in names)
    return path if old.get("state") in ("running", "incomplete") and same else None


def runs_under(root: Path) -> list[Path]:
    """The run folders in ``root``, the newest first."""
    if not root.is_dir():
        return []
    found = [p for p in root.iterdir() if not p.is_symlink() and (p / TABLE).is_file()]
    return sorted(found, key=lambda p: (p.name[:16], (p / TABLE).stat().st_mtime_ns), reverse=True)


def manifest_of(path: Path) -> dict[str, Any]:
    """The manifest of a run; an empty one where it cannot be read, for such a run proves nothing."""
    try:
        return Folder(path).manifest()
    except RobustJudgeError:
        return {}


def signature(manifest: Mapping[str, Any], judge: str) -> dict[str, str]:
    """Hashes of what decides a judge's rows.  The rubric (scale, criteria) stands in its prompt's template."""
    spec = dict(manifest.get("judges", {})).get(judge)
    config = dict(manifest.get("config", {}))
    own = dict(dict(config.get("judges", {})).get(judge) or {})
    reached = [config.get("models", {}), own.get("service")]
    data = str(dict(manifest.get("inputs", {})).get("cases_hash", ""))
    return {
        "prompt": digest(canonical(templates(spec))),
        "model": digest(canonical(_bare(spec)), canonical(reached)),
        "data": data,
        "attack": digest(canonical([manifest.get(k) for k in MEASURED]), canonical(config.get("train_share", 0.0))),
    }


def _bare(spec: Any) -> Any:
    """A dumped judge without its templates."""
    if isinstance(spec, Mapping):
        return {k: _bare(v) for k, v in spec.items() if k != "template"}
    return [_bare(v) for v in spec] if isinstance(spec, list | tuple) else spec
