"""What the pages ask of stored runs: which there are, which rows match a filter, what other thresholds would say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from robustjudge.engine.folder import TABLE, Folder
from robustjudge.errors import ConfigError, RobustJudgeError
from robustjudge.gate.check import check
from robustjudge.gate.policy import Policy, parse_policy
from robustjudge.gate.waivers import Waiver, parse_waiver
from robustjudge.measures.grid import panels
from robustjudge.measures.views import Settings
from robustjudge.reports.model import NEEDED
from robustjudge.reports.texts import visible
from robustjudge.table import Table, open_run
from robustjudge.view.pages import Missing

FILTERS = ("judge", "defense", "protocol", "task", "attack", "category", "severity", "attacked_status")
ORDERS = {"cell": "cell", "swing": "coalesce(attacked_unit - clean_unit, -2) DESC, cell"}
SIZE = 50
_ROW = (
    *("cell", "judge", "defense", "protocol", "task", "case_id", "attack", "severity", "attack_status", "clean_status"),
    *("clean_score", "attacked_status", "attacked_score", "clean_outcomes", "attacked_outcomes"),
)


@dataclass(frozen=True)
class Listed:
    """One run folder as the list shows it; ``fault`` says why it cannot be read."""

    name: str
    state: str
    started: str
    trials: int
    judges: str
    fault: str = ""


class Runs:
    """The run folders under ``root``, or ``root`` itself where it is one."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def paths(self) -> dict[str, Path]:
        """Run folders by name, the newest first; addresses name these and nothing else of the disk."""
        if (self.root / TABLE).is_file():
            return {self.root.resolve().name: self.root.resolve()}
        if not self.root.is_dir():
            return {}
        found = [p for p in self.root.iterdir() if not p.is_symlink() and (p / TABLE).is_file()]
        return {p.name: p for p in sorted(found, key=lambda p: p.name, reverse=True)}

    def path(self, name: str) -> Path:
        """The folder of a run; :class:`Missing` for anything that is not in the list."""
        try:
            return self.paths()[name]
        except KeyError:
            raise Missing(f"{name}: no such run under {self.root}") from None

    def listed(self) -> list[Listed]:
        """Every run with its state and size; one that cannot be read says why and hides no other."""
        return [_listed(name, path) for name, path in self.paths().items()]


def _listed(name: str, path: Path) -> Listed:
    try:
        manifest = Folder(path).manifest()
        db = open_run(path / TABLE)
        try:
            (n,) = db.execute("SELECT count(*) FROM trials").fetchone()
        finally:
            db.close()
    except RobustJudgeError as fault:
        return Listed(name, "unreadable", "", 0, "", str(fault))
    judges = ", ".join(sorted(map(str, manifest.get("judges", {}))))
    return Listed(name, str(manifest.get("state", "unknown")), str(manifest.get("started", "")), n, judges)


def mark(path: Path) -> tuple[int, ...]:
    """Changes whenever the run file does."""
    found = [f.stat() for f in (path / TABLE, path / f"{TABLE}-wal") if f.is_file()]
    return tuple([x for s in found for x in (s.st_mtime_ns, s.st_size)])


def choices(path: Path) -> dict[str, tuple[str, ...]]:
    """The values that each filter can take."""
    return _choices(path, mark(path))


@lru_cache(maxsize=8)
def _choices(path: Path, mark: tuple[int, ...]) -> dict[str, tuple[str, ...]]:
    db = open_run(path / TABLE)
    try:
        return {
            c: tuple([r[0] for r in db.execute(f'SELECT DISTINCT "{c}" FROM trials ORDER BY 1') if r[0]])
            for c in FILTERS
        }
    finally:
        db.close()


def meant(path: Path, query: dict[str, str]) -> dict[str, str]:
    """The query with each filter's value as the run holds it: a page shows hidden characters of a name as escapes, and
    that is what comes back when the name is chosen."""
    held = choices(path)
    shown = {c: {visible(x): x for x in held[c]} for c in FILTERS if query.get(c)}
    return {**query, **{c: names.get(query[c], query[c]) for c, names in shown.items() if query[c] not in held[c]}}


def rows(path: Path, chosen: Mapping[str, str], order: str, number: int) -> tuple[list[dict[str, Any]], int]:
    """Page ``number`` (from 0) of the trials that match, and how many match."""
    wanted = {c: chosen[c] for c in FILTERS if chosen.get(c)}
    where = " AND ".join([f'"{c}" = ?' for c in wanted]) or "1"
    names = ", ".join([f'"{c}"' for c in _ROW])
    by = ORDERS.get(order, "cell")
    db = open_run(path / TABLE)
    try:
        (n,) = db.execute(f"SELECT count(*) FROM trials WHERE {where}", tuple(wanted.values())).fetchone()
        sql = f"SELECT {names} FROM trials WHERE {where} ORDER BY {by} LIMIT ? OFFSET ?"
        found = db.execute(sql, (*wanted.values(), SIZE, number * SIZE)).fetchall()
    finally:
        db.close()
    return [dict(zip(_ROW, r, strict=True)) for r in found], n


# --------------------------------------------------------------------------- deciding again


@lru_cache(maxsize=4)
def _table(path: Path, mark: tuple[int, ...]) -> Table:
    return Table.load(path / TABLE, NEEDED)


NUMBERS: Mapping[str, tuple[float, float, float]] = {
    "tau": (1.0, 0.0, 1e6),
    "pass_mark": (0.5, 0.0, 1.0),
    "threshold": (0.25, 0.0, 1.0),
    "max_rate": (0.05, 0.0, 1.0),
    "minimum_n": (60, 1, 1e9),
    "confidence": (0.95, 0.5, 0.9999),
}
"""What can be turned, with its usual value and its ends."""


@dataclass(frozen=True)
class Dials:
    """Thresholds and gate policy as a visitor has set them.

    ``policy_text`` (YAML, as in a policy file) stands for the gate's own numbers where it says anything; ``waivers_text``
    is YAML as in a waiver file, ``baseline`` the name of another run.
    """

    judge: str
    defense: str
    rule: str
    values: Mapping[str, float]
    policy_text: str = ""
    waivers_text: str = ""
    baseline: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str], judges: tuple[str, ...]) -> Dials:
        """The dials of an address; raises :class:`ConfigError` for what is no number or out of its range."""
        values = {}
        for name, (usual, low, high) in NUMBERS.items():
            given = query.get(name, "") or str(usual)
            try:
                value = float(given)
            except ValueError:
                raise ConfigError(f"{name} is a number, not {given!r}") from None
            if not low <= value <= high:
                raise ConfigError(f"{name} lies between {low:g} and {high:g}, not at {value:g}")
            values[name] = value
        rule = query.get("rule", "strict")
        judge = query.get("judge") or (judges[0] if judges else "")
        texts = (query.get("policy", ""), query.get("waivers", ""), query.get("baseline", ""))
        return cls(judge, query.get("defense") or "none", rule, values, *texts)

    def policy(self) -> Policy:
        """The gate policy of these dials; raises :class:`ConfigError` for one that is wrong or cannot hold."""
        if self.policy_text.strip():
            given = _yaml("policy", self.policy_text)
            if not isinstance(given, Mapping):
                raise ConfigError("policy: expected keys and values, as in a policy file")
            return replace(parse_policy(given), defense=self.defense)
        v = self.values
        rate = v["max_rate"] if self.rule == "rate" else None
        return Policy(
            name="dials",
            rule=self.rule,
            threshold=v["threshold"],
            max_rate=rate,
            minimum_n=int(v["minimum_n"]),
            confidence=v["confidence"],
            defense=self.defense,
        )


def declared(path: Path) -> str:
    """The text of the policy file that the run's configuration names; empty where there is none to read."""
    config = dict(Folder(path).manifest().get("config", {}))
    if not config.get("policy"):
        return ""
    try:
        return (Path(str(config.get("base", "."))) / str(config["policy"])).read_text("utf-8")[:LONGEST]
    except (OSError, UnicodeDecodeError):
        return ""


LONGEST = 20_000
"""Characters of a policy file that fit into the address of a page."""


def _yaml(what: str, text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as fault:
        raise ConfigError(f"{what}: not valid YAML: {fault}") from None


def _waivers(text: str) -> tuple[Waiver, ...]:
    """The accepted risks of a text in the form of a waiver file."""
    found = _yaml("waivers", text) if text.strip() else []
    items = found.get("waivers") if isinstance(found, Mapping) else found
    if not isinstance(items, list):
        raise ConfigError("waivers: expected a list, as in a waiver file")
    return tuple([parse_waiver(item, f"waiver {i}") for i, item in enumerate(items, 1)])


def again(path: Path, dials: Dials, baseline: Path | None = None) -> tuple[Any, list[Any]]:
    """The gate's decision and the panels of one judge under other thresholds, policies, waivers and another baseline,
    from the rows alone."""
    waivers = _waivers(dials.waivers_text)
    _, decision = check(path, dials.policy(), judge=dials.judge, baseline=baseline, waivers=waivers)
    table = _table(path, mark(path)).only(judge=dials.judge, defense=dials.defense)
    settings = Settings(tau=dials.values["tau"], pass_mark=dials.values["pass_mark"])
    return decision, list(panels(table, settings))
