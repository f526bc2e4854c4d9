"""``robustjudge list KIND``: what is there to use, and which package it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from robustjudge.cli.terminal import visible

app = typer.Typer(add_completion=False)

OURS = "robustjudge"
Entry = tuple[str, str, str]
"""Name, what it is, and the package it comes from."""


@app.command("list")
def show(
    kind: Annotated[
        str, typer.Argument(help="attacks, defenses, judges, datasets, evaluators, templates, suites, models")
    ],
    name: Annotated[str, typer.Argument(help="one of them: a template or suite is printed as its file")] = "",
    names: Annotated[bool, typer.Option("--names", help="names only, one a line")] = False,
) -> None:
    """List what can be named in a configuration, with its origin."""
    from robustjudge.errors import UnknownName

    if kind not in KINDS:
        raise UnknownName("kind of thing", kind, tuple(KINDS))
    entries = list(KINDS[kind]())
    if name:
        known = tuple(n for n, _, _ in entries)
        if name not in known:
            raise UnknownName(kind.removesuffix("s"), name, known)
        whole = _whole(kind, name)
        if whole:
            typer.echo(whole.rstrip("\n"))
            return
        entries = [e for e in entries if e[0] == name]
    if names:
        typer.echo("\n".join(name for name, _, _ in entries))
        return
    width = max((len(name) for name, _, _ in entries), default=0)
    for name, what, origin in entries:
        typer.echo(visible(f"{name:<{width}}  {what}  [{origin}]"))


def _whole(kind: str, name: str) -> str:
    """The data file of a template or suite as it is shipped; empty for what has none."""
    from robustjudge.prompts.library import source
    from robustjudge.suite import suite_names, suite_source

    if kind == "templates":
        return source(name)
    return suite_source(name) if kind == "suites" and name in suite_names() else ""


def attacks() -> Iterator[Entry]:
    from robustjudge.attacks import library

    for name in library.attack_names():
        made = library.attack(name)
        control = getattr(made, "control", "")
        words = f"{made.family}, {made.severity}, access {made.access.name}" + (
            f", control: {control}" if control else ""
        )
        more = library.variants(name)
        words += f"; {name}/ {', '.join(more)}" if more else ""
        yield name, words, _origin(made)


def defenses() -> Iterator[Entry]:
    from importlib import import_module

    from robustjudge.defenses.library import ALIASES, known

    for name, cls in sorted(known().items()):
        number = next((alias for alias, kind in ALIASES.items() if kind == name), "")
        about = _first(import_module(cls.__module__).__doc__)
        words = f"{number}: {about}" if number and not about.startswith(number) else about
        yield name, words, cls.__module__.partition(".")[0]


def judges() -> Iterator[Entry]:
    from robustjudge.models.scripted.named import ZOO

    for name, cls in sorted(ZOO.items()):
        yield f"scripted/{name}", _first(cls.__doc__), OURS


def datasets() -> Iterator[Entry]:
    from robustjudge.datasets.base import TASKS
    from robustjudge.datasets.registry import names

    for name in names():
        if name == "builtin":
            yield name, "our own cases: 8 tasks x 12, in English, Chinese and German", OURS
        elif name in TASKS:
            yield name, f"{TASKS[name]} of the RobustJudge paper, from its published files (root)", OURS
        else:
            yield name, "from its published files (root)" if name in TASKS.values() else "plugin", OURS


def evaluators() -> Iterator[Entry]:
    from robustjudge.errors import ConfigError
    from robustjudge.quality.base import evaluator, evaluator_names

    for name in evaluator_names():
        try:
            made = evaluator(name)
            made.ready()
            state = "ready"
        except ConfigError as fault:
            state = str(fault).splitlines()[0]
            yield name, state, OURS
            continue
        yield name, state, _origin(made)


def templates() -> Iterator[Entry]:
    from robustjudge.prompts.library import template, template_names

    for name in template_names():
        made = template(name)
        forms = ", ".join(f.protocol for f in made.forms)
        yield name, f"{forms}" + (f"; {made.note}" if made.note else ""), OURS


def suites() -> Iterator[Entry]:
    frozen = _optional("robustjudge.suite")
    for name in frozen.suite_names() if frozen else ():
        yield name, f"frozen plan ({frozen.suite_hash(name)}): {frozen.about(name)}", OURS
    from robustjudge.attacks.library import attack_suites

    for name, members in attack_suites().items():
        yield name, f"attacks: {', '.join(members)}", OURS


def models() -> Iterator[Entry]:
    from robustjudge.models.pull import MODELS, is_pulled

    for name, packed in MODELS.items():
        yield (
            name,
            f"{packed.what}; {'pulled' if is_pulled(name) else 'not pulled'}",
            f"{packed.project} {packed.version}",
        )
    for name, what in (
        ("openai/NAME", "OpenAI or any endpoint of that form (base_url)"),
        ("anthropic/NAME", "Anthropic messages"),
        ("http(s)://HOST/v1#NAME", "an endpoint by its address"),
        ("llamacpp/smollm2", "the embedded model; llamacpp//path.gguf for another file"),
        ("hf//path", "a local transformers model, with gradients"),
        ("scripted/NAME", "planted judges (`robustjudge list judges`)"),
        ("recorded//file.jsonl", "replies recorded earlier"),
    ):
        yield name, what, OURS


KINDS: dict[str, Callable[[], Iterator[Entry]]] = {
    "attacks": attacks,
    "defenses": defenses,
    "judges": judges,
    "datasets": datasets,
    "evaluators": evaluators,
    "templates": templates,
    "suites": suites,
    "models": models,
}


def _optional(module: str) -> Any:
    """A part of the package that may not be installed, or ``None``."""
    from importlib import import_module

    try:
        return import_module(module)
    except ModuleNotFoundError:
        return None


def _origin(thing: object) -> str:
    return type(thing).__module__.partition(".")[0]


def _first(doc: str | None) -> str:
    """The first sentence of a docstring."""
    text = " ".join((doc or "").split())
    return text.partition(". ")[0].rstrip(".")
