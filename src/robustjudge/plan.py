"""The plan: a lazy, filtered grid of cells, their number, and what each may cost before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from re import fullmatch, sub

from robustjudge.attacks.base import Attack, Target
from robustjudge.door import admitted
from robustjudge.errors import PlanError
from robustjudge.judges import Defense, Guarded, Judge, Prompted, Service, inner, models_of
from robustjudge.nouns import Access, Budget, Case
from robustjudge.prompts.criteria import criteria
from robustjudge.protocols import Appeal, BestOf, Protocol
from robustjudge.spec import digest
from robustjudge.threat import ThreatModel, slug
from robustjudge.trial import Cell

Source = Callable[[], Iterable[Case]]
"""Where cases come from; called anew for every enumeration, so that nothing is kept in memory."""


@dataclass(frozen=True)
class Named:
    """A judge or an attack under the name that reports print."""

    name: str
    thing: object


@dataclass(frozen=True)
class Plan:
    """Cases x judges (x defenses) x protocols x attacks x seeds, in an order that shares prompt prefixes: all cells of
    one (judge, protocol, case) stand together, and the clean baseline is sent once for all of them.

    Universal attacks are fitted on the cases whose cluster is in ``train`` and deployed on all others; ``fitted`` holds
    what fitting gave, by :func:`fit_key`.  ``judges`` and ``defenses`` map names to values; the defense ``none`` stands
    for the bare judge.  ``keep`` filters cells.  ``evaluators`` maps a task kind to a quality
    evaluator (missing: none).
    """

    cases: Source
    judges: tuple[tuple[str, Judge], ...]
    protocols: tuple[Protocol, ...]
    attacks: tuple[Attack, ...]
    defenses: tuple[tuple[str, Defense | None], ...] = (("none", None),)
    threats: tuple[ThreatModel, ...] = (ThreatModel(),)
    seeds: tuple[int, ...] = (0,)
    evaluators: tuple[tuple[str, str], ...] = ()
    cleans: int = 2
    finals: int = 1
    keep: Callable[[Cell], bool] | None = None
    train: frozenset[str] = frozenset()
    fitted: tuple[tuple[str, Attack], ...] = field(default=(), repr=False)

    def cells(self) -> Iterator[Cell]:
        """Every cell, lazily; enumeration keeps nothing."""
        evaluators = dict(self.evaluators)
        for name, judge in self.judges:
            for shield, defense in self.defenses:
                guarded = judge if defense is None else Guarded(judge, defense)
                for protocol in self.protocols:
                    bound: dict[str, tuple[Attack, ...]] = {}  # an author knows the criteria of the task at hand
                    for case in map(admitted, self.cases()):
                        if case.kind not in bound:
                            bound[case.kind] = bind(self.attacks, target_of(judge, protocol, case.kind))
                        yield from self._block(case, name, shield, guarded, protocol, bound[case.kind], evaluators)

    def _block(
        self,
        case: Case,
        name: str,
        shield: str,
        judge: Judge,
        protocol: Protocol,
        attacks: Sequence[Attack],
        evaluators: dict[str, str],
    ) -> Iterator[Cell]:
        evaluator = evaluators.get(case.kind, evaluators.get("", ""))
        fitted = dict(self.fitted)
        for attack in attacks:
            if isinstance(protocol, Appeal) != hasattr(attack, "plea"):
                continue  # an appeal is made of pleas, and pleas answer a verdict
            applies = getattr(attack, "applies", None)
            if applies is not None and not applies(case):
                continue
            of = getattr(attack, "of", None)  # what a control is made of
            universal = bool(getattr(attack, "universal", False) or getattr(of, "universal", False))
            if universal and (case.cluster or case.id) in self.train:
                continue
            narrowed = getattr(attack, "narrowed", None)
            if narrowed is not None:
                attack = narrowed(case)
            plain = attack
            threats = self.threats if universal or attack.access > Access.NONE else self.threats[:1]
            for threat in threats:
                if universal:
                    source = plain if of is None else of
                    found = fitted.get(fit_key(name, shield, protocol, source, self._told(threat)), source)
                    attack = found if of is None else replace(plain, of=found)  # type: ignore[type-var]
                settled = universal and attack.access == Access.NONE  # what was fitted is deployed as it was scored
                for seed in self.seeds:
                    drawn = attack if seed == 0 or settled else reseeded(attack, seed)
                    if seed != self.seeds[0] and drawn is attack and not _random(attack, judge, protocol):
                        continue  # nothing on our side is drawn anew: it would be the same measurement again
                    cell = Cell(
                        case,
                        drawn,
                        judge,
                        protocol,
                        seed,
                        threat,
                        evaluator,
                        self.cleans,
                        self.finals,
                        name,
                        shield,
                        attack.name,
                    )
                    if self.keep is None or self.keep(cell):
                        yield cell

    def _told(self, threat: ThreatModel) -> str:
        """What a fitted attack is told apart by where there are several threat models."""
        return threat.label if len(self.threats) > 1 else ""

    def fits(self) -> Iterator[tuple[str, Cell]]:
        """For each universal attack not yet fitted, under each threat model: its key, and a cell whose case is the first
        training case."""
        universal = [a for a in self.attacks if getattr(a, "universal", False)]
        if not universal:
            return
        first = next((c for c in self.cases() if (c.cluster or c.id) in self.train), None)
        if first is None:
            names = ", ".join(a.name for a in universal)
            raise PlanError(
                f"{names} must be fitted on training cases, and the plan has none; set train_share in the configuration"
            )
        done = dict(self.fitted)
        for name, judge in self.judges:
            for shield, defense in self.defenses:
                guarded = judge if defense is None else Guarded(judge, defense)
                for protocol in self.protocols:
                    if isinstance(protocol, Appeal):
                        continue  # which is made of pleas
                    for attack, threat in product(universal, self.threats):
                        (bound,) = bind((attack,), target_of(judge, protocol, first.kind))
                        key = fit_key(name, shield, protocol, bound, self._told(threat))
                        if key not in done:
                            yield key, Cell(first, bound, guarded, protocol, 0, threat)

    def check(self, access: Callable[[str], Access]) -> None:
        """Refuse what cannot be done, before any call; ``access`` tells the most that a model gives."""
        unnamed = [replace(t, name="") for t in self.threats]
        for what, names in (
            ("judge", [name for name, _ in self.judges]),
            ("defense", [name for name, _ in self.defenses]),
            ("attack", [a.name for a in self.attacks]),
            ("threat model", [self.threats[unnamed.index(t)].label for t in unnamed]),
        ):
            twice = sorted({n for n in names if names.count(n) > 1})
            if twice:
                raise PlanError(
                    f"{what} {', '.join(twice)} stands twice in the plan, so its rows could not be told apart"
                )
        for name, judge in self.judges:
            for protocol in self.protocols:
                if protocol.kind in ("pairwise", "best_of") and not all(s.winner for s in services(judge)):
                    raise PlanError(
                        f"judge {name} is a service that scores one response and says of no pair which is better, so it cannot"
                        f" be asked {protocol.kind}; leave this protocol out, or set winner to where the chosen slot stands"
                    )
            for shield, defense in self.defenses:
                refuses = getattr(defense, "refuses", None)
                why = refuses(judge) if refuses is not None else ""
                if why:
                    raise PlanError(
                        f"defense {shield} cannot guard judge {name}: {why}; give this judge a file of its own"
                    )
            models = models_of(judge)
            for p in prompted(judge):
                if p.expect and access(p.model) < Access.ODDS:
                    raise PlanError(
                        f"judge {name} reads label probabilities (expect), and {p.model} gives none; choose a model that"
                        " does (llamacpp/...), or leave expect out"
                    )
            least = min((access(m) for m in models), default=Access.SCORE)
            for attack in self.attacks:
                for threat in self.threats:
                    given = least
                    if threat.answers == "surrogate" and threat.surrogate is not None:
                        given = min((access(m) for m in models_of(threat.surrogate)), default=Access.SCORE)
                    _affordable(attack, threat)
                    if attack.access > given:
                        raise PlanError(
                            f"attack {attack.name} needs {attack.access.name} access, and judge {name}"
                            f" ({', '.join(models) or 'a service'}) gives {given.name}; choose a model that gives it"
                            " (llamacpp/... gives ODDS, hf/... gives GRADIENT) or a surrogate"
                        )
        if not (self.judges and self.attacks and self.protocols):
            raise PlanError("a plan needs at least one judge, one attack and one protocol")
        next(self.fits(), None)  # refuses a universal attack without training cases


def _affordable(attack: Attack, threat: ThreatModel) -> None:
    """Refuse a budget that is below one step of the attack."""
    least = getattr(attack, "least", Budget)()
    for kind in ("queries", "losses", "gradients"):
        needed, given = getattr(least, kind), getattr(threat.budget, kind)
        if needed is not None and given is not None and needed > given:
            raise PlanError(
                f"attack {attack.name} needs {needed:,} {kind} for one step, and the budget of threat model"
                f" {threat.label} holds {given:,}; raise it, or take a smaller setting of the attack (--quick)"
            )


def bind(attacks: Iterable[Attack], target: Target) -> tuple[Attack, ...]:
    """The attacks filled in for a judge's form."""
    return tuple(a.bound(target) if hasattr(a, "bound") else a for a in attacks)


def artefact_name(key: str) -> str:
    """The file of an artefact: its key where that is a plain short name, else a hash; no name of a user becomes a path."""
    flat = key.replace("/", ".")
    if len(flat) <= 120 and fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.@:+ -]*", flat) and ".." not in flat:
        return f"{flat}.json"
    return f"{sub(r'[^A-Za-z0-9]+', '-', flat)[:40].strip('-')}-{digest(key)[:16]}.json"


def fit_key(judge: str, defense: str, protocol: Protocol, attack: Attack, threat: str = "") -> str:
    """The name under which a fitted universal attack is kept; ``threat`` where a plan has several threat models."""
    return "/".join([judge, defense, protocol.kind, attack.name, *([slug(threat)] if threat else [])])


def reseeded(attack: Attack, seed: int) -> Attack:
    """The attack with its own randomness drawn anew, if it has any."""
    if "seed" in getattr(type(attack), "__dataclass_fields__", {}):
        return replace(attack, seed=seed)  # type: ignore[type-var]
    return attack


def _random(attack: Attack, judge: Judge, protocol: Protocol) -> bool:
    """Whether a new seed draws something besides the attack: orders of K candidates, the judge's sampling, or the
    randomness of its defenses (a new seed is a new final replica)."""
    if isinstance(protocol, BestOf) or shielded_at_random(judge):
        return True
    return any(p.sampling.temperature > 0 for p in prompted(judge)) or bool(getattr(attack, "control", ""))


def shielded_at_random(judge: Judge) -> bool:
    """Whether a defense around or inside ``judge`` draws anything: it has a ``seed``, or a member that has one."""
    if isinstance(judge, Guarded):
        members = (judge.defense, *getattr(judge.defense, "members", ()))
        if any("seed" in getattr(type(d), "__dataclass_fields__", {}) for d in members):
            return True
    return any(shielded_at_random(part) for part in inner(judge))


def prompted(judge: Judge) -> tuple[Prompted, ...]:
    """Every prompted judge inside ``judge``."""
    if isinstance(judge, Prompted):
        return (judge,)
    return tuple(p for part in inner(judge) for p in prompted(part))


def services(judge: Judge) -> tuple[Service, ...]:
    """Every service inside ``judge``."""
    return (judge,) if isinstance(judge, Service) else tuple(s for part in inner(judge) for s in services(part))


def target_of(judge: Judge, protocol: Protocol, kind: str = "open") -> Target:
    """What an author can know of the judge's form under a protocol, for a kind of task."""
    found = prompted(judge)
    if not found:
        services = [judge] if isinstance(judge, Service) else []
        low, high = (services[0].low, services[0].high) if services else (1.0, 10.0)
        top = f"{high:g}"
        return Target(
            protocol="pairwise"
            if protocol.kind == "pairwise"
            else "best_of"
            if protocol.kind == "best_of"
            else "pointwise",
            low=f"{low:g}",
            high=top,
            top_label=top,
            verdict_line=f"score: {top}",
        )
    form = found[0].template.form({"pointwise": 1, "pairwise": 2}.get(protocol.kind, 3))
    scale = form.scale
    labels = scale.verdict_labels()
    if protocol.kind != "pointwise":
        own = "the response that carries this note"
        return Target(
            protocol="pairwise" if protocol.kind == "pairwise" else "best_of",
            top_label=own,
            criteria=criteria(kind),
            verdict_line=f"{scale.lead}{own}",
            tie_line=f"{scale.lead}{scale.tie}" if scale.tie else "",
        )
    top = scale.positive if scale.labels else (labels[-1] if labels else f"{scale.high:g}")
    return Target(
        protocol="binary" if scale.labels else "pointwise",
        low=labels[0] if labels and not scale.labels else f"{scale.low or 0:g}",
        high=top,
        top_label=top,
        criteria=criteria(kind),
        verdict_line=f"{scale.lead}{top}",
    )
