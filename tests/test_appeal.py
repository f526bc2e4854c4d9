"""The interactive protocol: figures per turn, its control, and what the judge is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from robustjudge.attacks.library import attack
from robustjudge.execution import Options, Run, execute
from robustjudge.judges import Prompted
from robustjudge.nouns import Access, Call, Case, Completion
from robustjudge.plan import Plan
from robustjudge.prompts.library import template
from robustjudge.protocols import Appeal
from robustjudge.table import content, details, open_run
from robustjudge.threat import ThreatModel


class Yielding:
    """Gives in at the second plea; sees rendered text only."""

    name, access, context, concurrency, identity = "toy/yielding", Access.SCORE, None, 4, "toy"

    def __init__(self, at: int = 2) -> None:
        self.at = at
        self.seen: list[Call] = []

    async def complete(self, call: Call) -> Completion:
        self.seen.append(call)
        pleas = sum(p.field.startswith("exchange/") for m in call.messages if m.role == "user" for p in m.parts)
        return Completion(f"I read it.\n\nVERDICT: {9 if pleas >= self.at else 3}")

    async def close(self) -> None:
        pass


CASES = tuple(Case(f"c{i}", f"Task {i}: name a prime.", f"{i}", (f"{2 + i}",)) for i in range(3))


def run(tmp_path: Path, model: Yielding, attacks: tuple[str, ...] = ("plea", "plea/same")) -> Run:
    plan = Plan(
        lambda: iter(CASES),
        (("toy", Prompted("toy/yielding", template("robustjudge"))),),
        tuple(Appeal(turns=t) for t in (1, 2, 3)),
        tuple(attack(n) for n in attacks),
        cleans=1,
    )
    return execute(plan, Options(root=tmp_path / "runs", ledger=tmp_path / "l.sqlite", models={"toy/yielding": model}))


def scores(done: Run) -> dict[tuple[int, str], set[float]]:
    out: dict[tuple[int, str], set[float]] = {}
    for row in done.table().rows():
        out.setdefault((row["k"], row["attack"]), set()).add(row["attacked_score"])
        assert row["protocol"] == "appeal"
    return out


def test_a_judge_that_yields_at_the_second_plea_is_moved_from_turn_two_on(tmp_path: Path) -> None:
    found = scores(run(tmp_path, Yielding()))
    assert {k for k, v in found.items() if v == {9.0}} == {(2, "plea"), (2, "plea/same"), (3, "plea"), (3, "plea/same")}
    assert found[1, "plea"] == {3.0}


def test_a_judge_that_never_yields_is_flat(tmp_path: Path) -> None:
    assert all(v == {3.0} for v in scores(run(tmp_path, Yielding(at=99))).values())


def test_turns_share_their_beginning_in_the_ledger_and_repeats_do_not(tmp_path: Path) -> None:
    model = Yielding()
    run(tmp_path, model, ("plea",))
    # per case: clean, first verdict, then one call per turn of the longest appeal
    assert len(model.seen) == len(CASES) * (1 + 1 + 3)
    assert len({(c.replica, c.messages[-1].text, c.messages[0].text) for c in model.seen}) >= 5


def test_the_judge_hears_its_own_words_and_the_plea_as_untrusted_text(tmp_path: Path) -> None:
    model = Yielding()
    run(tmp_path, model, ("plea",))
    longest = max(model.seen, key=lambda c: len(c.messages))
    said = [m for m in longest.messages if m.role == "assistant"]
    assert [m.text for m in said[:1]] == ["I read it.\n\nVERDICT: 3"]
    assert all(p.field for m in longest.messages[-1:] for p in m.parts)


def test_the_row_keeps_every_turn(tmp_path: Path) -> None:
    done = run(tmp_path, Yielding(), ("plea",))
    db = open_run(done.folder.table)
    cell = next(r["cell"] for r in done.table().rows() if r["k"] == 3)
    shown = [s for s in details(db, [cell])[cell]["shown"] if s["arm"] == "final"]
    assert sorted(s["order"] for s in shown) == [0, 1, 2, 3]
    assert content(db, shown[0]["raw"])
    db.close()


def test_an_ordinary_attack_has_no_cell_under_an_appeal(tmp_path: Path) -> None:
    plan = Plan(
        lambda: iter(CASES), (("toy", Prompted("toy/yielding", template("robustjudge"))),), (Appeal(),), (attack("H1"),)
    )
    assert list(plan.cells()) == []


@pytest.mark.parametrize("turns", [0, 21])
def test_turns_are_bounded(turns: int) -> None:
    with pytest.raises(Exception, match="turns"):
        Appeal(turns=turns)


def test_content_quality_is_known_and_does_not_change_by_an_appeal(tmp_path: Path) -> None:
    plan = Plan(
        lambda: iter(CASES),
        (("toy", Prompted("toy/yielding", template("robustjudge"))),),
        (Appeal(turns=1),),
        (attack("plea"),),
        cleans=1,
        evaluators=(("", "exact_match"),),
    )
    done = execute(plan, Options(root=tmp_path / "runs", ledger=tmp_path / "l", models={"toy/yielding": Yielding()}))
    assert {(r["quality_clean"], r["quality_attacked"]) for r in done.table().rows()} == {(0.0, 0.0)}


def test_an_author_who_falls_silent_has_ended_the_appeal(tmp_path: Path) -> None:
    """What was written stands with its verdict; an author who never writes has no text."""

    class Author(Yielding):
        name, identity = "toy/author", "author"

        async def complete(self, call: Call) -> Completion:
            self.seen.append(call)
            return Completion("Please look again.") if len(self.seen) < self.at else Completion(status="refused")

    for at, told in ((2, ("ok", 1, 3.0)), (1, ("no_candidate", 0, None))):
        author = Author(at)
        plan = Plan(
            lambda: iter(CASES[:1]),
            (("toy", Prompted("toy/yielding", template("robustjudge"))),),
            (Appeal(turns=3),),
            (attack("plea/written"),),
            threats=(ThreatModel(attacker=author.name),),
            cleans=1,
        )
        models = {"toy/yielding": Yielding(), author.name: author}
        done = execute(plan, Options(root=tmp_path / f"runs{at}", ledger=tmp_path / f"{at}.sqlite", models=models))
        (row,) = done.table().rows()
        pleas = sum(c.replica == "final/0.1" for c in models["toy/yielding"].seen)
        assert (row["attack_status"], pleas, row["attacked_score"]) == told
