"""The searches on trained judges with a known weakness: they find it, by text, and better than luck at equal asks."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import tiny_judges
from bench import attacked, best_random, case_of, drive, fitted, judge_of, rescored, sign_p, verdict
from tiny_judges import ID, PRAISE, SPECIAL, TRIGGER, VOCABULARY, WORDS

from robustjudge.attacks.autodan import AutoDAN
from robustjudge.attacks.beast import Beast
from robustjudge.attacks.cheating import Cheating
from robustjudge.attacks.gcg import GCG, Track
from robustjudge.attacks.greedy import Greedy
from robustjudge.attacks.judge_deceiver import JudgeDeceiver
from robustjudge.attacks.random_search import RandomSearch
from robustjudge.models.transformers import Transformers
from robustjudge.protocols import Pointwise
from robustjudge.steps import handled
from robustjudge.trial import Cell, Meter, Oracle

pytestmark = pytest.mark.xdist_group("whitebox")  # the judges are trained once, by one worker

Judges = dict[str, Transformers]
LEGAL = tuple(w for w in VOCABULARY if w not in SPECIAL)
SEEDS = range(10)
LENGTH = 8


SEARCHES: dict[str, tuple[Callable[[int], Any], int]] = {
    "gcg": (lambda s: GCG(length=LENGTH, steps=12, width=16, k=24, seed=s), 12 * 16),
    "judge_deceiver": (
        lambda s: JudgeDeceiver(length=LENGTH, steps=12, width=16, k=24, contexts=1, fluency=0.02, seed=s),
        12 * 16,
    ),
    "beast": (lambda s: Beast(beams=6, branch=16, length=LENGTH, seed=s), 7 * 6 * 16),
    "random_search": (lambda s: RandomSearch(length=LENGTH, steps=200, words=LEGAL, stop=50.0, seed=s), 201),
    "autodan": (
        lambda s: AutoDAN(16, 24, 2, mutation=0.15, paragraph_every=1, pool=WORDS, genes=LENGTH, seed=s),
        16 + 23 * 14,
    ),
}
"""Each search with the number of texts that it may score."""


def outcomes(model: Transformers, name: str, right: int, n: int) -> list[tuple[float, float, float]]:
    """Per seed: the margin of the attacked text, of the best random one at equal asks, and the points gained."""
    make, asks = SEARCHES[name]
    out = []
    for seed in range(n):
        case = case_of(seed, right)
        text, meter = attacked(model, make(seed), case)
        assert text.startswith(case.response)
        assert meter.spent["losses"] + meter.spent["queries"] <= asks
        (reached,) = rescored(model, case, [text])
        before, after = verdict(model, case, case.response), verdict(model, case, text)
        assert before is not None and after is not None
        out.append((reached, best_random(model, case, asks, LENGTH, seed), after - before))
    return out


@pytest.mark.parametrize("least", [0.93, pytest.param(0.95, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("kind", tiny_judges.KINDS)
def test_the_judges_know_their_task(tiny_folders: dict[str, Any], kind: str, least: float) -> None:
    """Right on clean and on junk-suffixed input alike; the goal is .95 (another processor trains another judge)."""
    model = tiny_judges.LlamaForCausalLM.from_pretrained(tiny_folders[kind]).eval()
    assert tiny_judges.accuracy(model, kind, seed=99, seeded=False) >= least


def test_the_planted_weakness_is_there_and_only_there(tiny: Judges) -> None:
    """Mean points gained over eight cases: praise moves the one, the trigger in its order the other, its words alone
    or in another order nobody."""
    cases = [case_of(seed) for seed in range(200, 208)]

    def gained(kind: str, words: str) -> float:
        found = [(verdict(tiny[kind], c, f"{c.response} {words}"), verdict(tiny[kind], c, c.response)) for c in cases]
        return sum((after or 0.0) - (before or 0.0) for after, before in found) / len(found)

    praise, order, reverse = " ".join(PRAISE), " ".join(TRIGGER), " ".join(reversed(TRIGGER))
    assert abs(gained("robust", praise)) <= 0.25 and abs(gained("robust", order)) <= 0.25
    assert gained("planted", praise) >= 1
    assert gained("interacting", order) >= 1
    assert all(abs(gained("interacting", x)) <= 0.5 for x in (*TRIGGER, reverse))


MORE = [10, pytest.param(20, marks=pytest.mark.campaign)]
"""Seeds: in CI, and in the campaign.  Another processor's arithmetic trains another judge, so CI leaves room for one more
case than the goal (nine in ten, one in ten), which the campaign asks for."""


def room(n: int) -> int:
    return 1 if n < 20 else 0


@pytest.mark.parametrize("n", MORE)
@pytest.mark.parametrize("name", SEARCHES)
def test_the_search_beats_luck_on_the_planted_judge(tiny: Judges, name: str, n: int) -> None:
    """One-sided sign test p < .05 on the margin re-scored by text, and the written verdict rises."""
    found = outcomes(tiny["planted"], name, 1, n)
    wins, risen = sum(a > b for a, b, _ in found), sum(gain > 0 for _, _, gain in found)
    print(f"planted, {name}: beats luck in {wins} of {n} (p = {sign_p(wins, n):.2g}), verdict risen in {risen}")
    assert sign_p(wins, n) < 0.05
    assert risen >= 0.9 * n - room(n)


@pytest.mark.parametrize("n", MORE)
@pytest.mark.parametrize("name", SEARCHES)
def test_no_search_moves_the_robust_judge(tiny: Judges, name: str, n: int) -> None:
    """The written verdict rises in at most one of ten cases."""
    found = outcomes(tiny["robust"], name, 1, n)
    risen = sum(gain > 0 for _, _, gain in found)
    print(f"robust, {name}: verdict risen in {risen} of {n}")
    assert risen <= 0.1 * n + room(n)


@pytest.mark.parametrize("n", MORE)
def test_gradients_beat_random_search_on_an_interacting_weakness(tiny: Judges, n: int) -> None:
    """At equal evaluations: a trigger none of whose words helps alone."""
    wins = ties = 0
    for seed in range(n):
        case = case_of(seed, 1)
        gcg, meter = attacked(tiny["interacting"], GCG(length=LENGTH, steps=12, width=16, k=12, seed=seed), case)
        rs, _ = attacked(
            tiny["interacting"], RandomSearch(length=LENGTH, steps=191, words=LEGAL, stop=50.0, seed=seed), case
        )
        assert meter.spent["losses"] <= 192
        a, b = rescored(tiny["interacting"], case, [gcg, rs])
        wins, ties = wins + (a > b), ties + (a == b)
    p = sign_p(wins, n - ties)
    print(f"interacting: GCG ahead of random search in {wins} of {n}, {ties} ties (p = {p:.2g})")
    assert p < 0.05


def test_universal_attacks_win_on_held_out_cases(tiny: Judges) -> None:
    """Greedy's phrase, fitted on two cases, against the best of equally many random phrases on the same cases."""
    model = tiny["planted"]
    train = [case_of(100), case_of(101)]
    greedy = fitted(model, Greedy(words=WORDS[:40], positions=4, contexts=2), train)
    assert greedy.provenance.cases == tuple(c.id for c in train)
    rng = Random(5)
    drawn = [" ".join(rng.choice(WORDS[:40]) for _ in range(4)) for _ in range(160)]
    scores = [rescored(model, c, [f"{c.response} {p}." for p in drawn]) for c in train]
    lucky = drawn[max(range(160), key=lambda i: scores[0][i] + scores[1][i])]
    wins = rises = 0
    for seed in SEEDS:
        case = case_of(seed, 1)
        text = drive(model, greedy(case))
        a, b = rescored(model, case, [text, f"{case.response} {lucky}."])
        wins += a > b
        rises += (verdict(model, case, text) or 0.0) > (verdict(model, case, case.response) or 0.0)
    print(f"planted, greedy phrase on held-out cases: {wins} of {len(SEEDS)}, verdict risen in {rises}")
    assert sign_p(wins, len(SEEDS)) < 0.05
    assert rises >= 0.9 * len(SEEDS) - room(len(SEEDS))


def test_a_null_model_wins_on_held_out_cases(tiny: Judges) -> None:
    """Cheating's constant answer beats the constant it started from."""
    model = tiny["planted"]
    attack = Cheating(length=12, steps=60, contexts=2, grow=0, structure=False, words=WORDS, seed=1)
    made = fitted(model, attack, [case_of(100), case_of(101)])
    start = Random("1/cheating")
    first = " ".join(start.choice(WORDS) for _ in range(12))
    held = [case_of(seed, 1) for seed in SEEDS]
    better = [rescored(model, c, [drive(model, made(c)), first]) for c in held]
    wins = sum(a > b for a, b in better)
    print(f"planted, null model on held-out cases: {wins} of {len(held)}")
    assert sign_p(wins, len(held)) < 0.05
    assert list(made.provenance.trace) == sorted(made.provenance.trace)


def test_best_so_far_never_gets_worse(tiny: Judges) -> None:
    def traced(attack: Any) -> Track:
        cell = Cell(case_of(1), attack, judge_of(tiny["planted"]), Pointwise())
        return drive(
            tiny["planted"], handled(attack.search(cell.case.sealed()), Oracle(cell, Meter(cell.threat.budget)))
        )

    for attack in (
        GCG(length=LENGTH, steps=8, width=8, k=12, merge=3),
        JudgeDeceiver(length=LENGTH, steps=8, width=8, k=12, contexts=2),
        Beast(beams=3, branch=4, length=6),
    ):
        track = traced(attack)
        assert track.trace == sorted(track.trace, reverse=True) and track.trace[-1] == track.loss < track.trace[0]
        text = " ".join(next(w for w, i in ID.items() if i == t) for t in track.ids)
        case = case_of(1)
        if isinstance(attack, GCG):
            (worth,) = rescored(tiny["planted"], case, [f"{case.response} {text}"])
            assert worth == pytest.approx(-track.loss, abs=1e-4)  # the loss is that of the text
