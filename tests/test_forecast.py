"""The forecast equals the calls sent where nothing is adaptive, and bounds them where something is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import pytest

from robustjudge.attacks import library
from robustjudge.attacks.base import Plugin
from robustjudge.datasets.builtin_cases import builtin
from robustjudge.execution import Options, execute
from robustjudge.forecast import Forecast, expected, forecast
from robustjudge.forecast_text import duration, words
from robustjudge.judges import Panel, Prompted, Repeated
from robustjudge.models.base import Settings
from robustjudge.nouns import Access, Budget, Case
from robustjudge.plan import Plan
from robustjudge.prompts.library import template
from robustjudge.protocols import BestOf, Pairwise, Pointwise
from robustjudge.spec import register
from robustjudge.threat import ThreatModel


def cases(n: int = 3) -> list[Case]:
    return list(islice(builtin(limit=1), n))


def plan_of(*attacks: str, judge: str = "gameable", **changes: object) -> Plan:
    judges = ((judge, Prompted(f"scripted/{judge}", template("robustjudge"))),)
    made = tuple(library.attack(n, quick=True) for n in attacks)
    base = Plan(cases=cases, judges=judges, protocols=(Pointwise(), Pairwise()), attacks=made)
    return replace(base, **changes)  # type: ignore[arg-type]


def sent(plan: Plan, folder: Path) -> int:
    return execute(plan, Options(root=folder / "runs", ledger=folder / "ledger.sqlite")).tally.sent


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"finals": 2, "cleans": 3},
        {"protocols": (BestOf(3),), "seeds": (0, 1)},
        {"judges": (("r", Repeated(Prompted("scripted/noisy", template("robustjudge")), 3)),)},
        {
            "judges": (
                ("p", Panel(tuple(Prompted(f"scripted/{n}", template("robustjudge")) for n in ("noisy", "perfect")))),
            )
        },
    ],
    ids=["plain", "replicas", "best-of-3, two seeds", "repeated", "panel"],
)
def test_the_forecast_of_fixed_cells_is_what_is_sent(changes: dict[str, object], tmp_path: Path) -> None:
    plan = plan_of("identity", "neutral/H6", "H1", "H6", "H7", **changes)
    found = forecast(plan)
    assert found.exact and not found.adaptive
    assert found.sent == found.at_most == sent(plan, tmp_path) > 0


@register("forecast_test_echo")
@dataclass(frozen=True)
class Echo(Plugin):
    """Appends one word; two of them under two names make equal texts."""

    tag: str = "a"

    @property
    def name(self) -> str:
        return f"echo-{self.tag}"

    async def __call__(self, case: Case) -> str:
        return f"{case.response} indeed"


def test_equal_texts_of_two_attacks_are_one_call(tmp_path: Path) -> None:
    plan = plan_of("H1", attacks=(Echo("a"), Echo("b")), cleans=1, protocols=(Pointwise(),))
    found = forecast(plan)
    assert found.sent == 2 * 3 < found.calls[0].asked == 4 * 3
    assert found.sent == sent(plan, tmp_path)


@pytest.mark.parametrize("name", ["E4", "O1/rules", "O2/rules"])
def test_the_bound_of_adaptive_cells_holds(name: str, tmp_path: Path) -> None:
    plan = plan_of("identity", name, protocols=(Pointwise(),))
    found = forecast(plan)
    assert not found.exact and found.adaptive == 3
    assert found.at_most is not None
    assert found.at_most >= sent(plan, tmp_path)


def test_a_budget_cuts_the_bound(tmp_path: Path) -> None:
    wide = forecast(plan_of("E4", protocols=(Pointwise(),)))
    plan = plan_of("E4", protocols=(Pointwise(),), threats=(ThreatModel(budget=Budget(queries=2)),))
    tight = forecast(plan)
    assert tight.at_most is not None and wide.at_most is not None and tight.at_most < wide.at_most
    assert tight.at_most >= sent(plan, tmp_path)


@register("forecast_test_open")
@dataclass(frozen=True)
class Open(Echo):
    """A search that does not say where it ends."""

    tag: str = "open"

    @property
    def access(self) -> Access:
        return Access.SCORE

    def ceiling(self) -> Budget:
        return Budget(None, 0, 0, 0)


def test_an_attack_without_a_ceiling_is_said_to_have_no_bound() -> None:
    found = forecast(plan_of("H1", attacks=(Open(),)))
    assert found.at_most is None and found.unbounded == ("echo-open",)
    assert "no upper bound" in words(found)
    capped = forecast(plan_of("H1", attacks=(Open(),), threats=(ThreatModel(budget=Budget(queries=5)),)))
    assert capped.at_most is not None and not capped.unbounded


def test_unknown_prices_are_unknown_and_given_ones_are_used() -> None:
    judge = Prompted("http://127.0.0.1:9/v1#mine", template("robustjudge"))
    plan = plan_of("H1", judges=(("mine", judge),))
    assert forecast(plan).cost is None
    priced = forecast(plan, {"http://127.0.0.1:9/v1#mine": Settings(price=(1.0, 2.0))})
    (line,) = priced.calls
    assert priced.cost == pytest.approx((line.prompt_tokens + 2 * line.completion_tokens) / 1e6)
    slow = forecast(plan, {"http://127.0.0.1:9/v1#mine": Settings(rpm=6)})
    assert slow.seconds == pytest.approx(10.0 * slow.sent)


def test_evaluations_of_a_white_box_search_take_less_time_than_written_replies() -> None:
    (line,) = forecast(plan_of("O5", judges=(("mine", Prompted("hf/smollm2", template("robustjudge"))),))).calls
    assert line.at_most is not None and line.at_most > line.sent
    assert line.seconds == pytest.approx(4.0 * line.sent + 0.3 * (line.at_most - line.sent))


def test_precision_at_known_sizes() -> None:
    found: Forecast = forecast(plan_of("H1", cases=lambda: cases(8), protocols=(Pointwise(),)))
    (p,) = found.precision
    assert p.cases == 8
    assert p.half_width_50 == pytest.approx(0.2846, abs=5e-4)  # Wilson, 4 of 8: [.2152, .7848]
    assert p.zero_bound == pytest.approx(1 - 0.05 ** (1 / 8))


def test_a_pilot_gives_the_expectation(tmp_path: Path) -> None:
    plan = plan_of("E4", protocols=(Pointwise(),))
    table = execute(plan, Options(root=tmp_path / "runs", ledger=None)).table()
    (name,) = expected(plan, table)
    assert expected(plan, table)[name] == pytest.approx(float(table["queries"].sum()))


def test_words() -> None:
    told = words(forecast(plan_of("identity", "H1")))
    assert "exactly" in told and "n = 3" in told and "USD" in told
    assert [duration(x) for x in (0.1, 89, 91, 5400)] == ["1 s", "89 s", "2 min", "1.5 h"]


def test_a_defense_of_the_prompt_is_counted_and_a_detector_is_bounded(tmp_path: Path) -> None:
    from robustjudge.defenses.detector import LLMDetector
    from robustjudge.defenses.sandwich import Sandwich

    shields = (("none", None), ("sandwich", Sandwich()))
    plan = plan_of("identity", "H1", defenses=shields, protocols=(Pairwise(),))
    found = forecast(plan)
    assert found.exact and found.sent == sent(plan, tmp_path / "a")
    guarded = plan_of("identity", "H1", defenses=(("llm", LLMDetector("scripted/gameable")),), protocols=(Pairwise(),))
    bound = forecast(guarded)
    assert not bound.exact and {c.role for c in bound.calls} == {"judge", "detector"}
    assert bound.at_most is not None and bound.at_most >= sent(guarded, tmp_path / "b") > 0


def test_a_pilot_tells_what_searches_may_be_expected_to_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from robustjudge.cli.app import run as command

    monkeypatch.chdir(tmp_path)
    common = [
        "--judge",
        "scripted/noisy",
        "--attack",
        "E4",
        "--quick",
        "--control",
        "identity",
        "--cases",
        "builtin/logic",
    ]
    assert command(["run", *common, "--limit", "2"]) == 0
    capsys.readouterr()
    assert command(["run", *common, "--limit", "4", "--dry-run", "--pilot", "runs"]) == 0
    assert "E4: about " in capsys.readouterr().out
    assert command(["run", *common, "--limit", "4", "--dry-run"]) == 0
    assert "--pilot runs" in capsys.readouterr().out
