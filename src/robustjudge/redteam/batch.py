"""The review file: what waits for a person, what may be sent, and what is sent of it as attacks of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from robustjudge.attacks.approved import Approved
from robustjudge.attacks.base import Attack, Channel
from robustjudge.attacks.controls import Neutral
from robustjudge.errors import ConfigError, Inconclusive, UnknownName
from robustjudge.nouns import Severity
from robustjudge.variants import Variant, append_variants, read_variants

MODES = ("required", "high", "sample:N", "none")


@dataclass(frozen=True)
class Review:
    """Which inputs a person must see before they are sent: all (``required``), those of severity high and critical, a
    ``sample`` of so many (the rest waits on it and goes out only if none of the sample was rejected), or none."""

    mode: str
    size: int = 0

    @classmethod
    def of(cls, text: str) -> Review:
        name, _, size = text.partition(":")
        if name == "sample" and size.isdigit() and int(size) > 0:
            return cls("sample", int(size))
        if text not in ("required", "high", "none"):
            raise UnknownName("review mode", text, MODES)
        return cls(text)

    @property
    def name(self) -> str:
        return f"sample:{self.size}" if self.mode == "sample" else self.mode

    def applied(self, variants: Sequence[Variant]) -> list[Variant]:
        """The variants with the status that this rule gives those that nobody has decided on."""
        open_ones = sorted((v for v in variants if v.status == "pending"), key=lambda v: v.id)
        drawn = {v.id for v in open_ones[: self.size]}
        out = []
        for v in variants:
            free = self.mode == "none" or (self.mode == "high" and v.severity in ("low", "medium"))
            free = free or (self.mode == "sample" and v.id not in drawn)
            if v.status == "pending" and free:
                v = replace(v, status="approved", reason=f"by rule: review {self.name}")
            out.append(replace(v, review=self.name))
        return out


def write(path: Path, variants: Iterable[Variant]) -> tuple[int, int]:
    """Add variants to a review file; one that is there already keeps its place and its decision.  Returns how many are
    new and how many were there."""
    held = read_variants(path) if path.exists() else {}
    given = list(variants)
    fresh = [v for v in given if v.id not in held]
    if fresh:
        append_variants(path, fresh)
    return len(fresh), len(given) - len(fresh)


@dataclass(frozen=True)
class Ready:
    """What a review file releases: variants to send, how many wait for a person, how many were refused, and why some
    approved ones are held."""

    send: tuple[Variant, ...]
    waiting: int
    refused: int
    held: int = 0

    @property
    def words(self) -> str:
        more = f", {self.held} held until the sample is decided without a rejection" if self.held else ""
        return f"{len(self.send)} approved, {self.waiting} wait for review, {self.refused} refused{more}"


def ready(variants: Iterable[Variant]) -> Ready:
    """Sort the variants of a file: only what was approved is sent, and the rest of a sample only with the sample."""
    every = list(variants)
    waiting = [v for v in every if v.status == "pending"]
    refused = [v for v in every if v.status == "rejected"]
    # a person's rejection spoils a sample; what the content check refused was never in it
    spoilt = {v.review for v in (*waiting, *refused) if v.review.startswith("sample:") and (v.when or v in waiting)}
    send, held = [], 0
    for v in every:
        if v.status != "approved":
            continue
        if v.review.startswith("sample:") and not v.who and v.review in spoilt:
            held += 1
        else:
            send.append(v)
    return Ready(tuple(send), len(waiting), len(refused), held)


def attacks_of(path: Path) -> tuple[Attack, ...]:
    """The approved variants of a review file as attacks, one per strategy and number, each with its neutral control.

    Raises :class:`~robustjudge.errors.Inconclusive` (exit 3) when nothing may be sent yet.
    """
    if not path.is_file():
        raise ConfigError(f"{path}: no such review file; `robustjudge redteam` writes one")
    found = ready(read_variants(path).values())
    if not found.send:
        raise Inconclusive(
            f"{path}: {found.words}, so nothing may be sent; `robustjudge review --inputs {path}` decides"
        )
    groups: dict[tuple[str, str, str, str], list[Variant]] = {}
    taken: set[tuple[str, str]] = set()
    for v in sorted(found.send, key=lambda v: (v.attack, v.source, v.seed, v.case, v.id)):
        name, number = _name(v), v.seed
        while (label := f"{name}#{number}" if number else name, v.case) in taken:
            number += 1
        taken.add((label, v.case))
        groups.setdefault((label, v.category, v.severity, v.channel or "rewrite"), []).append(v)
    out: list[Attack] = []
    labels = [g[0] for g in groups]
    for (label, category, severity, channel), group in groups.items():
        unique = label if labels.count(label) == 1 else f"{label} ({channel}, {category}, {severity})"
        attack: Any = Approved(
            unique,
            tuple((v.case, v.text) for v in group),
            cast(Channel, channel),
            category,
            cast(Severity, severity),
            tuple((v.case, v.expected) for v in group if v.expected is not None),
        )
        out += [attack, cast(Attack, Neutral(attack))]
    return tuple(out)


def _name(v: Variant) -> str:
    how = "" if v.source in ("", "template") else f", {v.source}"
    return f"redteam({(v.attack or 'manual')[:60]}{how})"
