"""chrF, ROUGE-L and BLEU: fixtures, languages without spaces, shapes."""

from __future__ import annotations

import pytest
from rouge_score.rouge_scorer import RougeScorer

from robustjudge.errors import DataError
from robustjudge.nouns import Case
from robustjudge.quality import rate
from robustjudge.quality.bleu import corpus_bleu
from robustjudge.quality.rouge import tokens


def case(*references: str) -> Case:
    return Case(id="c", task="t", response="", references=references)


def test_b082_references_are_one_for_each_candidate() -> None:
    """B082: read in the wrong shape, only line 1 counts and the pair gets 100."""
    candidates = ["the cat sat on the mat", "dogs bark at night loudly"]
    references = ["the cat sat on the mat", "birds sing in the early day"]
    assert corpus_bleu(candidates, references) == pytest.approx(0.5184, abs=5e-5)
    for wrong in ([[r] for r in references], references[:1], "one text"):
        with pytest.raises(DataError):
            corpus_bleu(candidates, wrong)  # type: ignore[arg-type]
    with pytest.raises(DataError):
        corpus_bleu([], [])


@pytest.mark.parametrize("name", ["chrf", "rouge", "token_bleu"])
@pytest.mark.parametrize(("text", "reference"), [("", "one two three four"), ("yes", "no"), ("数", "我们")])
def test_b084_texts_that_share_nothing_are_worth_zero(name: str, text: str, reference: str) -> None:
    assert rate(name, case(reference), text).value == 0.0


@pytest.mark.parametrize("name", ["rouge", "token_bleu"])
def test_b084_unrelated_words_are_worth_zero(name: str) -> None:
    """Character n-grams are exempt: "alpha" and "omega" do share letters (chrF 0.16), far below any real match."""
    assert rate(name, case("omega"), "alpha").value == 0.0
    assert (rate("chrf", case("omega"), "alpha").value or 0.0) < 0.2


@pytest.mark.parametrize("name", ["chrf", "rouge", "token_bleu"])
def test_the_best_reference_counts_and_itself_is_one(name: str) -> None:
    target = "The old bridge was closed for repairs."
    assert rate(name, case("Nothing of the kind here.", target), target).value == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("The cat sat on the mat.", "A cat was sitting on the mat, asleep"),
        ("3 of 12 items", "Of 12 items 3 were sold; 9 weren't"),
        ("one two", "three four"),
    ],
)
def test_rouge_equals_the_reference_implementation_on_english(text: str, reference: str) -> None:
    theirs = RougeScorer(["rougeL"], use_stemmer=False).score(reference, text)["rougeL"].fmeasure
    assert rate("rouge", case(reference), text).value == pytest.approx(theirs)


def test_rouge_reads_chinese_by_character_and_german_with_umlauts() -> None:
    assert tokens("他买了3本书, über ÄPFEL_x") == ["他", "买", "了", "3", "本", "书", "über", "äpfel", "x"]
    half = rate("rouge", case("他昨天买了三本书"), "他今天买了三本书").value
    assert half == pytest.approx(7 / 8)
    assert rate("rouge", case("他昨天买了三本书"), "天气很好").value == pytest.approx(2 / 12)


def test_rouge_with_a_wordless_reference_is_unknown() -> None:
    assert rate("rouge", case("?!"), "text").value is None
