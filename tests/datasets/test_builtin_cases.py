"""The built-in cases: every reference passes its check, every weak response and distractor fails the same one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest
import sacrebleu

from robustjudge.datasets.base import KINDS
from robustjudge.datasets.builtin_cases import builtin
from robustjudge.datasets.checks import VERIFIED_BY, check
from robustjudge.errors import DataError, UnknownName
from robustjudge.nouns import Case
from robustjudge.quality import default_evaluator, rate

MARGINS = dict.fromkeys(("translation", "summarization", "code_summarization"), 0.15)
CASES = list(builtin())


@pytest.mark.parametrize("kind", KINDS)
def test_twelve_situations_in_three_languages(kind: str) -> None:
    cases = list(builtin(kind))
    assert len(cases) >= 12
    assert {c.kind for c in cases} == {kind}
    assert set(Counter(c.language for c in cases).values()) == {len(cases) // 3}
    assert {c.language for c in cases[:3]} == {"en", "de", "zh"}, "a small limit should still see each language"


def test_no_two_cases_share_an_id_a_source_text_or_an_answer() -> None:
    for texts in ([c.id for c in CASES], [c.task for c in CASES], [c.reference for c in CASES]):
        assert len(set(texts)) == len(CASES) >= 96
    sources = [c.task.partition("\n\n")[2] or c.task for c in CASES]
    assert len(set(sources)) == len(sources)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_reference_passes_and_everything_else_fails_the_same_check(case: Case) -> None:
    assert check(case, case.reference).passed, check(case, case.reference)
    assert not check(case, case.response).passed
    passing = [d.defect for d in case.distractors if check(case, d.text).passed]
    assert passing == []


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_case_is_complete(case: Case) -> None:
    assert case.task.strip() and case.reference.strip() and case.response.strip() and case.defect
    assert case.verified == VERIFIED_BY[json.loads(case.get("check"))["type"]]
    assert (case.licence, case.source, case.dataset) == ("Apache-2.0", "robustjudge built-in", "builtin")
    assert case.human_check == "not done" and {d.human_check for d in case.distractors} == {"not done"}
    assert len(case.distractors) >= 8
    assert len({d.defect for d in case.distractors}) == len(case.distractors)
    texts = [case.reference, case.response, *(d.text for d in case.distractors)]
    assert all(t.strip() for t in texts) and len(set(texts)) == len(texts)
    assert case.reference not in case.task and case.response not in case.task
    assert case.meta == tuple(sorted(case.meta))
    assert not case.sealed().meta, "the check holds the answer and must not reach an attack"
    assert len(case.task) + len(case.response) <= 600, "short enough for a small judge"


@pytest.mark.parametrize("case", [c for c in CASES if c.kind in MARGINS], ids=lambda c: c.id)
def test_character_overlap_of_the_weak_response_drops(case: Case) -> None:
    chrf = sacrebleu.CHRF()
    assert chrf.sentence_score(case.response, [case.reference]).score <= 100 * (1 - MARGINS[case.kind])
    for distractor in case.distractors:
        assert chrf.sentence_score(distractor.text, [case.reference]).score < 100, distractor.defect


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.kind in ("logic", "mathematics", "knowledge")], ids=lambda c: c.id
)
def test_quality_evaluators_read_the_final_answers(case: Case) -> None:
    evaluator = default_evaluator(case.kind)
    assert rate(evaluator, case, case.reference).value == 1.0
    assert rate(evaluator, case, case.response).value == 0.0
    for distractor in case.distractors:
        assert rate(evaluator, case, distractor.text).value in (0.0, None), distractor.defect


def test_gold_answer_in_meta_is_the_computed_one() -> None:
    for case in CASES:
        if gold := case.get("gold"):
            form = {"boxed": f"\\boxed{{{gold}}}", "bold": f"**{gold}**", "letters": gold * 5}[case.get("answer_form")]
            assert check(case, form).passed, case.id


def test_limit_counts_per_kind_and_never_truncates_silently() -> None:
    assert Counter(c.kind for c in builtin(limit=2)) == dict.fromkeys(KINDS, 2)
    assert [c.id for c in builtin("logic", 3)] == [c.id for c in builtin("logic")][:3]
    assert list(builtin(limit=0)) == []
    with pytest.raises(DataError, match="1000 built-in logic cases"):
        list(builtin("logic", 1000))
    with pytest.raises(DataError):
        builtin(limit=-1)
    with pytest.raises(UnknownName, match="Did you mean mathematics"):
        builtin("mathematic")


def test_loading_needs_no_heavy_package() -> None:
    code = (
        "import sys; from robustjudge.datasets.builtin_cases import builtin; n = sum(1 for _ in builtin());"
        "heavy = {'numpy', 'scipy', 'sacrebleu', 'aiohttp', 'torch', 'subprocess'} & set(sys.modules); print(n, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=1) == [str(len(CASES)), "set()\n"]
