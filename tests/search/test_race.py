"""Racing: e-values against their oracle, interactions found, noise refused, constraints and budget kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.errors import PlanError
from robustjudge.measures.sequential import mcnemar_evalue
from robustjudge.search import Answer, Problem, Race, Result, log_e
from robustjudge.search.book import Book, Spent, level
from robustjudge.steps import run

Config = tuple[int, ...]
Rate = Callable[[Config, str], float]


def problem(
    sizes: tuple[int, ...],
    loss: Callable[[Config, str], float],
    seed: int,
    *,
    items: tuple[int, int, int] = (60, 60, 30),
    families: tuple[str, ...] = ("a", "b"),
    right: Callable[[Config], float] = lambda c: 1.0,
    read: Callable[[Config], float] = lambda c: 1.0,
    calls: list[int] | None = None,
    **more: object,
) -> Problem:
    """Bernoulli outcomes with the given rates, drawn once per (prompt, item, family)."""

    async def evaluate(config: Config, pairs: Sequence[tuple[str, str]]) -> tuple[Result, ...]:
        out = []
        for item, family in pairs:
            rng = Random(f"{seed} {config} {item} {family}")
            clean = Random(f"{seed} {config} {item}")
            won = sum(rng.random() < loss(config, family) for _ in range(2)) / 2
            ok = sum(rng.random() < read(config) for _ in range(4))
            out.append(Result(item, family, float(clean.random() < right(config)), won, won, ok, 4))
        if calls is not None:
            calls.append(2 * (len(pairs) + len({i for i, _ in pairs})))
        return tuple(out)

    names = [f"i{k}" for k in range(sum(items))]
    a, b, _ = items
    candidates = tuple(sorted(product(*(range(n) for n in sizes))))
    return Problem(
        candidates,
        evaluate,
        tuple(names[:a]),
        tuple(names[a : a + b]),
        tuple(names[a + b :]),
        families,
        **more,  # type: ignore[arg-type]
    )


def solve(p: Problem, **settings: object) -> Answer:
    return run(Race(**{"budget": 100_000, "rounds": 0, **settings})(p), lambda ask: None)  # type: ignore[arg-type]


# --------------------------------------------------------------------------- evidence


@given(st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=60, deadline=None)
def test_on_binary_pairs_it_is_the_one_sided_sequential_mcnemar_test(b: int, c: int) -> None:
    """The two-sided oracle is the mean of both one-sided ones, up to the grid of bets."""
    here = log_e([1.0] * b + [-1.0] * c)
    there = log_e([-1.0] * b + [1.0] * c)
    both = math.log((math.exp(here) + math.exp(there)) / 2)
    assert both == pytest.approx(mcnemar_evalue(b, c).log_e, abs=0.15 + 0.02 * (b + c))


def test_evidence_stays_small_under_the_null_however_often_one_looks() -> None:
    crossed = 0
    for seed in range(200):
        rng = Random(seed)
        seen: list[float] = []
        for _ in range(60):
            seen.append(rng.choice((-1.0, -0.5, 0.0, 0.5, 1.0)))
            if log_e(seen) >= math.log(20):
                crossed += 1
                break
    assert crossed <= 10  # at most 5 %


def test_evidence_grows_under_the_alternative_and_knows_its_margin() -> None:
    assert log_e([0.5] * 30) > math.log(20)
    assert log_e([0.5] * 30, at_most=0.5) == pytest.approx(0.0)
    assert log_e([0.0] * 200, at_most=-0.02) > math.log(3)
    assert log_e([]) == 0.0


def test_the_objective_is_the_worst_family_or_the_worse_half() -> None:
    assert level([0.1, 0.9, 0.5], "worst") == 0.9
    assert level([0.1, 0.9, 0.5], "cvar") == pytest.approx(0.7)


# --------------------------------------------------------------------------- searching

XOR = {(0, 0): 0.5, (0, 1): 0.8, (1, 0): 0.8, (1, 1): 0.05}


@pytest.mark.parametrize("seed", range(3))
def test_an_interaction_is_found_that_algorithm_1_cannot_see(seed: int) -> None:
    answer = solve(problem((2, 2, 2), lambda c, f: XOR[c[:2]], seed))
    assert answer.status == "improved" and answer.config[:2] == (1, 1)
    assert answer.calls < answer.exhaustive


@pytest.mark.parametrize("seed", range(3))
def test_one_harmful_component_is_removed(seed: int) -> None:
    """The option 0 of one component, drawn by seed, invites attacks; the others do nothing."""
    bad = Random(seed).randrange(4)
    answer = solve(problem((2, 2, 2, 2), lambda c, f: 0.7 if c[bad] == 0 else 0.1, seed))
    assert answer.status == "improved" and answer.config[bad] == 1


def test_pure_noise_gives_no_improvement() -> None:
    """Every prompt has the same rates: at most 5 % of runs may say improved (here 80 runs over 16 prompts)."""
    said = sum(
        solve(problem((2, 2, 2, 2), lambda c, f: 0.4, seed, items=(16, 16, 8))).status == "improved"
        for seed in range(80)
    )
    assert said <= 4


def test_an_equal_start_is_returned_unchanged() -> None:
    answer = solve(problem((2, 2), lambda c, f: 0.0, 1))
    assert answer.status == "no_improvement" and answer.config == answer.start == (0, 0)
    assert answer.checks[-1].why == "the start won the race"


def test_a_gain_in_robustness_does_not_buy_a_blind_or_unreadable_judge() -> None:
    def loss(c: Config, f: str) -> float:
        return 0.6 if c == (0, 0, 0) else 0.0 if c[0] or c[1] else 0.3

    blind = problem((2, 2, 2), loss, 3, right=lambda c: 0.2 if c[0] else 1.0, read=lambda c: 0.5 if c[1] else 1.0)
    answer = solve(blind)
    assert answer.config == (0, 0, 1)


def test_the_worst_family_decides_not_the_mean() -> None:
    """Option 1 mends family a altogether and opens b; option 2 mends both a little."""
    rates = {(0,): (0.8, 0.3), (1,): (0.0, 0.9), (2,): (0.35, 0.35)}
    p = problem((3,), lambda c, f: rates[c][f == "b"], 5, items=(80, 80, 20))
    assert solve(p).config == (2,)


# --------------------------------------------------------------------------- budget, splits, co-training


@pytest.mark.parametrize("budget", (2200, 3000, 6000))
def test_the_budget_is_never_exceeded(budget: int) -> None:
    calls: list[int] = []
    answer = solve(problem((3, 3, 3), lambda c, f: 0.3, 2, items=(40, 30, 20), calls=calls), budget=budget, rounds=2)
    assert sum(calls) == answer.calls <= budget


def test_a_budget_too_small_for_a_race_is_refused_before_any_call() -> None:
    calls: list[int] = []
    with pytest.raises(PlanError, match=r"give at least|items cannot"):
        solve(problem((3, 3), lambda c, f: 0.3, 2, calls=calls), budget=100)
    assert not calls


def test_co_training_adds_the_worst_spare_attack_and_trains_on_it() -> None:
    def loss(c: Config, f: str) -> float:
        if f == "spare-strong":
            return 0.1 if c[1] else 0.9
        return {"spare-weak": 0.0}.get(f, 0.1 if c[0] else 0.7)

    p = problem((2, 2), loss, 4, families=("a",), spare=("spare-weak", "spare-strong"), held_out=("h",))
    answer = solve(p, rounds=1)
    assert answer.found == ("spare-strong",) and answer.config == (1, 1)
    assert {r.family for r in answer.test[answer.config]} == {"a", "spare-strong", "h"}
    assert not {r.family for r in answer.train[answer.config]} & {"h"}
    assert solve(p, rounds=0).found == ()


def test_what_selects_may_not_test() -> None:
    base = problem((2,), lambda c, f: 0.1, 0)
    with pytest.raises(PlanError, match="two splits"):
        Problem(base.candidates, base.evaluate, ("i",), ("i",), ("j",), ("a",))
    with pytest.raises(PlanError, match="held-out"):
        Problem(base.candidates, base.evaluate, ("i",), ("k",), ("j",), ("a",), ("a",))


def test_a_book_asks_once_and_charges_before_it_asks() -> None:
    asked: list[tuple[str, str]] = []

    async def evaluate(config: Config, pairs: Sequence[tuple[str, str]]) -> tuple[Result, ...]:
        asked.extend(pairs)
        return tuple(Result(i, f, 1.0, 0.0, 0.0, 4, 4) for i, f in pairs)

    book = Book(evaluate, 2, budget=14, cases={"y": 2})
    run(book.fill([(0,)], ["x"], ["a"]), lambda ask: None)
    assert book.spent == 4  # clean and attacked, both orders
    run(book.fill([(0,)], ["x", "y"], ["a"]), lambda ask: None)
    assert book.spent == 12 and asked == [("x", "a"), ("y", "a")]
    with pytest.raises(Spent):
        run(book.fill([(0,)], ["x", "y"], ["a", "b"]), lambda ask: None)
    assert len(asked) == 2
