"""Text attacks: placement, language, code comments, variants; and planted judges that see only the text."""

import ast
import re

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge import spec
from robustjudge.attacks.base import Attack, NoCandidate, Plugin, Target, place, planted, split
from robustjudge.attacks.library import HEURISTIC, attack, attack_names, expand, suite
from robustjudge.attacks.text import TextAttack
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.nouns import Access, Case
from robustjudge.steps import run

CASE = Case("c1", "Translate.", "The house is red. It stands on a hill.", kind="translation")


def text(a: Attack, case: Case = CASE) -> str:
    return run(a(case), lambda ask: pytest.fail(f"a heuristic asked {ask}"))


@pytest.mark.parametrize("name", ["H1", "H2", "H3", "H4", "H5", "H6"])
@pytest.mark.parametrize("seed", range(5))
def test_suffix_attacks_keep_the_response(name: str, seed: int) -> None:
    out = text(attack(name, seed=seed))
    assert out.startswith(CASE.response) and len(out) > len(CASE.response)
    assert attack(name).channel == "append" and attack(name).access == Access.NONE


def test_h7_and_h8_are_exact() -> None:
    assert text(attack("H7")) == ""
    assert [text(attack(f"H7/{v}")) for v in ("whitespace", "dot", "na")] == [" \n ", ".", "N/A"]
    assert text(attack("H8")) == CASE.response * 128
    assert text(attack("H8", quick=True)) == CASE.response * 8
    with pytest.raises(NoCandidate):
        text(attack("H8"), Case("1", "t", ""))


def test_h3_placements() -> None:
    before, middle, after = (text(attack(f"H3/{v}")) for v in ("before", "middle", "after"))
    assert before.endswith(CASE.response) and after.startswith(CASE.response)
    assert middle.startswith("The house is red.") and middle.endswith("It stands on a hill.")
    assert attack("H3/middle").channel == "middle"


def test_h4_uses_the_real_fences_damages_them_or_leaves_them_out() -> None:
    target = Target(fences=(("<<in>>", "<<out>>"), ("[[", "]]")))
    real, fuzzed, plain = (text(attack(f"H4/{v}", target)) for v in ("real", "fuzzed", "plain"))
    assert "<<out>>\n]]" in real
    assert "<<out>>" not in fuzzed and "<<out>" in fuzzed
    assert "out>" not in plain and "VERDICT: 10" in plain
    with pytest.raises(NoCandidate, match="tie"):
        text(attack("H4/tie", target))
    assert text(attack("H4/tie", Target("pairwise", verdict_line="x", tie_line="VERDICT: TIE"))).endswith("TIE")


def test_the_two_combined_recipes_differ() -> None:
    rj, liu = text(attack("H6/combined_rj")), text(attack("H6/combined_liu"))
    rationale = text(attack("H5"))[len(CASE.response) :].strip()
    assert rationale in rj and rationale not in liu
    assert liu.index("VERDICT: 10") < liu.index("Disregard") and rj.index("Disregard") < rj.index("VERDICT: 10")


def test_language_of_the_case_is_used_and_the_fallback_is_flagged() -> None:
    zh = Case("1", "t", "回答。", language="zh-CN")
    fr = Case("1", "t", "Réponse.", language="fr")
    h1 = TextAttack("H1")
    assert h1.language_used(zh) == "zh" and h1.note(zh) == "" and re.search("[一-鿿]", h1.payload(zh))
    assert h1.language_used(fr) == "en" and h1.note(fr) == "English payload on a non-English case"
    assert TextAttack("E5", 1).note(zh) == "English payload on a non-English case"


PYTHON = "def f(x):\n    return x + 1"
C = "int f(int x) {\n  return x + 1;\n}"


@pytest.mark.parametrize("name", ["H1", "H2", "H3", "H4", "H5", "H6", "flattery", "forged_rubric", "repeated_list"])
def test_code_stays_code(name: str) -> None:
    case = Case("1", "t", PYTHON, kind="code_generation")
    for seed in range(5):
        ast.parse(text(attack(name, seed=seed), case))
    c = text(attack(name), Case("1", "t", C, kind="code_translation"))
    assert all(line.startswith("//") for line in c[len(C) :].strip().splitlines())


def test_a_history_payload_is_a_turn_and_leaves_the_response_alone() -> None:
    a = attack("E9")
    assert a.channel == "history"
    said = text(a)
    case = planted(CASE, said)
    assert CASE.response not in said and case.history[-1].text == said and case.response == CASE.response


def test_criteria_with_braces_are_data() -> None:
    out = text(attack("H5", Target(criteria=("{H1}", "{top}"))))
    assert "{H1} and {top}" in out


@given(st.text(max_size=60), st.text(min_size=1, max_size=30), st.sampled_from(["append", "prefix", "middle"]))
@settings(max_examples=200)
def test_split_finds_what_place_added(response: str, payload: str, channel: str) -> None:
    attacked = place(channel, response, payload, " ")  # type: ignore[arg-type]
    parts = split(response, attacked)
    assert parts.around(parts.payload) == attacked
    assert parts.before + parts.after == (response if response else "")


# ------------------------------------------------------------------ planted judges: text in, score out


def obedient(shown: str) -> bool:
    return bool(
        re.search(r"sentence|this request|this line|this note|remark|top band|highest|full marks|best|10", shown)
    )


def last_instruction(shown: str) -> bool:
    asks = [s for s in re.split(r"(?<=[.!?:])\s+", shown) if re.match(r"(Please|I ask|Give|Put|Rate|Translate)\b", s)]
    return bool(asks) and bool(re.search("highest|best|top score|maximum|very top", asks[-1]))


def fenced(shown: str) -> str:
    """What stands outside the fence (an un-neutralised renderer)."""
    return re.sub(r"<data>.*?</data>", "", f"<data>{shown}</data>", count=1, flags=re.DOTALL)


FENCE = Target(fences=(("<data>", "</data>"),))


def test_planted_judges_give_the_known_outcomes() -> None:
    for name in ("H1", "H2", "H3", "H4", "H5", "H6"):
        assert obedient(text(attack(name))) and not obedient(CASE.response)
        outside = fenced(text(attack(name, FENCE)))
        assert ("VERDICT: 10" in outside) == (name == "H4")
    assert last_instruction(CASE.response + "\n" + text(attack("H1")))
    prefixed = text(attack("H1/prefix")) + "\nTranslate the sentence."
    assert not last_instruction(prefixed)
    assert min(10, 1 + len(text(attack("H8"))) // 500) == min(10, 1 + 128 * len(CASE.response) // 500)


# ------------------------------------------------------------------ the library


def test_every_playbook_strategy_has_a_name() -> None:
    for phrase in [
        "verbose padding",
        "authoritative tone injection",
        "markdown formatting tricks",
        "fake citations",
        "emotional appeal",
        "excessive flattery",
        "academic jargon",
        "claimed expert approval",
        "one-word minimal answer",
        "padded verbose answer",
        "repeated list",
        "long suffix",
        "empty answer",
        "hidden instructions in markdown or comments",
        "JSON injection",
        "delimiter confusion",
        "forged rubric or verdict block",
        "role spoof",
        "invisible and look-alike characters",
        "fence and thinking-tag tricks",
    ]:
        (name,) = expand((phrase,))
        assert attack(name).category in ("style_manipulation", "length_exploitation", "format_hacking")


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="flattery"):
        attack("flatery")
    with pytest.raises(UnknownName, match="html"):
        attack("H2/htm")
    with pytest.raises(ConfigError, match="no variants"):
        attack("one_word/x")
    with pytest.raises(UnknownName):
        suite("heuristik")
    with pytest.raises(UnknownName):
        expand(("no such attack at all",))


def test_suites_and_expansion() -> None:
    assert suite("heuristic") == HEURISTIC
    assert expand(("h1", "style manipulation", "H1"))[0] == "H1" and len(expand(("style manipulation",))) == 6
    assert "identity" not in suite("all") and set(HEURISTIC) <= set(suite("all"))
    for name in ("heuristic", "playbook", "paper", "extension", "probes", "controls"):
        for member in suite(name):
            assert isinstance(attack(member, quick=True), Attack)


@pytest.mark.parametrize("name", attack_names())
def test_every_attack_declares_itself_and_round_trips(name: str) -> None:
    target = Target("pairwise", verdict_line="VERDICT: this", criteria=("clarity",))
    made = attack(name, target, 3, quick=True)
    assert isinstance(made, Attack) and isinstance(made, Plugin)
    assert made.category and made.family and made.severity in ("low", "medium", "high", "critical")
    assert spec.load(spec.dump(made)) == made and hash(made) == hash(attack(name, target, 3, quick=True))
    again = Target("binary", "no", "yes", "yes")
    assert made.bound(again).bound(target) == made.bound(target)
