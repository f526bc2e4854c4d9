"""Fitted and searched attacks are plain specs that replay elsewhere; third-party attacks come in by entry point."""

import json
import subprocess
import sys
from math import inf

import pytest

from robustjudge import spec
from robustjudge.asks import Odds
from robustjudge.attacks import library
from robustjudge.attacks.base import NoCandidate, Target
from robustjudge.attacks.best_of_n import BestOfN
from robustjudge.attacks.cheating import Cheating
from robustjudge.attacks.greedy import Greedy
from robustjudge.attacks.plain import LongSuffix
from robustjudge.attacks.random_search import RandomSearch
from robustjudge.attacks.replay import Replay
from robustjudge.attacks.search import FLOOR, Provenance
from robustjudge.attacks.text import TextAttack
from robustjudge.attacks.tree import Tap
from robustjudge.attacks.words import VOCABULARY
from robustjudge.errors import ConfigError
from robustjudge.execution import Options, execute
from robustjudge.forecast import forecast
from robustjudge.judges import Prompted
from robustjudge.models.scripted.whitebox import Additive
from robustjudge.nouns import Access, Case, Feedback
from robustjudge.plan import Plan
from robustjudge.prompts.library import template
from robustjudge.protocols import Pointwise
from robustjudge.steps import run

CASES = tuple(Case(f"t{i}", f"task {i}", f"answer {i}") for i in range(3))


def longer(ask):
    assert isinstance(ask, Odds)
    return tuple(
        Feedback(len(c) / 100 - 9, "unparsed" if ask.objective.case.id == "t1" else "ok") for c in ask.candidates
    )


@pytest.mark.parametrize("attack", [Cheating.quick(), Greedy.quick(), RandomSearch.quick()], ids=lambda a: a.name)
def test_a_fitted_attack_is_plain_json_with_its_provenance(attack) -> None:
    fitted = run(attack.fit(CASES[:2]), longer)
    written = json.loads(spec.canonical(spec.dump(fitted)))
    assert spec.load(written) == fitted and spec.key(fitted) != spec.key(attack)
    assert written["provenance"]["cases"] == ["t0", "t1"] and written["provenance"]["queries"] > 0


@pytest.mark.parametrize("attack", [Cheating.quick(), Greedy.quick()], ids=lambda a: a.name)
def test_a_fitted_universal_attack_needs_neither_access_nor_cases_nor_budget(attack) -> None:
    assert attack.universal and attack.access == Access.ODDS and attack.ceiling().queries > 0
    fitted = run(attack.fit(CASES[:2]), longer)
    assert not fitted.universal and fitted.access == Access.NONE and fitted.ceiling().queries == 0


def test_an_artefact_is_loaded_by_a_process_that_knows_no_attack_yet(tmp_path) -> None:
    file = tmp_path / "O7.json"
    file.write_text(json.dumps({"attack": spec.dump(run(Greedy.quick().fit(CASES[:2]), longer))}))
    code = (
        f"from robustjudge.config.build import attacks_of; print(attacks_of(['artefact:{file}'], [], True)[0].phrase)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip()


def test_unknown_worth_is_floored_in_the_record() -> None:
    assert Provenance(trace=(-inf, 1.0)).trace == (FLOOR, 1.0)


def test_replay_deploys_kept_texts_without_access() -> None:
    again = spec.load(spec.dump(Replay("O5", (("t0", "answer 0 zinc"),), provenance=Provenance(surrogate="hf/x"))))
    assert again.access == Access.NONE and run(again(CASES[0]), None) == "answer 0 zinc"
    with pytest.raises(NoCandidate):
        run(again(CASES[1]), None)
    with pytest.raises(ConfigError):
        Replay("O5", (), via="left")  # type: ignore[arg-type]


def test_wrapped_attacks_carry_access_and_ceiling() -> None:
    inner = Tap.quick(rules=True)
    wrapped = BestOfN.quick(inner=inner)
    assert wrapped.access == Access.SCORE and wrapped.ceiling().queries == 16 + 4
    assert LongSuffix(64, core=inner).ceiling() == inner.ceiling() and LongSuffix(64).access == Access.NONE
    target = Target("pairwise")
    assert wrapped.bound(target).inner.target == target  # type: ignore[attr-defined]


class Point:
    def __init__(self, name: str, maker) -> None:
        self.name, self.value, self.maker = name, "other_package:maker", maker

    def load(self):
        return self.maker


def test_third_party_attacks_come_in_by_entry_point_and_collisions_name_both(monkeypatch) -> None:
    def maker(target, seed, quick):
        return TextAttack("H1", seed=seed, target=target)

    for name, fits in (("mine", True), ("H1", False)):
        monkeypatch.setattr(library.metadata, "entry_points", lambda group, name=name: [Point(name, maker)])
        library._makers.cache_clear()
        if fits:
            assert library.attack("mine", seed=2) == TextAttack("H1", seed=2) and "mine" in library.attack_names()
        else:
            with pytest.raises(ConfigError, match=r"H1.*other_package"):
                library.attack("H1")
    monkeypatch.undo()
    library._makers.cache_clear()


def test_importing_the_library_stays_light() -> None:
    code = (
        "import sys, robustjudge.attacks.library as l; l.attack('O5');"
        "print([m for m in ('numpy', 'torch', 'asyncio', 'pydantic', 'aiohttp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_self_transfer_in_a_plan_starts_where_training_ended_and_is_counted_before(tmp_path) -> None:
    """Random search learns its start on training cases; deployed it still searches, and its texts are kept."""
    model = Additive(weights=tuple((word, 0.2) for word in VOCABULARY[::6]))
    plan = Plan(
        lambda: iter((*CASES, Case("t3", "task 3", "answer 3"))),
        (("toy", Prompted(model.name, template("robustjudge"))),),
        (Pointwise(),),
        tuple(library.attack(n, quick=True) for n in ("E3", "E3/transfer")),
        train=frozenset({"t0", "t1"}),
        cleans=1,
    )
    most = forecast(plan).calls[0].at_most
    run_ = execute(plan, Options(root=tmp_path / "runs", ledger=tmp_path / "l.sqlite", models={model.name: model}))
    rows = list(run_.table().rows())
    warm = [r for r in rows if r["attack"] == "E3/transfer"]
    cold = {r["case_id"]: r["queries"] for r in rows if r["attack"] == "E3"}
    assert {r["case_id"] for r in warm} == {"t2", "t3"} and all(r["access"] == "ODDS" for r in warm)
    assert all(0 < r["queries"] < cold[r["case_id"]] for r in warm)
    kept = {f.name: json.loads(f.read_text()) for f in (run_.path / "artefacts").iterdir()}
    assert kept["toy.none.pointwise.E3.transfer.json"]["train"] == ["t0", "t1"]
    assert len(kept["toy.none.pointwise.E3-transfer.json"]["attack"]["texts"]) == 2
    fit = kept["toy.none.pointwise.E3.transfer.json"]["spent"]["queries"]
    assert most is not None and most >= fit + sum(r["queries"] + r["judge_calls"] for r in rows)


def test_every_variant_that_is_listed_can_be_had_and_no_other_one() -> None:
    stands = {"ATTACK": "H6", "SEARCH": "O5", "TIMES": "4", "NUMBER": "1", "LENGTH": "64", "FILLER": "1", "0 to 9": "3"}
    stands["FACTOR+FACTOR"] = "request+ignore"
    seen = 0
    for name in library.attack_names():
        for form in library.variants(name):
            made = "/".join(stands.get(part, part) for part in form.split("/"))
            assert library.attack(f"{name}/{made}", quick=True).name
            seen += 1
        if not library.variants(name):
            with pytest.raises(ConfigError):
                library.attack(f"{name}/nothing_of_the_kind")
    assert seen > 50 and library.variants("gcg") == () and library.variants("O4") == ()
