"""Defects of worked answers (mathematics, logic, knowledge): whatever else goes wrong, the final answer is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from robustjudge.datasets import answers
from robustjudge.datasets.defects import text as prose
from robustjudge.datasets.defects.base import Defect, Material

_CONCLUSION = "The final answer is "
_YES_NO = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{4,}")


def wrong_answer(m: Material, rng: Random) -> str | None:
    """An answer of the same form as the gold answer that is not equal to it; ``None`` where there is no gold answer."""
    gold = m.gold
    if not gold or not m.form:
        return None
    if m.form == "letters":
        return rng.choice([o for o in (answers.options(m.task) or tuple("ABCDE")) if o != gold] or ["A"])
    if m.form == "digits":
        return f"{(int(gold) + rng.randint(1, 9)) % 1000:03d}" if gold.isdecimal() else None
    if re.fullmatch(r"-?[0-9]{1,15}", gold):
        return str(int(gold) + rng.randint(1, 9))
    if m.form == "boxed":
        return f"{gold} + {rng.randint(1, 9)}"
    replies = _YES_NO.findall(gold)
    if replies:
        turned = rng.randrange(len(replies))
        flipped = ["yes" if r.lower() == "no" else "no" for r in replies]
        return ", ".join(f if i == turned else r.lower() for i, (r, f) in enumerate(zip(replies, flipped, strict=True)))
    words = sorted({w.lower() for w in _WORD.findall(m.task)} - {answers.normal(gold)})
    return rng.choice(words) if words else None


def concluded(text: str, m: Material, wrong: str) -> str:
    """``text`` without the gold answer as stated, ending in ``wrong`` in the form that the question demands."""
    body = text.replace(answers.stated(m.gold, m.form), answers.stated(wrong, m.form)).rstrip()
    return f"{body}\n\n{_CONCLUSION}{answers.stated(wrong, m.form)}".strip()


def wrong_final_answer(m: Material, rng: Random) -> str | None:
    """The gold answer altered wherever it stands by itself, so that the text stays consistent."""
    wrong = wrong_answer(m, rng)
    if wrong is None:
        return None
    stated, alone = answers.stated(m.gold, m.form), re.compile(rf"(?<![\w.]){re.escape(m.gold)}(?![\w.]*\w)")
    text = m.good.replace(stated, answers.stated(wrong, m.form))
    if m.form == "letters":
        text = text.replace(f"({m.gold})", f"({wrong})")
    else:
        text = alone.sub(lambda _: wrong, text)
    return text if answers.same(answers.last(text, m.form), wrong) else concluded(text, m, wrong)


def contradiction(m: Material, rng: Random) -> str | None:
    """Sound working, then a final answer that does not follow from it."""
    wrong = wrong_answer(m, rng)
    return None if wrong is None else f"{m.good.rstrip()}\n\nStill, on reflection: {answers.stated(wrong, m.form)}"


def answer_only(m: Material, rng: Random) -> str | None:
    wrong = wrong_answer(m, rng)
    return None if wrong is None else _CONCLUSION + answers.stated(wrong, m.form)


def _then_wrong(spoil: Callable[[Material, Random], str | None]) -> Callable[[Material, Random], str | None]:
    def both(m: Material, rng: Random) -> str | None:
        wrong = wrong_answer(m, rng)
        text = spoil(m, rng) if wrong is not None else None
        return None if text is None or wrong is None else concluded(text, m, wrong)

    return both


def other_answer(m: Material, text: str) -> bool:
    """Does ``text`` state a final answer, and one other than the gold answer?"""
    given = answers.last(text, m.form)
    return bool(m.gold and given) and not answers.same(given, m.gold)


DEFECTS: tuple[Defect, ...] = (
    Defect("wrong_final_answer", wrong_final_answer, other_answer),
    Defect("contradiction", contradiction, other_answer),
    Defect("answer_only", answer_only, other_answer),
    *(
        Defect(name, _then_wrong(spoil), other_answer)
        for name, spoil in (
            ("number_change", prose.number_change),
            ("negation", prose.negation),
            ("truncation", prose.truncation),
            ("beginning_lost", prose.beginning_lost),
            ("shuffled", prose.shuffled),
            ("omission", prose.omission),
            ("repetition", prose.repetition),
            ("other_reference", prose.other_reference),
            ("mixed", prose.mixed),
            ("vague", prose.vague),
        )
    ),
)
