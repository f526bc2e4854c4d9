"""Write docs/reference from the code: command line, configuration, attacks, templates, evaluators, public API.

``python scripts/reference.py`` writes the files; ``--check`` only tells which of them are out of date (exit 1).
"""

from __future__ import annotations

import enum
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- Written by scripts/reference.py; change the code, then run it. -->\n"


VARIABLES = [
    ("`ROBUSTJUDGE_HOME`", "the cache folder of models"),
    ("`ROBUSTJUDGE_WHEELS`", "a folder in which model wheels are looked for before anything is downloaded"),
    ("`ROBUSTJUDGE_DEBUG`", "show the traceback of an error"),
    ("`CI`", "no animation"),
]


def cell(text: str) -> str:
    """One cell of a Markdown table."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join(lines + [f"| {' | '.join(map(cell, row))} |" for row in rows]) + "\n"


def cli() -> str:
    from robustjudge.cli.app import COMMANDS, command, there

    out = [NOTE, "# Command line\n"]
    out.append("`python -m robustjudge` is the same program. Every option can be set by `ROBUSTJUDGE_<OPTION>`")
    out.append("(`ROBUSTJUDGE_<SUBCOMMAND>_<OPTION>` for commands that have some); a flag wins over the environment,")
    out.append("the environment over the file, the file over the default. A file `.env` is read for what is not set.\n")
    out.append(table(("variable", "what"), VARIABLES))
    codes = ("0 pass", "1 gate failed, a miss or an error found", "2 usage or configuration", "3 inconclusive")
    out.append(f"Exit codes: {'; '.join((*codes, '4 incomplete (provider or infrastructure)', '130 interrupted'))}.\n")
    for name in there():
        found = command(name)
        out.append(f"## {name}\n\n{COMMANDS[name][1].capitalize()}.\n")
        subs = getattr(found, "commands", None)
        for label, one in ({f"{name} {n}": c for n, c in subs.items()} if subs else {name: found}).items():
            out.append(f"### `robustjudge {label}`\n" if subs else "")
            out.append(options(one))
    return "\n".join(out)


def options(command: Any) -> str:
    """A command's help and its parameters."""
    words = inspect.cleandoc(command.help or "")
    rows = []
    for p in command.params:
        if p.name == "help":
            continue
        names = ", ".join(f"`{o}`" for o in (*p.opts, *p.secondary_opts)) if p.opts else p.name
        if p.param_type_name == "argument":
            names = f"`{(p.metavar or p.name).upper()}`"
        default = "" if p.default in (None, "", False) or callable(p.default) else f"`{p.default}`"
        rows.append((names, getattr(p, "help", "") or "", default))
    return words + "\n" + ("\n" + table(("parameter", "what", "default"), rows) if rows else "")


def config() -> str:
    from robustjudge.config.schema import Config

    schema = Config.model_json_schema()
    out = [NOTE, "# robustjudge.yaml\n"]
    out.append("The same keys may stand in `pyproject.toml` under `[tool.robustjudge]`. Unknown keys are errors.")
    out.append("The JSON Schema is [config.schema.json](config.schema.json).\n")
    for name, part in [("the file", schema), *sorted(schema["$defs"].items())]:
        out.append(f"## {name}\n\n{part.get('description', '')}\n")
        rows = [(f"`{k}`", shape(v), v.get("description", ""), shown(v)) for k, v in part["properties"].items()]
        out.append(table(("key", "type", "what", "default"), rows))
    return "\n".join(out)


def shape(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return field["$ref"].rpartition("/")[2]
    if "anyOf" in field:
        return " or ".join(shape(f) for f in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{v}`" for v in field["enum"])
    kind = str(field.get("type", "any"))
    if kind == "array" and "items" in field:
        return f"list of {shape(field['items'])}"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"mapping to {shape(field['additionalProperties'])}"
    return kind


def shown(field: dict[str, Any]) -> str:
    default = field.get("default")
    return "" if default in (None, "", {}, []) else f"`{json.dumps(default)}`"


def config_schema() -> str:
    from robustjudge.config.schema import Config

    return (
        json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}, indent=1)
        + "\n"
    )


def attacks() -> str:
    from robustjudge.attacks import library

    told = (
        "`NAME/VARIANT` chooses a variant where an attack has some, as in `H2/html`; capitals stand for something else, as in"
        " `E8/O5` or `random_suffix/O5`. Text attacks also take a place (`H1/prefix`; append, prefix, middle, replace,"
        " history) and `number` or `wordless` (does the wording name the top number?).\n"
    )
    out = [NOTE, "# Attacks\n", told]
    rows = []
    for name in library.attack_names():
        a: Any = library.attack(name)
        what = about_of(a) or idea(type(a))
        more = ", ".join(library.variants(name))
        rows.append((f"`{name}`", a.family, getattr(a, "category", ""), a.severity, a.access.name, what, more))
    out.append(table(("name", "family", "category", "severity", "access", "what", "variants"), rows))
    out.append("## Suites and categories\n")
    out.append(table(("name", "attacks"), [(f"`{n}`", ", ".join(m)) for n, m in library.attack_suites().items()]))
    return "\n".join(out)


SHARED = ("controls", "plain", "probes", "ensembles", "base")
"""Files that hold several things; elsewhere the first paragraph of the file says what its one thing is for."""


def idea(cls: type) -> str:
    """What a class is for, in one paragraph."""
    shared = cls.__module__.rpartition(".")[2] in SHARED
    return inspect.cleandoc((cls if shared else sys.modules[cls.__module__]).__doc__ or "").partition("\n\n")[0]


def about_of(attack: Any) -> str:
    """What a data file says of its attack."""
    from robustjudge.attacks import packs

    if attack.name.partition("/")[0] not in packs.pack_ids():
        return ""
    pack = packs.pack(attack.name.partition("/")[0])
    return f"{pack.name} ({pack.placement}); {pack.source}"


def templates() -> str:
    from robustjudge.prompts import library

    rows = []
    for name in library.template_names():
        t = library.template(name)
        rows.append((f"`{name}`", ", ".join(f.protocol for f in t.forms), t.lineage, t.note))
    return f"{NOTE}\n# Judge prompt templates\n\n{table(('name', 'protocols', 'follows', 'note'), rows)}"


def defenses() -> str:
    from dataclasses import fields

    from robustjudge.defenses.library import ALIASES, BUILT

    out = [NOTE, "# Defenses\n", "`stack: [NAME, NAME]` combines several; the first sees the text as submitted.\n"]
    rows = []
    for name, cls in BUILT.items():
        numbers = ", ".join(a for a, kind in ALIASES.items() if kind == name)
        settings = ", ".join(f"`{f.name}`" for f in fields(cls))
        rows.append((f"`{name}`", numbers, idea(cls), settings))
    out.append(table(("name", "also", "what", "settings"), rows))
    return "\n".join(out)


def evaluators() -> str:
    from robustjudge.quality.base import evaluator, evaluator_names

    out = [
        NOTE,
        "# Quality evaluators\n",
        "All rate in [0, 1], higher is better; unknown is `None` with a reason, never 0.\n",
    ]
    rows = []
    for name in evaluator_names():
        doc = inspect.getdoc(type(evaluator(name))) or ""
        rows.append((f"`{name}`", doc.partition("\n\n")[0]))
    out.append(table(("name", "what"), rows))
    return "\n".join(out)


def api() -> str:
    import robustjudge as rj

    out = [NOTE, "# Public API\n", "`import robustjudge as rj`; each name is imported when it is first used.\n"]
    for name in rj.__all__:
        thing = getattr(rj, name)
        out.append(f"## {name}\n\n```python\n{signature(name, thing)}\n```\n\n{inspect.getdoc(thing) or ''}\n")
    return "\n".join(out)


def signature(name: str, thing: Any) -> str:
    """How a public name is called; the members of an enumeration."""
    if isinstance(thing, enum.EnumType):
        return "\n".join(f"rj.{name}.{m.name}" for m in thing)
    found = inspect.signature(thing)
    parts, starred = [], False
    for p in found.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts, starred = [*parts, "*"], True
        kind = str(p.annotation) if p.annotation is not p.empty else ""
        text = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name + (f": {kind}" if kind else "")
        if p.default is not p.empty:
            text += f" = {default(p.default)}" if kind else f"={default(p.default)}"
        parts.append(text)
    returned = found.return_annotation
    tail = f" -> {returned}" if returned not in (found.empty, None, "None") and not inspect.isclass(thing) else ""
    line = f"rj.{name}({', '.join(parts)}){tail}"
    return line if len(line) <= 100 else f"rj.{name}(\n" + "".join(f"    {p},\n" for p in parts) + f"){tail}"


def default(value: Any) -> str:
    """A default as text that is the same on every machine."""
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    text = repr(value)
    return "..." if text.startswith("<") else text


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli,
    "config.md": config,
    "config.schema.json": config_schema,
    "attacks.md": attacks,
    "defenses.md": defenses,
    "templates.md": templates,
    "evaluators.md": evaluators,
    "api.md": api,
}


def stale() -> list[str]:
    """The pages that differ from what the code says."""
    return [n for n, make in PAGES.items() if not (FOLDER / n).is_file() or (FOLDER / n).read_text("utf-8") != make()]


def main() -> None:
    if "--check" in sys.argv:
        odd = stale()
        print(f"out of date: {', '.join(odd)}" if odd else "docs/reference is up to date")
        sys.exit(bool(odd))
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        (FOLDER / name).write_text(make(), "utf-8")


if __name__ == "__main__":
    main()
