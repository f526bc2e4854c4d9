"""GCG, JudgeDeceiver, BEAST and AutoDAN on token judges with known optima, and their budgets."""

from collections import Counter
from dataclasses import replace
from math import exp, inf
from random import Random

import pytest

from robustjudge.asks import Losses, Odds, Sample, Spell, Surprise, Swaps
from robustjudge.attacks.autodan import SYNONYMS, AutoDAN
from robustjudge.attacks.base import Exhausted, NoCandidate, Plugin, Target, stem
from robustjudge.attacks.beast import Beast
from robustjudge.attacks.gcg import GCG, merged, neighbours, ranked_swaps, sizes
from robustjudge.attacks.judge_deceiver import JudgeDeceiver, ranked
from robustjudge.attacks.search import Best
from robustjudge.nouns import Budget, Case, Feedback, Surprisal
from robustjudge.steps import run

CASE = Case("c1", "Add 2 and 2.", "The sum is five.")
VOCABULARY = 64


class Tokens:
    """A judge over token ids: loss of an (objective, suffix), with the exact gradient; counts, and cuts a budget."""

    def __init__(self, loss, vocabulary=VOCABULARY, illegal=lambda ids: False, surprisal=lambda text: 0.0, budget=None):
        self.loss, self.vocabulary, self.illegal, self.surprisal = loss, vocabulary, illegal, surprisal
        self.budget = budget
        self.n = Counter()
        self.asked: list[tuple[int, ...]] = []

    def __call__(self, ask):
        match ask:
            case Losses(objective, suffixes):
                if self.budget is not None:
                    left = self.budget - self.n["loss"]
                    if left <= 0:
                        raise Exhausted
                    suffixes = suffixes[:left]
                self.n["loss"] += len(suffixes)
                self.asked += suffixes
                return tuple(inf if self.illegal(s) else self.loss(objective, s) for s in suffixes)
            case Swaps(objective, suffix, k):
                self.n["gradient"] += 1
                rows = []
                for at in range(len(suffix)):
                    swapped = [(*suffix[:at], t, *suffix[at + 1 :]) for t in range(self.vocabulary)]
                    losses = [self.loss(objective, ids) for ids in swapped]
                    rows.append(tuple(sorted(range(self.vocabulary), key=losses.__getitem__)[:k]))
                return tuple(rows)
            case Spell(_, many):
                return tuple("" if self.illegal(s) else " ".join(map(str, s)) for s in many)
            case Sample(_, prefixes, n):
                self.n["sample"] += len(prefixes)
                return tuple(tuple(range(min(n, self.vocabulary))) for _ in prefixes)
            case Surprise(_, texts):
                return tuple(Surprisal((-self.surprisal(t),)) for t in texts)
        raise AssertionError(ask)


def thrown(steps, world):
    """Run with ``Exhausted`` thrown into the attack, as the trial's handler does."""
    reply, error = None, None
    try:
        while True:
            ask = steps.throw(error) if error else steps.send(reply)
            error = None
            try:
                reply = world(ask)
            except Exhausted as fault:
                error = fault
    except StopIteration as done:
        return done.value


def hamming(secret: tuple[int, ...]):
    return lambda objective, ids: float(sum(a != b for a, b in zip(ids, secret, strict=True)))


class Fast(Tokens):
    """Constant losses and random legal tables: counts a reference run quickly."""

    def __call__(self, ask):
        if isinstance(ask, Swaps):
            self.n["gradient"] += 1
            row = tuple(range(ask.k))
            return (row,) * len(ask.suffix)
        if isinstance(ask, Losses):
            self.n["loss"] += len(ask.suffixes)
            return (1.0,) * len(ask.suffixes)
        return super().__call__(ask)


# ------------------------------------------------------------------ budgets


def test_gcg_closed_form_at_reference_and_counted_scaled_down() -> None:
    assert GCG.reference().ceiling() == Budget(0, 0, 256_000, 500)
    assert GCG.quick().ceiling() == Budget(0, 0, 160, 10)
    world = Fast(None)
    run(GCG.reference(steps=50)(CASE), world)
    assert (world.n["loss"], world.n["gradient"]) == (25_600, 50)
    world = Fast(None)
    run(GCG.reference(steps=20, merge=7)(CASE), world)
    assert 20 * (512 - 3) <= world.n["loss"] <= 20 * 512  # a merged swap that was tried before is not asked again


def test_judge_deceiver_closed_form_at_reference_and_counted_scaled_down() -> None:
    assert JudgeDeceiver.reference().ceiling() == Budget(0, 0, 460_800, 3_600)
    assert JudgeDeceiver.quick().ceiling() == Budget(0, 0, 320, 20)
    world = Fast(None)
    run(JudgeDeceiver.reference(steps=30)(CASE), world)
    assert (world.n["loss"], world.n["gradient"]) == (30 * 128 * 6, 180)
    world = Fast(None)
    run(JudgeDeceiver.reference(steps=30, progressive=True)(CASE), world)
    assert world.n["loss"] == 30 * 128  # never won against the first rival, so the second never came


def test_beast_asks_9361_passes_at_reference() -> None:
    world = Tokens(lambda o, ids: float(sum(ids)))
    run(Beast.reference()(CASE), world)
    assert world.n["loss"] + world.n["sample"] == 9_361
    assert Beast.reference().ceiling().losses == 39 * 225 == world.n["loss"]
    world = Tokens(lambda o, ids: float(sum(ids)))
    run(Beast.quick()(CASE), world)
    assert world.n["loss"] + world.n["sample"] == 61


class Texts:
    """A judge over text for ``Odds``; counts, and cuts a budget."""

    def __init__(self, worth, budget=None):
        self.worth, self.budget, self.asked = worth, budget, []

    def __call__(self, ask):
        assert isinstance(ask, Odds)
        fit = ask.candidates
        if self.budget is not None:
            left = self.budget - len(self.asked)
            if left <= 0:
                raise Exhausted
            fit = fit[:left]
        self.asked += fit
        return tuple(Feedback(self.worth(c)) for c in fit)


def test_autodan_asks_25600_published_and_24412_with_elites_cached() -> None:
    for attack, count in ((AutoDAN.reference(), 24_412), (AutoDAN.reference(rescore=True), 25_600)):
        assert attack.ceiling().queries == count
    for attack in (AutoDAN.quick(), AutoDAN(40, 12, 3), AutoDAN(40, 12, 3, rescore=True)):
        world = Texts(lambda t: float(len(t)))
        run(attack(CASE), world)
        assert len(world.asked) == attack.ceiling().queries
    assert AutoDAN.quick().ceiling().queries == 29


# ------------------------------------------------------------------ GCG


@pytest.mark.parametrize("seed", range(5))
def test_gcg_fixes_one_position_per_step_with_an_exact_gradient(seed: int) -> None:
    rng = Random(seed)
    secret = tuple(rng.randrange(VOCABULARY) for _ in range(8))
    start = tuple(s if rng.random() < 0.4 else (s + 1) % VOCABULARY for s in secret)
    wrong = sum(a != b for a, b in zip(start, secret))
    attack = GCG(8, wrong, 32, 8, init=start, seed=seed)
    track = run(attack.search(CASE), Tokens(hamming(secret)))
    assert track.trace == [float(wrong - i - 1) for i in range(wrong)] and track.ids == secret
    assert run(attack(CASE), Tokens(hamming(secret))) == stem(CASE) + " ".join(map(str, secret))


def test_gcg_with_merging_fixes_several_positions_per_step() -> None:
    secret, start = (1, 2, 3, 4, 5, 6), (0,) * 6
    track = run(GCG(6, 1, 32, 8, merge=6, init=start).search(CASE), Tokens(hamming(secret)))
    assert track.trace == [0.0]
    assert [sizes(n) for n in (0, 2, 6, 7, 8)] == [(), (2,), (2, 4, 6), (2, 4, 7), (2, 4, 8)]
    swaps = ranked_swaps((0, 0, 0), ((0, 2, 0), (1, 0, 0), (9, 0, 0), (0, 0, 8)), (2.0, 1.0, 3.0, inf))
    assert list(swaps.items()) == [(0, 1), (1, 2)] and merged((0, 0, 0), swaps) == (1, 2, 0)


def test_neighbours_are_new_single_swaps_a_share_of_them_best_ranked() -> None:
    suffix, table = (5, 5, 5), ((5, 1, 2, 3), (4, 5, 6, 7), (8, 9, 5, 1))
    seen = {suffix}
    batch = neighbours(suffix, table, 6, seen, Random(0), 0.3)
    assert len(set(batch)) == 6 and all(sum(a != b for a, b in zip(b_, suffix)) == 1 for b_ in batch)
    assert set(batch[:2]) == {(5, 4, 5), (5, 5, 8)}
    assert len(neighbours(suffix, table, 99, seen, Random(0))) == 3  # nine swaps exist, six are seen
    assert neighbours(suffix, table, 5, seen, Random(0)) == ()


def test_swaps_are_spread_evenly_over_the_positions() -> None:
    table = (tuple(range(1, 60)),) * 20
    for greedy in (0.0, 0.25, 1.0):
        batch = neighbours((0,) * 20, table, 40, set(), Random(1), greedy)
        found = Counter(next(at for at, token in enumerate(ids) if token) for ids in batch)
        assert len(batch) == 40 and len(found) == 20 and max(found.values()) <= 3


def test_illegal_suffixes_are_never_returned() -> None:
    secret = (3,) * 4

    def odd(ids):
        return ids.count(3) == 4

    text = run(GCG(4, 30, 16, 8)(CASE), Tokens(hamming(secret), illegal=odd))
    assert text.split()[-4:].count("3") == 3
    with pytest.raises(NoCandidate):
        run(GCG.quick()(CASE), Tokens(hamming((1,) * 8), illegal=lambda ids: True))


def test_the_first_suffix_is_a_legal_repetition_of_a_likely_token() -> None:
    world = Tokens(hamming((9,) * 8), illegal=lambda ids: set(ids) in ({0}, {1}))
    run(GCG.quick()(CASE), world)
    assert all(sum(t != 2 for t in ids) == 1 for ids in world.asked[:16])


SEARCHES = [
    GCG(6, 6, 12, 8),
    GCG(6, 6, 12, 8, merge=3),
    JudgeDeceiver.quick(fluency=0.0, contexts=1),
    Beast.quick(),
]


@pytest.mark.parametrize("attack", SEARCHES, ids=lambda a: a.name)
def test_more_budget_never_gives_a_worse_suffix(attack: Plugin) -> None:
    def bumpy(objective, ids):
        return Random(str(ids)).random()

    free = Tokens(bumpy)
    run(attack(CASE), free)
    last = inf
    for budget in range(1, free.n["loss"] + 1, 7):
        world = Tokens(bumpy, budget=budget)
        text = thrown(attack(CASE), world)
        loss = bumpy(None, tuple(map(int, text[len(stem(CASE)) :].split())))
        assert loss <= last and loss == min(bumpy(None, ids) for ids in world.asked)
        last = loss
    with pytest.raises(NoCandidate, match="budget"):
        thrown(attack(CASE), Tokens(bumpy, budget=0))


@pytest.mark.parametrize("attack", [*SEARCHES, AutoDAN.quick()], ids=lambda a: a.name)
def test_one_seed_gives_one_string(attack: Plugin) -> None:
    make = (
        (lambda: Texts(lambda t: Random(t).random()))
        if isinstance(attack, AutoDAN)
        else (lambda: Tokens(lambda o, ids: Random(str(ids)).random()))
    )
    a, b, c = make(), make(), make()
    assert run(attack(CASE), a) == run(attack(CASE), b) and a.asked == b.asked
    if not isinstance(attack, Beast):  # its randomness is the model's sampler, which gets the seed
        run(replace(attack, seed=7)(CASE), c)  # type: ignore[type-var]
        assert c.asked != a.asked


# ------------------------------------------------------------------ JudgeDeceiver


def conflicting(objective, ids: tuple[int, ...]) -> float:
    """Rival x is beaten by many 1s, rival y by 2s and less strongly; token 3 is fair against both."""
    gain = {"x": {1: 6.0, 2: 0.0, 3: 2.0}, "y": {1: 0.0, 2: 3.0, 3: 2.0}}[objective.shadows[0]]
    return 10.0 - sum(gain.get(t, 0.0) for t in ids)


def test_mean_and_soft_maximum_pick_the_known_different_optima() -> None:
    base = JudgeDeceiver(1, 8, 16, 8, 2, 0.0, init=(0,), shadows=("x", "y"), target=Target("pairwise"))
    assert run(base.search(CASE), Tokens(conflicting, vocabulary=6)).ids == (1,)
    assert run(replace(base, worst=0.05).search(CASE), Tokens(conflicting, vocabulary=6)).ids == (3,)
    assert base.combined([1.0, 3.0]) == 2.0 and base.combined([1.0, inf]) == inf
    assert 2.9 < replace(base, worst=0.1).combined([1.0, 3.0]) < 3.0


def test_a_large_fluency_weight_returns_the_lowest_perplexity_string() -> None:
    attack = JudgeDeceiver(3, 12, 24, 8, 1, 1000.0, init=(0, 0, 0), shadows=("x",))
    world = Tokens(hamming((1, 1, 1)), vocabulary=8, surprisal=lambda t: float(sum(int(w) != 5 for w in t.split())))
    assert run(attack.search(CASE), world).ids == (5, 5, 5)
    assert run(replace(attack, fluency=0.0).search(CASE), world).ids == (1, 1, 1)


def test_progressive_contexts_grow_after_success_and_own_shadows_differ_from_the_response() -> None:
    easy = Tokens(lambda o, ids: -1.0)
    run(JudgeDeceiver(4, 4, 8, 8, 3, 0.0, progressive=True)(CASE), easy)
    assert easy.n["loss"] == 8 * (1 + 2 + 3 + 3)
    rivals = [o.shadows for o in JudgeDeceiver.reference().objectives(CASE)]
    assert len(rivals) == 6 and all(r != (CASE.response,) for r in rivals)
    assert ranked(((1, 2, 3), (2, 3, 4)), 3) == (2, 1, 3)


# ------------------------------------------------------------------ BEAST


def test_beast_is_exhaustive_when_the_vocabulary_fits_the_branch() -> None:
    weights = [0.3, -1.0, 2.0, 0.5, -0.2]

    def additive(objective, ids):
        return -sum(weights[t] * (i + 1) for i, t in enumerate(ids))

    track = run(Beast(5, 5, 6).search(CASE), Tokens(additive, vocabulary=5))
    assert track.ids == (2,) * 6 and track.trace == sorted(track.trace, reverse=True)


def test_beast_keeps_the_best_apart_from_the_beams() -> None:
    """The shortest suffix is best: later steps only lose, and the early one is returned."""
    track = run(Beast(3, 3, 6).search(CASE), Tokens(lambda o, ids: float(len(ids)), vocabulary=3))
    assert len(track.ids) == 2


# ------------------------------------------------------------------ AutoDAN


def test_autodan_reaches_the_known_optimum_and_never_gets_worse() -> None:
    words = tuple(f"g{i}" for i in range(12))
    lead = stem(CASE)

    def additive(text: str) -> float:
        return 0.5 * sum(int(w[1:]) for w in text[len(lead) :].split())

    attack = AutoDAN(64, 40, 4, 1.0, 3, 0.0, paragraph_every=1, pool=words, genes=4)
    trace: list[float] = []
    best, world = Best(), Texts(additive)
    run(attack.evolve(CASE, best, trace), world)
    first = [t[len(lead) :].split() for t in world.asked[:64]]
    optimum = 0.5 * sum(max(int(genes[i][1:]) for genes in first) for i in range(4))
    assert trace == sorted(trace) and best.worth == optimum == additive(run(attack(CASE), Texts(additive)))


def test_autodan_uses_the_language_of_the_case_and_keeps_the_response() -> None:
    zh = Case("1", "t", "答案是五。", language="zh")
    world = Texts(lambda t: exp(-len(t)))
    text = run(AutoDAN.quick()(zh), world)
    assert text.startswith(zh.response) and any("\u4e00" <= c <= "\u9fff" for c in text[len(zh.response) :])
    assert all(word not in others for word, others in SYNONYMS.items())


def test_autodan_word_level_swaps_words_and_budget_cuts_are_kept() -> None:
    world = Texts(lambda t: float(t.count("superb")))
    attack = AutoDAN(20, 30, 2, paragraph_every=100, pool=("This is a good answer.", "Nothing to add."), genes=2)
    assert "superb" in run(attack(CASE), world).lower()
    last = -1.0
    for budget in (1, 7, 20, 33, 60):
        cut = Texts(lambda t: Random(t).random(), budget)
        worth = Random(thrown(attack(CASE), cut)).random()
        assert worth >= last and len(cut.asked) == budget
        last = worth


@pytest.mark.parametrize("attack", [GCG.quick(), JudgeDeceiver.quick()], ids=lambda a: a.name)
def test_a_suffix_that_no_prompt_shows_is_told_as_such_before_any_loss(attack: Plugin) -> None:
    class Nowhere(Tokens):
        def __call__(self, ask):
            found = super().__call__(ask)
            return tuple(() for _ in found) if isinstance(ask, Swaps) else found

    world = Nowhere(hamming((1,) * 8))
    with pytest.raises(NoCandidate, match="over the context limit, or rewritten by a defense"):
        run(attack(CASE), world)
    assert world.n["gradient"] == getattr(attack, "contexts", 1) and world.n["loss"] == 0
