"""Keeps what searches found as artefacts of the run: texts per case with their provenance, to be replayed elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from robustjudge.attacks.replay import Replay
from robustjudge.attacks.search import Provenance
from robustjudge.engine.folder import Folder
from robustjudge.judges import Guarded
from robustjudge.nouns import Access, Budget
from robustjudge.plan import Plan, artefact_name
from robustjudge.spec import dump
from robustjudge.table import content, open_run
from robustjudge.threat import slug
from robustjudge.trial import Cell, surrogate

SPENT = ("queries", "writes", "losses", "gradients")
_SQL = (
    "SELECT case_id, text_hash, queries, writes, losses, gradients, json_extract(detail, '$.curve') FROM trials"
    " WHERE judge = ? AND defense = ? AND protocol = ? AND threat = ? AND attack = ? AND seed = ?"
    " AND queries + writes + losses > 0 AND attack_status IN ('ok', 'exhausted') ORDER BY case_id"
)


def keep(plan: Plan, folder: Folder) -> None:
    """Write ``artefacts/JUDGE.DEFENSE.PROTOCOL.ATTACK.json`` for every search of a plan that found texts.

    ``attack`` is a :class:`~robustjudge.attacks.replay.Replay`, which ``artefact:FILE`` runs against another judge;
    ``traces`` are the best worth after so many evaluations, case by case; ``spent`` is what all cases used together.
    Texts that the run did not store (``--store hashes``) cannot be kept.
    """
    db = open_run(folder.table)
    try:
        for key, cell in _searches(plan):
            attack: Any = cell.attack
            where = (
                cell.judge_name,
                cell.defense_name,
                cell.protocol.kind,
                cell.threat.label,
                attack.name,
                cell.seed,
            )
            rows = [(case, content(db, mark), *rest) for case, mark, *rest in db.execute(_SQL, where)]
            rows = [r for r in rows if r[1] is not None]
            if not rows:
                continue
            spent = {name: sum(int(r[2 + i]) for r in rows) for i, name in enumerate(SPENT)}
            traces = {r[0]: json.loads(r[6] or "[]") for r in rows}
            best = tuple(float(t[-1][1]) for t in traces.values() if t)
            origin = Provenance(
                tuple(r[0] for r in rows),
                "verdict margin" if attack.access >= Access.ODDS else "worth of the verdict",
                cell.seed,
                spent["queries"] + spent["losses"],
                best,
                surrogate(cell),
            )
            found = Replay(attack.name, tuple((r[0], r[1]) for r in rows), getattr(attack, "channel", "append"), origin)
            told = {"attack": dump(found), "search": dump(attack), "spent": spent, "traces": traces}
            folder.write(f"artefacts/{artefact_name(key)}", json.dumps(told, indent=2, sort_keys=True))
    finally:
        db.close()


def _searches(plan: Plan) -> Iterator[tuple[str, Cell]]:
    """The searches of a plan that make a text of their own for every case: a file name and a cell without its case."""
    first = next(iter(plan.cases()), None)
    if first is None:
        return
    for name, judge in plan.judges:
        for shield, defense in plan.defenses:
            guarded = judge if defense is None else Guarded(judge, defense)
            for protocol in plan.protocols:
                for attack in plan.attacks:
                    fitted: Any = (
                        getattr(attack, "fitted_ceiling", Budget) if getattr(attack, "universal", False) else None
                    )
                    if fitted is not None and fitted() == Budget(0, 0, 0, 0):
                        continue  # its artefact holds all of it
                    if attack.access == Access.NONE or bool(getattr(attack, "control", "")):
                        continue
                    for threat in plan.threats:
                        for seed in plan.seeds:
                            parts = [name, shield, protocol.kind, attack.name.replace("/", "-")]
                            parts += [slug(threat.label)] if len(plan.threats) > 1 else []
                            parts += [str(seed)] if len(plan.seeds) > 1 else []
                            cell = Cell(
                                first, attack, guarded, protocol, seed, threat, judge_name=name, defense_name=shield
                            )
                            yield ".".join(parts), cell
