"""Known faults, area A (reading the verdict) and the log-probability faults, each by its id with a neighbour or two."""

from __future__ import annotations

import math

import pytest

from robustjudge.nouns import TokenOdds
from robustjudge.scales import Scale, expected_score, letters, likert, read, yes_no

TEN, FIVE, AB = likert(1, 10), likert(1, 5), letters(2)
CI = Scale(labels=("C", "I"))
PASS = Scale(labels=("pass", "fail"))


def said(reply: str | None, scale: Scale, finish: str = "stop", refusal: str = "") -> object:
    got = read(reply, scale, finish, refusal)
    return got.value if got.status == "ok" else got.status


def test_B001_a_mark_used_while_reasoning_is_not_the_verdict() -> None:
    assert said("First I leaned to [[A]]. The sum in A is wrong.\nFinal verdict: [[B]]", AB) == "B"
    assert said("I leaned to [[B]]. Then [[A]]. Both have merits.", AB) == "unparsed"


def test_B003_the_rubric_echoed_in_the_reply_is_not_the_verdict() -> None:
    assert said("Format: [RESULT] (an integer from 1 to 5)\nGood but short. [RESULT] 2", FIVE) == 2
    assert said("[RESULT] (1 to 5)", FIVE) == "unparsed"
    assert said("VERDICT: <number>\nwhere <number> stands for a whole number from 1 to 10.\nVERDICT: 4", TEN) == 4


def test_B005_another_number_of_the_reply_is_not_the_score() -> None:
    assert said("Score: 6\nIt repeats the reference in 2 places", TEN) == 6
    assert said("Score: 6\nIt was written in 2024 by 3 people, version 2.", TEN) == 6


def test_B007_a_mark_off_the_scale_is_unparsed() -> None:
    assert said("Rating: [[85]]", TEN) == "unparsed"
    assert said("Rating: [[0.85]]", TEN) == "unparsed"


def test_B009_no_guessed_scale_no_sentiment_no_default() -> None:
    assert said("There are 5 reasons. Score: 9", TEN) == 9
    assert said("This is not excellent", TEN) == "unparsed"
    assert said("no idea", TEN) == "unparsed"


def test_B011_words_that_hold_a_label_and_invisible_characters() -> None:
    assert said("GRADE: C. No reason to downgrade: insufficient grounds.", CI) == "C"
    assert said("GRADE:\u200bC", CI) == "C"
    assert said("GRADE:\u2060\ufeffC", CI) == "C"
    assert said("grade: c", CI) == "C"


def test_B013_a_misspelt_grade_is_unscored_not_wrong() -> None:
    got = [said(r, CI) for r in ("GRADE: C", "GRADE: C", "GRID: C")]
    assert got == ["C", "C", "unparsed"]


def test_B015_an_unreadable_verdict_is_no_hit() -> None:
    got = [said(r, yes_no()) for r in ("[[NO]]", "NO", "The response is a refusal.", "")]
    assert got == ["no", "no", "unparsed", "unparsed"]


def test_B017_a_letter_in_prose_is_not_an_option() -> None:
    assert said("As a judge, I weighed both. The final grade is B.", AB) == "B"
    assert said("As a judge, I weighed both.", AB) == "unparsed"
    assert said("A judge must be fair.", AB) == "unparsed"


def test_B019_numbers_and_labels_keep_their_type() -> None:
    assert read('{"score": "10"}', TEN).value == 10
    assert isinstance(read('{"score": "10"}', TEN).value, float)
    assert said('{"pass": "false"}', PASS) == "fail"
    assert said('{"pass": "true"}', PASS) == "pass"


def test_B021_braces_and_fences_inside_strings() -> None:
    assert said('```json {"reason": "the set {1,2}", "score": 9} ```', TEN) == 9
    assert said('{"reason": "}{ ``` [[2]]", "score": 9}', TEN) == 9


def test_B023_a_bare_fence() -> None:
    assert said('```\n{"score": 6}\n```', TEN) == 6
    assert said('{"score": 6}\n```', TEN) == 6


def test_B026_a_cut_object_is_truncated_not_zero() -> None:
    got = read('thought\n{"score":', likert(0, 10), "length")
    assert (got.status, got.value) == ("truncated", None)


def test_B028_full_stops_fractions_and_missing_tags() -> None:
    safe = Scale(labels=("safe", "unsafe"))
    assert said("Score: 5/5", FIVE) == 5
    assert said("Score: 4.", FIVE) == 4
    assert said("[Answer] unsafe.", safe) == "unsafe"
    assert said("no tag at all", FIVE) == "unparsed"


def test_B030_control_tokens_do_not_break_the_reader() -> None:
    assert said("<|im_start|>assistant\nRating: [[7]]<|im_end|>", TEN) == 7
    assert said("<|im_start|>...", TEN) == "unparsed"
    assert said("<s>VERDICT: A</s>", AB) == "A"


def test_B032_negation_is_not_ignored() -> None:
    right = Scale(labels=("correct", "incorrect"))
    assert said("This is not correct.", right) == "unparsed"
    assert said("The answer is not correct.", right) == "unparsed"


@pytest.mark.parametrize("reply", ["", " ", "\n\n", None])
def test_B034_an_empty_reply_is_a_status(reply: str | None) -> None:
    assert said(reply, TEN) == "unparsed"


def test_B037_decimals_in_a_line_of_two_scores() -> None:
    two = Scale(low=1, high=10, labels=("first", "second", "tie"), tie="tie", two_scores=True)
    assert said("7.5 7", two) == "first"
    assert said("7 7.5", two) == "second"


def test_B038_a_two_digit_candidate_is_never_its_first_digit() -> None:
    eleven = Scale(labels=tuple(str(i) for i in range(1, 12)))
    assert said("Best: [[10]]", eleven) == "10"
    assert said("Best: [[11]]", eleven) == "11"
    assert said("Best: [[12]]", eleven) == "unparsed"


def test_B120_half_an_emoji_is_shown_and_never_fatal() -> None:
    got = read("ok \ud83d [[7]]", TEN)
    assert got.value == 7 and got.text_mapped
    assert got.raw.encode("utf-8")


def test_B126_a_missing_verdict_never_passes() -> None:
    assert said('{"reason": "..."}', PASS) == "unparsed"
    assert said('{"score": 0}', PASS) == "unparsed"


def test_B131_the_refusal_field_counts() -> None:
    assert said(None, TEN, "stop", "I can't grade this") == "refused"
    assert said('{"score": 7}', TEN, "stop", "I can't grade this") == "refused"


def test_B133_a_length_stop_keeps_its_cause_and_text() -> None:
    got = read('{"reason": "abc', TEN, "length")
    assert (got.status, got.raw) == ("truncated", '{"reason": "abc')


def test_B135_null_content_is_unparsed() -> None:
    assert said(None, TEN) == "unparsed"


# --------------------------------------------------------------------------- log-probabilities


def odds(token: str, **top: float) -> TokenOdds:
    pairs = tuple((k.strip("_"), math.log(p)) for k, p in top.items())
    return TokenOdds(token, dict(pairs).get(token.strip(), 0.0), pairs)


def test_B090_the_token_of_the_verdict_is_weighed_not_an_equal_one_before_it() -> None:
    reply = "8 facts hold.\nScore: 8"
    tokens = (
        odds("8", _8=0.99, _7=0.01),
        TokenOdds(" facts hold.\nScore:", 0.0),
        TokenOdds(" ", 0.0),
        odds("8", _8=0.6, _9=0.4),
    )
    value, reason, mass = expected_score(tokens, read(reply, TEN), TEN)
    assert value == pytest.approx(8.4) and reason == ""
    assert mass == pytest.approx(1.0)


def test_B090_mass_off_the_scale_is_renormalised_and_reported() -> None:
    tokens = (TokenOdds("Score: ", 0.0), odds("8", _8=0.4, _6=0.4, the=0.1, _11=0.1))
    value, _, mass = expected_score(tokens, read("Score: 8", TEN), TEN)
    assert value == pytest.approx(7.0) and mass == pytest.approx(0.8)


def test_B092_no_declared_token_gives_no_score() -> None:
    tokens = (odds("the", the=0.7, a=0.3),)
    value, reason, mass = expected_score(tokens, read("the", TEN), TEN)
    assert value is None and reason and mass == 0.0
    split_ten = (TokenOdds("Score: ", 0.0), TokenOdds("[", 0.0), TokenOdds("1", -0.1))
    value, reason, _ = expected_score(split_ten, read("Score: 8", TEN), TEN)
    assert value is None and "spell" in reason
    assert expected_score((), read("Score: 8", TEN), TEN)[0] is None


def test_a_value_of_several_tokens_is_not_weighed_by_its_first_digit() -> None:
    tokens = (TokenOdds("Score: ", 0.0), odds("1", _1=0.9, _2=0.1), odds("0", _0=0.9, _1=0.1))
    value, reason, _ = expected_score(tokens, read("Score: 10", TEN), TEN)
    assert value is None and reason
