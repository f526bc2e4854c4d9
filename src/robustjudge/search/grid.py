"""The typed grid: for every component of a prompt in parts, what it may say; each choice is checked before any call."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from itertools import product
from math import prod
from random import Random
from typing import Any, Literal

from robustjudge.attacks.base import tokenish
from robustjudge.errors import TemplateError, UnknownName
from robustjudge.nouns import Slate
from robustjudge.prompts.library import PROTOCOLS, from_data
from robustjudge.prompts.lint import lint_form
from robustjudge.prompts.render import render
from robustjudge.prompts.slots import UNTRUSTED, parse
from robustjudge.prompts.template import CODES, Template
from robustjudge.search.book import Config
from robustjudge.search.toml import to_toml

LAYOUT = "layout"
"""The component that places task and responses; it has alternatives only where the user's own file gives some."""

ALL_UP_TO = 10_000
"""Grids up to this size are raced whole; larger ones are sampled."""

Size = Literal["quick", "reference"]


@dataclass(frozen=True)
class Option:
    """One thing that a component may say: a text for ``all`` protocols or one each.  ``own``: it words the verdict form
    itself, so the scale must not add its line."""

    name: str
    texts: tuple[tuple[str, str], ...] = ()
    own: bool = False

    def text(self, protocol: str) -> str:
        """What it says under a protocol."""
        texts = dict(self.texts)
        return texts.get(protocol, texts.get("all", "")).strip()


@dataclass(frozen=True)
class Component:
    """A component of the prompt (:data:`~robustjudge.prompts.template.CODES` or ``layout``) and its options; the first
    is the start prompt's own."""

    code: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Grid:
    """Every prompt that can be put together from a start prompt in parts and the options of its components."""

    base: Mapping[str, Any] = field(repr=False)
    components: tuple[Component, ...]
    where: str = "prompt"

    @classmethod
    def of(cls, text: str, where: str = "prompt", size: Size = "quick", more: str = "") -> Grid:
        """The grid around the prompt file ``text`` (TOML in parts) with the shipped options, as many as ``size`` allows.

        ``more`` is a file of the user's own options in the same form (``[[EC]]``, ``[[layout]]``, ...), which are all
        taken.  Raises :class:`TemplateError` for a prompt that is not in parts.
        """
        base = _parsed(text, where)
        parts = base.get("parts")
        if not parts:
            raise TemplateError(
                f"{where}: the optimiser needs a prompt in parts; write it as TOML with [parts.EI] and so on"
                " (`robustjudge list templates vanilla` prints a shipped one to start from)"
            )
        return cls._around(base, where, size, more)

    @classmethod
    def whole(cls, text: str, where: str, protocol: str, size: Size = "quick", more: str = "") -> Grid:
        """The grid around a prompt that is one block of ``text`` with our slots: it stays as it is, and the options are
        put before it as a system message.  Its verdict form is its own, so that component has no options.

        Raises :class:`TemplateError` for a prompt that does not show every text once, asks for no verdict line, or names
        another scale than 1 to 10.
        """
        base = {
            "name": where.rpartition("/")[2].partition(".")[0] or "prompt",
            "protocols": [protocol],
            "fence": "plain",
            "append_verdict": False,
            "parts": {},
            LAYOUT: {protocol: text},
        }
        form = getattr(from_data(base, where), protocol)
        for finding in lint_form(form):
            if finding.rule in ("no-verdict-form", "other-scale", "unreachable-end"):
                raise TemplateError(
                    f"{where}: {finding.message}; a prompt in one block is read by its last line, VERDICT: and a letter or a"
                    " number from 1 to 10. For another form or scale write it in parts"
                    " (`robustjudge list templates vanilla` prints one to start from)"
                )
        return cls._around(base, where, size, more, fixed=("RF",))

    @classmethod
    def _around(cls, base: Mapping[str, Any], where: str, size: Size, more: str, fixed: tuple[str, ...] = ()) -> Grid:
        """The components of ``base`` with their options; those ``fixed`` keep what they say."""
        parts = base["parts"]
        from_data(base, where)
        shipped = tomllib.loads(files("robustjudge.prompts").joinpath("options.toml").read_text("utf-8"))
        sizes = shipped.pop("sizes")
        if size not in sizes:
            raise UnknownName("grid size", size, tuple(sizes))
        own = _parsed(more, "options") if more else {}
        for code in own:
            if code not in (*CODES, LAYOUT):
                raise UnknownName("component of options", code, (*CODES, LAYOUT))
        components = []
        for code in CODES:
            if code in fixed and code in own:
                raise TemplateError(f"{where}: {code} is the prompt's own; leave its options out")
            start = _option("start", parts.get(code, {}), base.get("append_verdict", True) is False and code == "RF")
            found = _distinct(start, [_option_of(x) for x in (() if code in fixed else shipped.get(code, ()))])
            found = found[: sizes[size][code]]
            extra = _distinct(start, [_option_of(x) for x in own.get(code, ())])[1:]
            components.append(Component(code, (*found, *extra)))
        if LAYOUT in own:
            start = _option("start", base.get(LAYOUT, {}))
            components.append(Component(LAYOUT, _distinct(start, [_option_of(x) for x in own[LAYOUT]])))
        return cls(base, tuple(components), where)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Options per component."""
        return tuple(len(c.options) for c in self.components)

    @property
    def size(self) -> int:
        """How many prompts there are."""
        return prod(self.sizes)

    @property
    def start(self) -> Config:
        """The start prompt."""
        return (0,) * len(self.components)

    def configs(self, most: int = ALL_UP_TO, seed: int = 0) -> Iterator[Config]:
        """The start, then every prompt where there are at most ``most``; else the start's neighbours and a seeded sample."""
        yield self.start
        if self.size <= most:
            yield from (c for c in product(*(range(n) for n in self.sizes)) if c != self.start)
            return
        seen = {self.start}
        rng = Random(f"grid {seed}")
        near = list(self.neighbours(self.start))
        while len(seen) < most:
            config = near.pop(0) if near else tuple(rng.randrange(n) for n in self.sizes)
            if config not in seen:
                seen.add(config)
                yield config

    def neighbours(self, config: Config) -> Iterator[Config]:
        """The prompts that differ in one component."""
        for i, n in enumerate(self.sizes):
            yield from ((*config[:i], o, *config[i + 1 :]) for o in range(n) if o != config[i])

    def names(self, config: Config) -> dict[str, str]:
        """The chosen option of every component, by name."""
        return {c.code: c.options[i].name for c, i in zip(self.components, config, strict=True)}

    def data(self, config: Config) -> dict[str, Any]:
        """The prompt as the content of a file in parts."""
        chosen = {c.code: c.options[i] for c, i in zip(self.components, config, strict=True)}
        order = _order(tuple(self.base.get("order", self.base["parts"])))
        out = {k: v for k, v in self.base.items() if k not in ("parts", "order", LAYOUT)}
        if config != self.start:
            out["name"] = f"{self.base.get('name', 'prompt')}-optimised"
        if chosen["RF"].own:
            out["append_verdict"] = False
        elif "append_verdict" in self.base and config[CODES.index("RF")]:
            out.pop("append_verdict")
        kept = [code for code in order if any(text.strip() for _, text in chosen[code].texts)]
        out["order"] = kept
        layout = dict(chosen[LAYOUT].texts) if LAYOUT in chosen else self.base.get(LAYOUT)
        out["parts"] = {code: dict(chosen[code].texts) for code in kept}
        return {**out, **({LAYOUT: layout} if layout else {})}

    def template(self, config: Config) -> Template:
        """The prompt as a template."""
        return from_data(self.data(config), self.where)

    def toml(self, config: Config) -> str:
        """The prompt as a file in parts."""
        return to_toml(self.data(config))

    def tokens(self, config: Config, protocol: str) -> int:
        """The length of the prompt's own text, by a tokenizer-free count."""
        form = getattr(self.template(config), protocol)
        return sum(tokenish(m.text) for m in form.messages)

    def check(self, protocol: str) -> None:
        """Refuse, before any call, an option with which a prompt would not show every text exactly once or would ask for
        no readable verdict.  Raises :class:`TemplateError` that names component and option."""
        for i, component in enumerate(self.components):
            for o, option in enumerate(component.options):
                try:
                    self.legal((*self.start[:i], o, *self.start[i + 1 :]), protocol)
                except TemplateError as fault:
                    raise TemplateError(f"{self.where}: {component.code}, option {option.name!r}: {fault}") from None
        if self._shows_data():  # then two options that are legal alone may show a text twice together
            for config in product(*(range(n) for n in self.sizes)):
                self.legal(config, protocol, deep=False)

    def _shows_data(self) -> bool:
        """Whether a component other than the layout places a task or response."""
        texts = [t for c in self.components if c.code != LAYOUT for o in c.options for _, t in o.texts]
        return any(
            s.slot in UNTRUSTED for t in texts for s in parse(t, self.where, syntax=str(self.base.get("syntax", "")))
        )

    def legal(self, config: Config, protocol: str, deep: bool = True) -> None:
        """Raise :class:`TemplateError` unless the prompt renders the task and every candidate exactly once.

        ``deep`` also asks that it says in which form the verdict is wanted.
        """
        form = getattr(self.template(config), protocol)
        if form is None:
            raise TemplateError(f"the prompt has no {protocol} form")
        names = _SENTINELS[: {"pointwise": 2, "pairwise": 3}.get(protocol, 5)]
        slate = Slate(names[0], names[1:], tuple(range(len(names) - 1)))
        whole = "\n".join(m.text for m in render(form, slate))
        for name, text in zip(("the task", *"ABCD"), names):
            if whole.count(text) != 1:
                raise TemplateError(f"{name} stands in the rendered prompt {whole.count(text)} times, not once")
        if deep:
            worst = next((f for f in lint_form(form) if f.rule == "no-verdict-form" or f.severity == "error"), None)
            if worst is not None and worst.rule != "boundary-collision":
                raise TemplateError(worst.message)


_SENTINELS = ("task-7f3a91", "first-0c52d4", "second-b8e617", "third-49da05", "fourth-e1736b")


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise TemplateError(f"{where}: {fault}") from None


def _option_of(given: Mapping[str, Any]) -> Option:
    known = ("name", "own", "all", *PROTOCOLS)
    for key in given:
        if key not in known:
            raise UnknownName("key of an option", key, known)
    texts = {k: v for k, v in given.items() if k not in ("name", "own")}
    return _option(str(given.get("name", "unnamed")), texts, bool(given.get("own", False)))


def _option(name: str, texts: Any, own: bool = False) -> Option:
    given = texts if isinstance(texts, Mapping) else {"all": str(texts)}
    return Option(name, tuple((k, str(v)) for k, v in given.items()), own)


def _distinct(start: Option, others: list[Option]) -> tuple[Option, ...]:
    """The start's option and those that do not say the same under every protocol."""
    seen = {_said(start)}
    out = [start]
    for option in others:
        if _said(option) not in seen:
            seen.add(_said(option))
            out.append(option)
    return tuple(out)


def _said(option: Option) -> tuple[str, ...]:
    return tuple(option.text(p) for p in PROTOCOLS)


def _order(given: tuple[str, ...]) -> tuple[str, ...]:
    """The start's order of components, with the missing ones after the nearest one that goes before them."""
    out = [code for code in given if code in CODES]
    for i, code in enumerate(CODES):
        if code not in out:
            before = [out.index(c) for c in CODES[:i] if c in out]
            out.insert(max(before) + 1 if before else 0, code)
    return tuple(out)
