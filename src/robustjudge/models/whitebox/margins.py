"""Verdict labels in torch: their log-probabilities along a trie, the margin, and its gradient by a suffix's embeddings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from robustjudge.models import trie
from robustjudge.models.whitebox.bundles import Ids, Row
from robustjudge.models.whitebox.engine import Engine
from robustjudge.models.whitebox.prefix import tensor
from robustjudge.nouns import LabelCall


@dataclass(frozen=True)
class Question:
    """A prompt with its forced lead (``base``) and what each label adds to it (``tails``)."""

    base: Ids
    tails: tuple[Ids, ...]

    @property
    def length(self) -> int:
        return len(self.base) + max(map(len, self.tails))

    def rows(self) -> dict[Row, tuple[Ids, ...]]:
        """The sequences to run, each with the inner nodes of the trie that its reads answer."""
        nodes = trie.questions(self.tails)
        ends = [n for n in nodes if not any(len(m) > len(n) and m[: len(n)] == n for m in nodes)]
        out: dict[Row, tuple[Ids, ...]] = {}
        done: set[Ids] = set()
        for end in ends:
            path = tuple(n for n in nodes if end[: len(n)] == n and n not in done)
            done.update(path)
            reads = tuple(len(self.base) - 1 + len(n) for n in path)
            out[Row(self.base + end, reads)] = path
        return out


def read(question: Question, found: Mapping[Ids, Any]) -> tuple[float, ...]:
    """Natural-log probability of each label; ``found`` holds the vocabulary's log-probabilities after each node."""
    logprobs = {}
    for node, vector in found.items():
        ids = sorted(trie.wanted(question.tails, node))
        logprobs[node] = dict(zip(ids, vector[ids].tolist(), strict=True))
    return trie.read(question.tails, lambda node: logprobs[node])


def labels(question: Question, found: Mapping[Ids, Any]) -> Any:
    """The same as a tensor that can be differentiated."""
    out = []
    for tail in question.tails:
        total = sum(found[tail[:i]][token] for i, token in enumerate(tail))
        if tail in found:
            longer = torch.stack([found[tail][t] for t in sorted(trie.wanted(question.tails, tail))]).exp().sum()
            total = total + torch.log1p(-longer.clamp(max=1 - trie.FLOOR))
        out.append(total)
    return torch.stack(out)


def margin(asked: LabelCall, logs: Any, target: str) -> Any:
    """The author's margin as a tensor, see :func:`robustjudge.objective.margin`: for ``win`` on a numeric scale the
    log-odds of the expected score, else log P(first label) - log P(others) (alone: log P)."""
    readout = asked.call.readout
    if target == "win" and readout is not None and readout.values:
        value = dict(zip(readout.labels, readout.values, strict=True))
        low, high = min(readout.values), max(readout.values)
        worth = torch.tensor([(value[x] - low) / (high - low) for x in asked.labels], dtype=logs.dtype)
        share = (logs.softmax(0) * worth).sum().clamp(1e-9, 1 - 1e-9)
        return share.log() - (-share).log1p()
    return logs[0] - logs[1:].logsumexp(0) if len(logs) > 1 else logs[0]


def margin_at(
    engine: Engine,
    asked: LabelCall,
    question: Question,
    span: tuple[int, int],
    embedded: Any,
    target: str,
    keep: bool = False,
) -> Any:
    """The margin when the tokens of ``span`` have the embeddings ``embedded`` (n, width).

    With ``keep`` (they are the tokens' own) the keys and values stay at hand for the swaps that follow.
    """
    start, end = span
    prefix = engine.prefix(question.base[:start])
    known = len(prefix)
    table = engine.embeddings
    before = table[tensor(question.base[known:start])] if known < start else None
    found: dict[Ids, Any] = {}
    for row, nodes in question.rows().items():
        parts = [embedded, table[tensor(row.ids[end:])]]
        if before is not None:
            parts.insert(0, before)
        reads = [r - known for r in row.reads]
        logits, layers = engine.forward(torch.cat(parts)[None], prefix, reads, keep=True)
        found.update(zip(nodes, logits[0].log_softmax(-1), strict=True))
        if keep and engine.share:
            layers = tuple((k.detach(), v.detach()) for k, v in layers)
            engine.store.keep(prefix.joined(row.ids[known:], layers))
    return margin(asked, labels(question, found), target)


def slope(
    engine: Engine,
    items: Sequence[tuple[LabelCall, Question, tuple[int, int]]],
    target: str,
    spread: Callable[[int], Sequence[int]],
    length: int,
) -> Any:
    """Gradient (length, width) of the summed margins by the embeddings of a suffix of ``length`` tokens.

    ``spread(n)`` says which of the ``n`` tokens found in a prompt stands for each token of the suffix (they differ only
    where a suffix does not survive its context).
    """
    total = torch.zeros(length, engine.embeddings.shape[1], dtype=engine.embeddings.dtype)
    for asked, question, (start, end) in items:
        with torch.enable_grad():
            embedded = engine.embeddings[tensor(question.base[start:end])].clone().requires_grad_(True)
            value = margin_at(engine, asked, question, (start, end), embedded, target, keep=True)
            (found,) = torch.autograd.grad(value, embedded)
        total += found[list(spread(end - start))]
    return total
