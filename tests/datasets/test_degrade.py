"""Degraders: total on any text, the same under a seed, never the reference and never blank; verification has teeth."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.datasets import KINDS, Pool, SetAside, answers, weaken
from robustjudge.datasets.defects import text as prose
from robustjudge.datasets.defects.base import other_number, sentences, units
from robustjudge.datasets.degrade import defect, defects, degrade, material
from robustjudge.datasets.likeness import likeness
from robustjudge.datasets.verify import leak, verify
from robustjudge.errors import UnknownName
from robustjudge.nouns import Case

ANY = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)
SUMMARY = (
    "Mayor Ruth Okafor opened the Linden Bridge on 4 May. It cost 12 million euros. It does not carry lorries. "
    "Engineers from Graz had worked for 3 years."
)
PROGRAM = """def count_long(words, limit):
    total = 0
    for word in words:
        if len(word) >= limit:
            total = total + 1
    return total
"""
WORKED = "Six boxes hold 7 pens each.\nThat is 6 * 7 = 42 pens. None is lost.\nSo the total is \\boxed{42}."
QUESTION = "Six boxes hold 7 pens each. How many pens? Put the answer in a $\\boxed{}$."


def case(kind: str = "summarization", reference: str = SUMMARY, **more: object) -> Case:
    made = Case("c1", "Summarize this article.", "", (reference,), kind=kind)
    return replace(made, **more)  # type: ignore[arg-type]


def mathematics() -> Case:
    return case("mathematics", WORKED, task=QUESTION, response="Perhaps \\boxed{41}.")


@settings(max_examples=150, deadline=None)
@given(
    reference=ANY, other=ANY, task=ANY, kind=st.sampled_from(KINDS), language=st.sampled_from(["en", "de", "zh", "yo"])
)
def test_degraders_are_total_seeded_and_never_give_the_reference(
    reference: str, other: str, task: str, kind: str, language: str
) -> None:
    asks = ("", QUESTION[-60:], " five times", " Answer in **bold**.", " three digits as the last part of the response")
    ends = ("", " \\boxed{12}", " CCCCC", " **yes, no**", " 042")
    for ask, end in zip(asks, ends, strict=True):
        given_case = case(
            kind, reference + end, language=language, task=task + ask, meta=(("code_language", "Python"),)
        )
        for d in defects(kind):
            made = degrade(given_case, d.name, seed=3, others=(other,))
            assert made == degrade(given_case, d.name, seed=3, others=(other,))
            assert made is None or (made.strip() and made.split() != given_case.reference.split())
            if made is not None:
                verify(given_case, made, d, others=(other,))


@settings(max_examples=200, deadline=None)
@given(text=ANY)
def test_cutting_loses_nothing(text: str) -> None:
    assert "".join(units(text)) == text == "".join(sentences(text))


@settings(max_examples=200, deadline=None)
@given(digits=st.text(alphabet="0123456789", min_size=1, max_size=20), seed=st.integers(0, 99))
def test_another_number_is_another_number(digits: str, seed: int) -> None:
    assert int(other_number(digits, Random(seed))) != int(digits)


def test_cutting_is_linear_on_hostile_text() -> None:
    for text in ("." * 300_000 + "x", "A'" * 150_000, "?!" * 150_000, "**a" * 100_000, "1." * 150_000):
        sentences(text)
        prose.names(text)
        answers.last(text, "bold")
        answers.last(text, "digits")


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("number_change", lambda t: "12 million" not in t and " 4 May" not in t and "Mayor Ruth" in t),
        ("negation", lambda t: "It carry lorries" in t.replace("  ", " ") and t.count("untrue") >= 1),
        ("wrong_entity", lambda t: "Linden Bridge" not in t and "12 million" in t),
        ("truncation", lambda t: SUMMARY.startswith(t) and len(t) < 0.6 * len(SUMMARY)),
        ("beginning_lost", SUMMARY.endswith),
        ("shuffled", lambda t: sorted(t.split()) == sorted(" ".join(u for u in units(SUMMARY) if u.strip()).split())),
        ("other_reference", lambda t: t == "A dog won a race in Oslo."),
        ("mixed", lambda t: t.startswith("Mayor Ruth") and t.endswith("Oslo.")),
    ],
)
def test_prose_defects_do_what_their_name_says(name: str, check: object) -> None:
    made = degrade(case(), name, others=("A dog won a race in Oslo.",))
    assert made is not None and callable(check) and check(made)
    assert defect("summarization", name).present(material(case(), ("A dog won a race in Oslo.",)), made)
    assert not defect("summarization", name).present(material(case(), ("Other.",)), SUMMARY)


@pytest.mark.parametrize(
    ("language", "text", "want"),
    [
        ("de", "Die Brücke ist offen. Sie trägt nicht viel.", "Die Brücke ist nicht offen. Sie trägt viel."),
        ("zh", "他是老师。她不喝茶。", "他不是老师。她喝茶。"),
    ],
)
def test_negation_speaks_german_and_chinese(language: str, text: str, want: str) -> None:
    assert degrade(case(reference=text, language=language), "negation") == want


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("comparison_flip", "len(word) < limit", ">="),
        ("arithmetic_swap", "total - 1", "+"),
        ("return_removed", "    pass", "return"),
        ("number_change", "total = ", "total = 0"),
        ("broken_code", "def count_long(words, limit", "):"),
        ("stub", "pass", "total"),
        ("wrong_language", "function main", "def count"),
    ],
)
def test_code_defects_do_what_their_name_says(name: str, has: str, lacks: str) -> None:
    program = case("code_generation", PROGRAM, meta=(("code_language", "Python"),))
    made = degrade(program, name)
    assert made is not None and has in made and lacks not in made
    assert defect("code_generation", name).present(material(program), made)


def test_untranslated_source_is_the_wrong_language() -> None:
    made = case("translation", "Good morning to all of you.", meta=(("original", "大家早上好。"),))
    assert degrade(made, "wrong_language") == "大家早上好。"
    assert verify(made, "大家早上好。", defect("translation", "wrong_language")).ok
    assert verify(made, "大家早上好。", defect("translation", "shuffled")).reason == "wrong language"


def test_every_worked_defect_ends_in_a_wrong_answer() -> None:
    made = {d.name: degrade(mathematics(), d.name, others=("So \\boxed{42} it is.",)) for d in defects("mathematics")}
    assert all(text is not None for text in made.values())
    for name, text in made.items():
        assert text is not None and answers.last(text, "boxed") not in ("", "42"), name
        assert verify(mathematics(), text, defect("mathematics", name)).method == "final_answer"
    consistent = made["wrong_final_answer"] or ""
    assert "42" not in consistent and consistent.count(answers.last(consistent, "boxed")) == 2


@pytest.mark.parametrize(
    ("task", "response", "gold"),
    [
        ("(A) one (B) two. Duplicate that letter five times.", "So CCCCC", "C"),
        ("Repeat the letter five times.", "CCCCCC", "C"),
        ("Repeat the letter five times.", "perhaps C", ""),
        ("Put it in a $\\boxed{}$.", "\\boxed{\\frac{1}{2}} and \\boxed{ {x}+1 }", "{x}+1"),
        ("Put it in a $\\boxed{}$.", "\\boxed{1", ""),
        ("Put your answer in **bold**.", "**So,** then **yes, no**", "yes, no"),
        ("in the following format: ***N***", "it is ***4***", "4"),
        ("Have the three digits as the last part of the response.", "Hence 042.", "042"),
        ("No format.", "\\boxed{4}", ""),
    ],
)
def test_final_answers(task: str, response: str, gold: str) -> None:
    assert answers.last(response, answers.form(task)) == gold


def test_answers_compare_as_written() -> None:
    assert (
        answers.same("\\dfrac{1}{2}.", "\\frac{1} {2}")
        and answers.same("007", "7")
        and answers.same("Yes, No", "yes,no")
    )
    assert not answers.same("", "") and not answers.same("4", "5")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" \n", "empty"),
        ("I'm sorry, but I cannot do that.", "a refusal"),
        ("这是一个很短的摘要。", "wrong language"),
        (SUMMARY + " Birds sang.", "holds the reference"),
        (SUMMARY.replace("12", "13"), "not clearly worse"),
    ],
)
def test_verification_says_why_not(text: str, reason: str) -> None:
    assert verify(case(), text, None).reason == reason


def test_verification_uses_the_quality_given() -> None:
    text = "Birds sang over the town while a band played old songs until late at night."
    assert verify(case(), text, None).method == "quality_drop"
    assert verify(case(), text, None, quality=lambda c, t: None).reason == "quality unknown"
    assert verify(case(), text, None, quality=lambda c, t: 0.5).reason == "not clearly worse"
    at_margin = verify(case(), text, None, quality=lambda c, t: 0.9 if t == SUMMARY else 0.75)
    assert at_margin.ok and at_margin.drop == pytest.approx(0.15)
    code = case("code_generation", PROGRAM)
    assert not verify(code, "x = 1", None, quality=lambda c, t: 0.9 if t == PROGRAM else 0.75).ok


def test_verification_wants_the_intended_defect() -> None:
    assert (
        verify(case(), "Birds sang.", defect("summarization", "truncation")).reason == "the intended defect is absent"
    )


def test_right_or_missing_answers_are_not_weak() -> None:
    assert verify(mathematics(), "Clearly \\boxed{42}", None).reason == "answer is right"
    assert verify(mathematics(), "No idea", None).reason == "states no final answer"
    assert verify(case("mathematics", "no gold here"), "\\boxed{3}", None).reason == "no gold answer to compare with"


def test_leak_is_a_share_of_four_grams() -> None:
    assert leak("a b c d e", "a b c d x") == 0.5 and leak("a b", "x a b") == 1 and leak("", "x") == 0


def test_likeness_falls_with_corruption() -> None:
    words = SUMMARY.split()
    ladder = [
        " ".join("xq" if i % 20 < 20 * share else w for i, w in enumerate(words)) for share in (0, 0.1, 0.25, 0.5, 1)
    ]
    scores = [likeness(SUMMARY, text) for text in ladder]
    assert scores[0] == 1 and scores == sorted(scores, reverse=True) and scores[-1] < 0.1
    assert likeness(SUMMARY, "") == 0 and likeness("", "x") == 0 and likeness(SUMMARY, f"  {SUMMARY}\n") == 1


def test_unknown_defect_names_the_near_one() -> None:
    with pytest.raises(UnknownName, match="number_change"):
        degrade(case(), "numbers_change")


def cases(n: int) -> list[Case]:
    places = ["Oslo", "Rome", "Lima", "Cairo", "Perth", "Quito"]
    return [
        Case(
            f"c{i}",
            "Summarize.",
            "",
            (f"In {places[i % 6]}, team {i} beat Ann Ruiz by {i + 3} goals. Fans are glad.",),
            kind="summarization",
        )
        for i in range(n)
    ]


def test_weaken_ignores_order_and_count() -> None:
    many = cases(40)
    whole = {c.id: c for c in weaken(many, Pool(many)) if isinstance(c, Case)}
    turned = {c.id: c for c in weaken(many[::-1], Pool(many[::-1])) if isinstance(c, Case)}
    assert whole == turned and len(whole) == 40
    some = [c for c in weaken(many[:5], Pool(many)) if isinstance(c, Case)]
    assert some == [whole[c.id] for c in some]
    other_seed = {c.id: c for c in weaken(many, Pool(many), seed=1) if isinstance(c, Case)}
    assert other_seed != whole
    assert len({c.defect for c in whole.values()}) >= 5
    for c in whole.values():
        assert c.verified == "quality_drop" and c.get("weak_source") == "rules"


def test_what_cannot_be_verified_is_set_aside_and_counted() -> None:
    rows = list(weaken(cases(2), Pool(), quality=lambda c, t: 0.5))
    assert not any(isinstance(r, Case) for r in rows)
    assert [r.reason for r in rows if isinstance(r, SetAside) and not r.defect] == [
        "no weak candidate could be verified"
    ] * 2
    assert sum(isinstance(r, SetAside) and r.reason == "not clearly worse" for r in rows) >= 10
    (row,) = weaken([Case("a", "q", "")], Pool())
    assert isinstance(row, SetAside)


def test_a_response_that_is_there_is_kept() -> None:
    (row,) = [r for r in weaken([mathematics()], Pool()) if isinstance(r, Case)]
    assert row.response == mathematics().response and row.defect == "" and len(row.distractors) == 8
    untouched = Case("a", "q", "r")
    assert list(weaken([untouched], Pool())) == [untouched]


def test_pool_never_offers_the_own_cluster() -> None:
    many = [replace(c, cluster=f"k{i // 2}") for i, c in enumerate(cases(10))]
    pool = Pool(many)
    for i, c in enumerate(many):
        partner = many[i ^ 1]
        got = pool.others(c, n=99)
        assert c.reference not in got and partner.reference not in got and len(got) == 8
    assert pool.others(replace(many[0], language="de")) == ()
