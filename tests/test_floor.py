"""The shared floor: specs, the door, nouns and errors."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge import door, spec
from robustjudge.errors import BudgetSpent, ConfigError, Incomplete, Inconclusive, UndefinedEstimate, UnknownName
from robustjudge.nouns import Case, Estimate, Label, Message, Text, Weak
from robustjudge.spec import canonical, digest, dump, key, load, register

# ------------------------------------------------------------------ specs


@register("test/inner")
@dataclass(frozen=True)
class Inner:
    x: int = 1
    words: tuple[str, ...] = ()


@register("test/outer")
@dataclass(frozen=True)
class Outer:
    inner: Inner
    pair: tuple[Inner, ...] = ()
    rate: float = 0.5
    hidden: str = field(default="", metadata={"spec": False})


specs = st.builds(
    Outer,
    st.builds(Inner, st.integers(), st.lists(st.text(max_size=5), max_size=3).map(tuple)),
    st.lists(st.builds(Inner), max_size=2).map(tuple),
    st.floats(allow_nan=False, allow_infinity=False),
)


@settings(max_examples=60, deadline=None)
@given(thing=specs)
def test_a_spec_survives_json(thing: Outer) -> None:
    assert load(json.loads(json.dumps(dump(thing)))) == thing


@settings(max_examples=60, deadline=None)
@given(a=specs, b=specs)
def test_equal_specs_have_equal_keys_and_different_ones_do_not(a: Outer, b: Outer) -> None:
    assert (key(a) == key(b)) == (canonical(dump(a)) == canonical(dump(b)))


def test_defaults_and_hidden_fields_are_left_out_so_that_a_new_field_never_changes_an_old_key() -> None:
    assert dump(Outer(Inner(), hidden="x")) == {"kind": "test/outer", "inner": {"kind": "test/inner"}}
    assert key(Outer(Inner(), hidden="x")) == key(Outer(Inner()))
    assert dump(Outer(Inner(True)))["inner"] == {"kind": "test/inner", "x": True}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"kind": "test/iner"}, "Did you mean test/inner"),
        ({"kind": "test/inner", "wrds": []}, "Did you mean words"),
        ({"kind": "test/outer"}, "test/outer"),
        ({"kind": "os.system"}, "unknown kind"),
        ({"kind": ["x"]}, "unknown kind"),
    ],
)
def test_loading_builds_only_what_is_registered_and_says_what_was_meant(data: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load(data)


def test_a_name_that_is_taken_names_both_owners() -> None:
    class Other:
        pass

    with pytest.raises(ConfigError, match="registered by both"):
        register("test/inner")(Other)
    assert register("test/inner")(Inner) is Inner


def test_what_has_no_json_form_is_refused() -> None:
    @dataclass(frozen=True)
    class Unregistered:
        x: int = 0

    for thing in (Unregistered(), object(), b"bytes"):
        with pytest.raises(ConfigError):
            dump(thing)
    with pytest.raises(ValueError, match=r"[Nn]a[Nn]|JSON"):
        canonical({"x": float("nan")})


@settings(max_examples=60, deadline=None)
@given(a=st.lists(st.text(max_size=4), max_size=4), b=st.lists(st.text(max_size=4), max_size=4))
def test_a_digest_tells_apart_where_texts_end(a: list[str], b: list[str]) -> None:
    assert (digest(*a) == digest(*b)) == (a == b)
    assert len(digest(*a)) == 32


def test_keys_do_not_outlive_the_object_that_had_its_id() -> None:
    seen = {key(Inner(i)) for i in range(20_000)}
    assert len(seen) == 20_000


# ------------------------------------------------------------------ the door


anything = st.text(alphabet=st.characters(codec=None) | st.sampled_from("\x00\ud83d\udc00\\u"), max_size=40)


@settings(max_examples=200, deadline=None)
@given(text=anything)
def test_the_door_makes_valid_text_once_and_leaves_the_rest_alone(text: str) -> None:
    mapped = door.safe(text)
    mapped.encode("utf-8")
    assert "\x00" not in mapped
    assert door.safe(mapped) is mapped
    through = door.through(text)
    assert through.changed == (mapped != text) and through.sha256 == door.digest(text)
    if not through.changed:
        assert mapped is text


# ------------------------------------------------------------------ nouns and errors


def test_a_sealed_case_holds_nothing_that_tells_the_answer() -> None:
    case = Case("c", "t", "r", ("ref",), (Weak("w"),), labels=(Label("a", "5"),), expected=1.0, meta=(("gold", "4"),))
    sealed = case.sealed()
    assert (sealed.reference, sealed.distractors, sealed.labels, sealed.expected, sealed.meta) == ("", (), (), None, ())
    assert (sealed.id, sealed.task, sealed.response) == ("c", "t", "r")


def test_an_undefined_estimate_has_no_number() -> None:
    nothing = Estimate.undefined("no_items", low=0.0, high=1.0)
    with pytest.raises(UndefinedEstimate, match="no_items"):
        float(nothing)
    assert nothing.value is None and nothing.as_dict()["value"] is None


@settings(max_examples=40, deadline=None)
@given(
    value=st.none() | st.floats(0, 1), n=st.integers(0, 99), flags=st.lists(st.text(max_size=3), max_size=2).map(tuple)
)
def test_an_estimate_survives_json(value: float | None, n: int, flags: tuple[str, ...]) -> None:
    estimate = Estimate(value, 0.0, 1.0, n, "m", "" if value is not None else "why", flags)
    assert Estimate.from_dict(json.loads(json.dumps(estimate.as_dict()))) == estimate


def test_a_message_is_its_parts() -> None:
    assert Message("user", (Text("a"), Text("b", "task"))).text == "ab"


def test_errors_carry_their_exit_codes_and_near_names() -> None:
    assert (ConfigError.exit_code, Inconclusive.exit_code, Incomplete.exit_code, BudgetSpent.exit_code) == (2, 3, 4, 4)
    told = UnknownName("attack", "H11", ("H1", "H2", "O1"))
    assert told.near and "Did you mean" in str(told)
    assert "Known: " in str(UnknownName("attack", "zzzzzz", ("H1",)))
    many = str(UnknownName("attack", "zzzzzz", tuple(f"H{i:02}" for i in range(50))))
    assert "H39 and 10 more" in many and "H40" not in many


def test_names_are_listed_by_base() -> None:
    assert "test/inner" in spec.names() and spec.names(Inner) == ("test/inner",)


def test_a_case_enters_through_the_door_once() -> None:
    plain = Case("c", "t", "r", ("ref",), (Weak("w"),))
    assert door.admitted(plain) is plain
    odd = Case("c\x00", "t \ud83d", "r", ("ref \ud83d",), (Weak("w\x00"),), meta=(("k", "v\ud83d"),))
    entered = door.admitted(odd)
    assert entered.text_mapped and door.admitted(entered) is entered
    assert (entered.id, entered.task, entered.reference) == ("c\\u0000", "t \\ud83d", "ref \\ud83d")
    assert entered.distractors[0].text == "w\\u0000" and entered.get("k") == "v\\ud83d"
    hashes = {v for k, v in entered.meta if k.startswith("original_sha256/")}
    assert {door.digest(odd.id), door.digest(odd.task), door.digest(odd.reference)} <= hashes
