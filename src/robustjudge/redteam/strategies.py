"""Attack strategies as a user names them: our attacks, the playbook's phrases, categories, packs of one's own, quoted texts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import cast

from robustjudge.attacks import library, packs
from robustjudge.attacks.base import Attack
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.gate.policy import SEVERITIES
from robustjudge.nouns import Access, Severity

ALL = "playbook"
"""What ``all`` stands for: every strategy of the three categories that the playbook names, and the user's own packs."""

_QUOTED = re.compile(r'"([^"]*)"\s*(?:=\s*([\w-]+)\s*:\s*([\w-]+))?')


@dataclass(frozen=True)
class Strategy:
    """One way to change a response.

    ``name`` is the canonical name of an attack, or the quoted text itself.  ``words`` is what a generator model is told,
    empty where only the template engine can make it.  ``shipped``: the wording was reviewed when the package was made.
    """

    name: str
    category: str
    severity: Severity
    words: str = ""
    template: bool = True
    shipped: bool = True


@cache
def described() -> Mapping[str, str]:
    """What a generator is told of each strategy, by attack name."""
    return cast(
        Mapping[str, str], tomllib.loads(files("robustjudge.redteam").joinpath("strategies.toml").read_text("utf-8"))
    )


def parse(text: str, own: Iterable[str] = (), generator: bool = False) -> tuple[Strategy, ...]:
    """The strategies that a comma-separated list names, in order and once each.

    Names, aliases and categories are ours; ``all`` is every category of the playbook and every pack of ``own`` (ids of
    packs that the user added).  With ``generator``, ``"any text"=category:severity`` is a strategy of its own.  Raises
    :class:`~robustjudge.errors.UnknownName` with the nearest name, :class:`~robustjudge.errors.ConfigError` for an attack
    that needs the judge's answers.
    """
    mine = tuple(own)
    out: dict[str, Strategy] = {}
    for item in _items(text):
        for found in [_quoted(item, generator)] if item.startswith('"') else _named(item, mine):
            out.setdefault(found.name, found)
    if not out:
        raise ConfigError("no attack strategy is named; give names, categories or `all` (robustjudge list attacks)")
    return tuple(out.values())


def _items(text: str) -> list[str]:
    """The list split at commas outside quotes."""
    if text.count('"') % 2:
        raise ConfigError(f"the strategies {text!r} hold a quotation mark that is never closed")
    return [p.strip() for p in re.findall(r'(?:"[^"]*"|[^,"])+', text) if p.strip()]


def _quoted(item: str, generator: bool) -> Strategy:
    found = _QUOTED.fullmatch(item)
    if found is None or not found[1].strip() or found[2] is None:
        raise ConfigError(
            f'a strategy in your own words needs category and severity: write "..."=CATEGORY:SEVERITY, not {item}'
        )
    if not generator:
        raise ConfigError(
            f"the strategy {item} is in your own words, which only a model can follow; give --generator MODEL"
        )
    if found[3] not in SEVERITIES:
        raise UnknownName("severity", found[3], SEVERITIES)
    return Strategy(found[1].strip(), found[2], cast(Severity, found[3]), found[1].strip(), False, False)


def _named(item: str, own: tuple[str, ...]) -> list[Strategy]:
    many = item.strip().lower() == "all"
    names = (*library.expand((ALL,)), *own) if many else library.expand((item,))
    wide = many or len(names) > 1
    out = []
    for name in names:
        attack = library.attack(name)
        if not _by_itself(attack):
            if wide:
                continue
            raise ConfigError(
                f"{name} needs the judge's answers or a model of its own, so it is no variant that can be written beforehand;"
                f" run it: robustjudge run --attack {name}"
            )
        head = name.partition("/")[0]
        words = described().get(name) or described().get(head, "")
        if head in own:
            words = f"{packs.pack(head).name}, for example: {_example(head)}"
        out.append(Strategy(name, attack.category, attack.severity, words, True, head not in own))
    return out


def _example(pack: str) -> str:
    here = packs.pack(pack)
    return here.paraphrases("en", "pointwise")[0]


def _by_itself(attack: Attack) -> bool:
    """Whether an attack is a text that can be written before anything is asked, and no control."""
    control = str(getattr(attack, "control", ""))
    hard = attack.writes or attack.universal or bool(control) or hasattr(attack, "plea")
    return attack.access == Access.NONE and not hard and attack.channel != "history"


def shares(strategies: tuple[Strategy, ...], number: int) -> tuple[tuple[Strategy, int], ...]:
    """``number`` variants of one case spread over the strategies in turn: each with how many it makes (0 ones left out)."""
    if number < 1:
        raise ConfigError(f"the number of attacks is at least 1, not {number}")
    k = len(strategies)
    return tuple((s, n) for i, s in enumerate(strategies) if (n := number // k + (i < number % k)))
