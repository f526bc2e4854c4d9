"""Attacks by name: ids (``H1`` ... ``E11``), variants (``H2/html``), plain names, the playbook's phrases, suites."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import metadata
from inspect import signature

from robustjudge.attacks import packs
from robustjudge.attacks.base import Attack, Plugin, Target
from robustjudge.attacks.controls import HonestRewrite, Identity, Neutral, RandomSuffix, Shuffled
from robustjudge.attacks.grammar import Composed, screen
from robustjudge.attacks.plain import Empty, LongSuffix, OneWord, RepeatedList, Repetition, grid
from robustjudge.attacks.plea import Plea
from robustjudge.attacks.probes import ControlTokens, PlaceholderInjection, VerdictSpoof
from robustjudge.attacks.replay import Replay as Replay
from robustjudge.attacks.score_vector import ScoreVector
from robustjudge.attacks.text import TextAttack
from robustjudge.errors import ConfigError, UnknownName

Maker = Callable[[Target, int, bool], Attack]
"""``(target, seed, quick) -> Attack``; third parties offer one under the entry-point group ``robustjudge.attacks``."""

HEURISTIC = ("H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8")
STYLE = ("flattery", "authority", "jargon", "emotion", "fake_citation", "expert_claim")
LENGTH = ("one_word", "padded", "repeated_list", "E10", "H7")
FORMAT = (
    "H2", "md_hidden", "json_injection", "delimiter", "forged_rubric", "role_spoof", "invisible", "fence_trick",
    "thinking_trick", "H4", "E6", "E7", "E11",
)  # fmt: skip

_ALIASES = {
    "naive": "H1", "naive request": "H1", "escape characters": "H2", "escape": "H2", "context ignoring": "H3",
    "ignore": "H3", "fake completion": "H4", "fake reasoning": "H5", "combined": "H6", "empty": "H7",
    "empty answer": "H7", "repetition": "H8", "excessive flattery": "flattery",
    "authoritative tone": "authority", "authoritative tone injection": "authority", "academic jargon": "jargon",
    "emotional appeal": "emotion", "fake citations": "fake_citation", "claimed expert approval": "expert_claim",
    "one-word minimal answer": "one_word", "one word": "one_word", "minimal answer": "one_word",
    "verbose padding": "padded", "padded verbose answer": "padded", "padding": "padded",
    "repeated list": "repeated_list", "long suffix": "E10", "markdown formatting tricks": "md_hidden",
    "hidden instructions in markdown": "md_hidden", "hidden instructions in comments": "H2/html",
    "hidden instructions in markdown or comments": "md_hidden", "hidden comment": "H2/html",
    "delimiter confusion": "delimiter", "forged rubric": "forged_rubric", "forged verdict block": "forged_rubric",
    "forged rubric or verdict block": "forged_rubric", "invisible characters": "invisible/zero_width",
    "look-alike characters": "invisible/lookalike", "invisible and look-alike characters": "invisible",
    "fence tricks": "fence_trick", "thinking-tag tricks": "thinking_trick", "master keys": "E5",
    "fence and thinking-tag tricks": "thinking_trick",
    "placeholder injection": "E6", "verdict spoofing": "E7", "fixed history": "E9", "multi-turn": "E9",
    "control-token injection": "E11", "null control": "identity", "shuffled": "shuffled_payload",
}  # fmt: skip


def _text(pack: str, target: Target, seed: int, quick: bool, variant: str = "", placement: str = "") -> Attack:
    number, place = None, placement
    kept = []
    for word in variant.split("/") if variant else ():
        if word in ("number", "wordless"):
            number = word == "number"
        elif word in ("append", "prefix", "middle", "replace", "history"):
            place = word
        else:
            kept.append(word)
    if pack == "E5" and kept and kept[0].isdigit():
        return TextAttack("E5", paraphrase=int(kept[0]), target=target)
    return TextAttack(pack, seed=seed, variant="/".join(kept), placement=place, number=number, target=target)


def _text_maker(pack: str, placement: str = "") -> Callable[..., Attack]:
    return partial(_text, pack, placement=placement)


def _long(target: Target, seed: int, quick: bool, variant: str = "") -> Attack:
    length, kind, core, *_ = (*variant.split("/"), "", "", "")
    if core not in ("", "search"):
        raise UnknownName("core of E10", core, ("search",))
    found = (ScoreVector.quick if quick else ScoreVector.reference)(seed=seed, target=target) if core else None
    return LongSuffix(int(length) if length else grid(quick)[-1], int(kind or 0), found)


def _control(cls: type[Neutral] | type[Shuffled] | type[RandomSuffix]) -> Callable[..., Attack]:
    def make(target: Target, seed: int, quick: bool, variant: str = "") -> Attack:
        of = attack(variant or "H1", target, seed, quick=quick)
        if not isinstance(of, Plugin):
            raise ConfigError(f"{of.name} is not a built-in attack; build its control with {cls.__name__}(of=...)")
        return cls(of) if cls is Neutral else cls(of, seed)

    return make


_PLAIN: Mapping[str, Callable[..., Attack]] = {
    "H7": lambda target, seed, quick, variant="": Empty(variant or "empty"),
    "H8": lambda target, seed, quick, variant="": (
        Repetition(int(variant)) if variant else Repetition.quick() if quick else Repetition.reference()
    ),
    "one_word": lambda target, seed, quick: OneWord(),
    "repeated_list": lambda target, seed, quick: RepeatedList(),
    "E6": lambda target, seed, quick, variant="": PlaceholderInjection(only=int(variant) if variant else None),
    "E7": lambda target, seed, quick, variant="": VerdictSpoof(variant or "all", seed=seed, target=target),
    "E10": _long,
    "score_vector": lambda target, seed, quick: (ScoreVector.quick if quick else ScoreVector.reference)(
        seed=seed, target=target
    ),
    "E11": lambda target, seed, quick, variant="": ControlTokens(variant or "all", target=target),
    "composed": lambda target, seed, quick, variant="rationale+request+ignore+dictate": Composed(
        tuple(f for f in variant.split("+") if f != "nothing"), seed, target
    ),
    "plea": lambda target, seed, quick, variant="": Plea(variant == "same", variant == "written", seed, target),
    "identity": lambda target, seed, quick: Identity(),
    "neutral": _control(Neutral),
    "shuffled_payload": _control(Shuffled),
    "random_suffix": _control(RandomSuffix),
    "honest_rewrite": lambda target, seed, quick: HonestRewrite(7 if quick else 41, seed),
}


@cache
def _makers() -> Mapping[str, Callable[..., Attack]]:
    """Every maker by canonical name; a name that two packages offer is an error naming both."""
    from robustjudge.attacks.searches import SEARCHES

    made: dict[str, Callable[..., Attack]] = {**_PLAIN, **SEARCHES}
    made |= {i: _text_maker(i) for i in packs.pack_ids() if packs.pack(i).family != "part"}
    for point in metadata.entry_points(group="robustjudge.attacks"):
        if point.name in made:
            raise ConfigError(f"attack {point.name!r} of {point.value} is taken; rename it")
        made[point.name] = point.load()
    return made


def canonical(name: str) -> str:
    """The canonical name of an attack, variant included.  Raises :class:`~robustjudge.errors.UnknownName`."""
    head, slash, variant = name.strip().partition("/")
    known = _makers()
    added = {i for i in packs.pack_ids() if packs.pack(i).family != "part"}
    by_fold = {k.lower(): k for k in (*known, *added)}
    plain = re.sub(r"[_\s]+", " ", head.strip().lower())
    found = by_fold.get(head.strip().lower()) or by_fold.get(plain.replace(" ", "_"))
    alias = None if found else {**_ALIASES, **_search_aliases()}.get(plain)
    if found is None and alias is None:
        raise UnknownName("attack", name, (*attack_names(), *_ALIASES, *_search_aliases()))
    return (found or alias or "") + slash + variant


@cache
def _search_aliases() -> Mapping[str, str]:
    from robustjudge.attacks.searches import ALIASES

    return ALIASES


def attack(name: str, target: Target | None = None, seed: int = 0, *, quick: bool = False) -> Attack:
    """The attack called ``name``, for a judge of the form ``target`` (default: pointwise 1-10), with its random seed.

    ``quick`` takes the settings for a small local model instead of the published ones.
    """
    head, _, variant = canonical(name).partition("/")
    maker = _makers().get(head) or _text_maker(head)
    given = (target or Target(), seed, quick)
    if not variant:
        return maker(*given)
    if "variant" not in signature(maker).parameters:
        raise ConfigError(f"{head} has no variants, so {name!r} names nothing")
    try:
        return maker(*given, variant=variant)
    except ValueError:
        raise ConfigError(f"{name!r}: the variant of {head} must be a number") from None


_VARIANTS: Mapping[str, tuple[str, ...]] = {
    "H7": Empty.VARIANTS, "H8": ("TIMES",), "E5": ("0 to 9",), "E6": ("NUMBER",), "E7": VerdictSpoof.FORMS,
    "E10": ("LENGTH", "LENGTH/FILLER", "LENGTH/FILLER/search"), "E11": ControlTokens.CHATS,
    "O1": ("rules",), "O2": ("rules",), "O3": ("rules",), "Resubmit": ("rules", "same"), "E3": ("transfer",),
    "E4": ("ATTACK",), "E8": ("SEARCH",), "plea": ("same", "written"), "composed": ("FACTOR+FACTOR",),
    "neutral": ("ATTACK",), "shuffled_payload": ("ATTACK",), "random_suffix": ("ATTACK",),
}  # fmt: skip


def variants(name: str) -> tuple[str, ...]:
    """What may stand behind ``NAME/``: words as they are, in capitals what they stand for.  Text attacks take a place
    (``append``, ``prefix``, ``middle``, ``replace``, ``history``) and ``number`` or ``wordless`` as well."""
    head = canonical(name).partition("/")[0]
    maker = _makers().get(head) or _text_maker(head)
    if head in _VARIANTS or "variant" not in signature(maker).parameters:
        return _VARIANTS.get(head, ())
    return tuple(packs.pack(head).variants) if head in packs.pack_ids() else ()


def sweep(name: str, target: Target | None = None) -> tuple[TextAttack, ...]:
    """Every wording of a text attack at every place around the response: the sweep that no single wording replaces."""
    here = packs.pack(canonical(name).partition("/")[0])
    given = target or Target()
    count = len(here.paraphrases("en", given.protocol))
    places = ("append", "prefix", "middle") if here.placement in ("append", "prefix", "middle") else ("",)
    return tuple(TextAttack(here.id, i, placement=p, target=given) for i in range(count) for p in places)


def attack_names() -> tuple[str, ...]:
    """Canonical names of every attack and control, sorted."""
    added = {i for i in packs.pack_ids() if packs.pack(i).family != "part"}
    return tuple(sorted({*_makers(), *added}))


@cache
def _suites() -> Mapping[str, tuple[str, ...]]:
    from robustjudge.attacks.searches import EXTENSIONS, OPTIMISATION

    return {
        "heuristic": HEURISTIC,
        "optimisation": OPTIMISATION,
        "paper": (*HEURISTIC, *OPTIMISATION),
        "extension": ("E5", "E6", "E7", "E9", "E10", "E11", *EXTENSIONS),
        "style_manipulation": STYLE,
        "length_exploitation": LENGTH,
        "format_hacking": FORMAT,
        "playbook": tuple(dict.fromkeys((*STYLE, *LENGTH, *FORMAT))),
        "grammar": tuple(run.name for run in screen()),
        "probes": ("E6", "E7", "E11"),
        "controls": ("identity", "neutral", "shuffled_payload", "random_suffix"),
    }


def attack_suites() -> Mapping[str, tuple[str, ...]]:
    """Every suite and category by name, with its attacks."""
    return dict(_suites())


def suite(name: str) -> tuple[str, ...]:
    """The attack names of a suite, category or family; ``all`` is every attack but the controls."""
    key = name.strip().lower().replace(" ", "_").replace("optimization", "optimisation")
    if key == "all":
        controls = {*_suites()["controls"], "honest_rewrite"}
        return tuple(n for n in attack_names() if n not in controls)
    found = _suites().get(key)
    if found is None:
        own = tuple(n for n in attack_names() if key in _groups(n))
        if not own:
            raise UnknownName("attack suite", name, (*_suites(), "all"))
        return own
    return found


def _groups(name: str) -> tuple[str, str]:
    """The family and the category of an attack, as ``list attacks`` shows them."""
    one = attack(name)
    return str(getattr(one, "family", "")), str(getattr(one, "category", ""))


def expand(names: tuple[str, ...]) -> tuple[str, ...]:
    """Canonical names for a list that may hold names, aliases, suites, categories and ``all``; order kept, no doubles.

    An id or alias wins over a suite of the same name.
    """
    out: list[str] = []
    for name in names:
        try:
            out.append(canonical(name))
        except UnknownName as unknown:
            try:
                out.extend(suite(name))
            except UnknownName:
                raise unknown from None
    return tuple(dict.fromkeys(out))
