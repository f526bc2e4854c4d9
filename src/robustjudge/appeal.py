"""The interactive protocol: the judge's reply stays in the conversation, the author answers, the judge judges again."""

from __future__ import annotations

import traceback
from dataclasses import replace
from typing import Any

from robustjudge.asks import Measure
from robustjudge.attacks.base import Exhausted, NoCandidate
from robustjudge.errors import Incomplete
from robustjudge.nouns import AttackStatus, Feedback, Turn
from robustjudge.protocols import Appeal
from robustjudge.steps import handled
from robustjudge.trial import Cell, Meter, Oracle, Shown, Spent, Trial, judged, shown


async def appeal(cell: Cell) -> Trial:
    """One appeal: first verdict, then ``turns`` answers of the author and a verdict after each (attacks.md, E9).

    The author is an attack with ``plea(case, turn, feedback, exchange)``; it sees the verdict's worth, and the judge's
    words only where the threat model shows the rationale.  Each turn has a replica name of its own, so no repeat is
    answered from the ledger; the judge's words in the conversation are its own, as it wrote them.
    """
    case, judge, protocol, threat = cell.case, cell.judge, cell.protocol, cell.threat
    assert isinstance(protocol, Appeal)
    clean = await judged(judge, protocol, case, case.response, "clean", range(cell.cleans), cell.seed)
    meter = Meter(threat.budget)
    (slate,) = protocol.slates(case, case.response, f"final/{cell.seed}.0", cell.seed)
    first = await shown(judge, slate, "final", 0)
    seen: list[Shown] = [first]
    exchange: tuple[Turn, ...] = ()
    pleas: list[str] = []
    status: AttackStatus = "ok"
    error = ""
    plea: Any = getattr(cell.attack, "plea", None)
    try:
        if plea is None:
            raise NoCandidate(f"{cell.attack.name} makes no pleas; an appeal needs an attack that answers a verdict")
        for turn in range(protocol.turns):
            verdict = seen[-1].verdict
            meter.fit("queries", 1)
            worth = protocol.worth(verdict)
            told = float(worth >= 1 - 1e-9) if threat.verdict_only else worth
            feedback = Feedback(told, verdict.status, verdict.rationale if threat.rationale else "")
            text = await handled(plea(case.sealed(), turn, feedback, exchange), Oracle(cell, meter))
            pleas.append(text)
            exchange = (*exchange, Turn("assistant", verdict.raw), Turn("user", text))
            again = replace(slate, exchange=exchange, replica=f"final/{cell.seed}.{turn + 1}")
            seen.append(await shown(judge, again, "final", turn + 1))
            meter.note(protocol.worth(seen[-1].verdict), text)
    except Exhausted:
        status = "exhausted"
    except NoCandidate as why:  # an author who falls silent later has ended the appeal, and the last verdict counts
        status, error = "ok" if pleas else "no_candidate", str(why)
    except (Incomplete, GeneratorExit):
        raise
    except Exception as fault:
        status, error = "error", "".join(traceback.format_exception(fault))
    s = meter.spent
    spent = Spent(s["queries"], s["writes"], s["losses"], s["gradients"], tuple(meter.curve))
    if not pleas:
        return Trial(cell, status, None, clean, (), spent=spent, error=error)
    ended = (seen[-1], *seen[:-1])  # the last verdict is the one that counts
    quality = None
    if cell.evaluator:  # the response is the same before and after
        (quality,) = await Measure(cell.evaluator, case, (case.response,))
    return Trial(cell, status, "\n\n".join(pleas), clean, ended, quality, quality, spent, error)
