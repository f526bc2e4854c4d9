"""One loaded model with its tokenizer: answers asks in terms of text.  Used from its owner's thread only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from jinja2 import TemplateError

from robustjudge import door
from robustjudge.asks import Gradient
from robustjudge.models import held
from robustjudge.models.whitebox.bundles import Ids, Row
from robustjudge.models.whitebox.engine import Engine
from robustjudge.models.whitebox.margins import Question, read, slope
from robustjudge.models.whitebox.tokens import Encoded, Found, Prompt, Tokens
from robustjudge.nouns import Call, Completion, LabelCall, Message, Readout, Surprisal, TokenOdds, Usage, Weights
from robustjudge.spec import digest

UNSEGMENTED = "segmentation_unsupported"
"""A forced segmentation that this tokenizer cannot give: it puts something between pieces that are encoded apart."""


class Desk:
    """``context``: the limit in tokens, or ``None`` for a model that states none."""

    def __init__(self, tokens: Tokens, engine: Engine, context: int | None) -> None:
        self.tokens, self.engine, self.context = tokens, engine, context
        self._sound: dict[tuple[str, str, tuple[str, ...]], bool] = {}
        limits = engine.model.generation_config.eos_token_id if engine.model.generation_config else None
        ends = limits if isinstance(limits, list) else [limits]
        self.ends = frozenset(i for i in (*ends, tokens._tokenizer.eos_token_id) if i is not None)

    @cached_property
    def legal(self) -> tuple[Any, Any]:
        """For every id: may it begin a suffix, may it stand in one."""
        first, inside = self.tokens.legal()
        return torch.tensor(first), torch.tensor(inside)

    def fits(self, n: int) -> bool:
        return self.context is None or n <= self.context

    # ------------------------------------------------------------------ label probabilities

    def weigh(self, calls: Sequence[LabelCall]) -> list[Weights]:
        """Each call's label log-probabilities, or the reason why there are none."""
        out: list[Weights] = []
        rows: list[Row] = []
        asked: list[tuple[Question, list[tuple[int, tuple[Ids, ...]]]] | None] = []
        for item in self.questions(calls):
            if isinstance(item, str):
                out.append(Weights(status="unparsed" if item == "illegal_suffix" else "error", reason=item))
                asked.append(None)
                continue
            question = item[0]
            place = []
            for row, nodes in question.rows().items():
                place.append((len(rows), nodes))
                rows.append(row)
            asked.append((question, place))
            out.append(Weights())
        found = self.engine.scan(rows)
        for i, entry in enumerate(asked):
            if entry is not None:
                question, place = entry
                vectors = {node: found[at][j] for at, nodes in place for j, node in enumerate(nodes)}
                logs = read(question, vectors)
                out[i] = Weights(logs, (False,) * len(logs))
        return out

    def questions(self, calls: Sequence[LabelCall], near: bool = False) -> list[tuple[Question, Found | None] | str]:
        """Per call its encoded prompt and where its suffix lies, or the reason why it cannot be asked.

        The end of a prompt, from its last control token on, is the same for all and encoded once; that this changes
        nothing is checked on the first prompt of each kind.  With ``near`` a suffix that does not survive its context
        is placed where its text stands.
        """
        prompts: list[Prompt | None] = []
        for call in calls:
            try:
                prompts.append(self.tokens.chat(call.call))
            except TemplateError:
                prompts.append(None)
        cuts = [self.tokens.cut(p.text) if p is not None else -1 for p in prompts]
        heads = dict.fromkeys(p.head(c) for p, c in zip(prompts, cuts, strict=True) if p is not None and c > 0)
        encoded = dict(zip(heads, self.tokens.encode(list(heads)), strict=True))
        sound = self._sound
        out: list[tuple[Question, Found | None] | str] = []
        for call, prompt, c in zip(calls, prompts, cuts, strict=True):
            if prompt is None:
                out.append("chat_template_refused")
                continue
            kind = (prompt.text[c:] if c > 0 else "", call.lead, call.labels)
            head = encoded.get(prompt.head(c)) if c > 0 else None
            if head is not None and kind not in sound:
                (plain,) = self.tokens.encode([Prompt(prompt.text[:c])])
                sound[kind] = self._glued(plain, kind) == self.tokens.verdicts(prompt.text, call.lead, call.labels)
            if prompt.borders and not (head is not None and sound[kind] and self.tokens.segments):
                out.append(UNSEGMENTED)
                continue
            if head is not None and sound[kind]:
                base, tails = self._glued(head, kind)
            else:
                base, tails = self.tokens.verdicts(prompt.text, call.lead, call.labels)
                (head,) = self.tokens.encode([prompt])
            question = Question(base, tails)
            if not self.fits(question.length):
                out.append("context_overflow")
                continue
            found = self.tokens.locate(call, prompt.text, head, call.suffix) if call.suffix else None
            if call.suffix and found is None and near:
                found = self.tokens.near(call, prompt.text, head, call.suffix)
            out.append("illegal_suffix" if call.suffix and found is None else (question, found))
        return out

    def _glued(self, head: Encoded, kind: tuple[str, str, tuple[str, ...]]) -> tuple[Ids, tuple[Ids, ...]]:
        base, tails = self.tokens.verdicts(*kind)
        return (*head.ids, *base), tails

    # ------------------------------------------------------------------ gradients

    def gradient(self, ask: Gradient) -> tuple[Ids, ...]:
        """The best swaps of ``ask.suffix``, summed over its calls; none where no prompt can show it (it is over the
        context limit, or a defense rewrote the text)."""
        calls = [LabelCall(c.call, c.labels, c.lead, ask.suffix) for c in ask.calls]
        items = []
        for call, found in zip(calls, self.questions(calls, near=True), strict=True):
            if not isinstance(found, str) and found[1] is not None:
                items.append((call, found[0], found[1]))
        if not items:
            return tuple(() for _ in ask.suffix)
        n = len(ask.suffix)
        grad = slope(self.engine, items, ask.target, lambda m: [min(i * m // n, m - 1) for i in range(n)], n)
        first, inside = self.legal
        gains = grad @ self.engine.embeddings.T
        allowed = torch.stack([first] + [inside] * (n - 1))
        gains = gains[:, : allowed.shape[1]].masked_fill(~allowed[:, : gains.shape[1]], float("-inf"))
        best = gains.topk(min(ask.k, gains.shape[1]), dim=1)
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return tuple(tuple(i for i, gain in zip(ids, row, strict=True) if gain > float("-inf")) for ids, row in rows)

    # ------------------------------------------------------------------ next tokens

    def sample(self, prefixes: Sequence[tuple[Message, ...]], n: int, seed: int) -> tuple[Ids, ...]:
        """``n`` next tokens per chat by the Gumbel trick; after a space only tokens that follow one."""
        first, inside = self.legal
        texts, allowed, rows = [], [], []
        for messages in prefixes:
            text = self.tokens.prompt(messages)
            bare = text.rstrip(" ")
            texts.append(text)
            allowed.append(first if len(bare) < len(text) else inside)
            ids = self.tokens.ids(bare)
            if not self.fits(len(ids) + 1):
                ids = ids[-(self.context or 0) + 1 :]
            rows.append(Row(ids, (len(ids) - 1,)))
        out = []
        for text, mask, found in zip(texts, allowed, self.engine.scan(rows), strict=True):
            generator = torch.Generator().manual_seed(int(digest(text, str(seed))[:15], 16))
            logs = found[0][: len(mask)].double()
            noise = -torch.log(-torch.log(torch.rand(len(logs), generator=generator, dtype=torch.float64) + 1e-300))
            scores = (logs + noise).masked_fill(~mask[: len(logs)], float("-inf"))
            out.append(tuple(scores.topk(min(n, int(mask.sum()))).indices.tolist()))
        return tuple(out)

    def surprise(self, texts: Sequence[str], context: str) -> list[Surprisal]:
        """One pass per text; the first token of a text without context follows the model's start token."""
        before = self.tokens.plain(door.safe(context)) if context else ()
        if not before and self.tokens.start is not None:
            before = (self.tokens.start,)
        rows, out, asked = [], [], []
        for text in texts:
            encoded = self.tokens.plain_encoding(door.safe(text))
            ids = tuple(encoded.ids)
            if not self.fits(len(before) + len(ids)):
                out.append(Surprisal(status="error", reason="context_overflow"))
                continue
            known = before or ids[:1]  # a model without a start token cannot tell how likely the first token is
            told = ids if before else ids[1:]
            ends = tuple(b for _, b in encoded.offsets)
            out.append(Surprisal(ends=ends[len(ids) - len(told) :]))
            if told:
                reads = tuple(range(len(known) - 1, len(known) + len(told) - 1))
                rows.append(Row((*known, *told), reads))
                asked.append((len(out) - 1, told))
        for (i, told), found in zip(asked, self.engine.scan(rows), strict=True):
            picked = found.gather(1, torch.tensor(told)[:, None])[:, 0]
            out[i] = Surprisal(tuple(picked.tolist()), ends=out[i].ends)
        return out

    # ------------------------------------------------------------------ replies

    def hold(self, call: Call, line: Readout, name: str) -> Completion:
        """The verdict line with the label that its probability chooses."""
        (weights,) = self.weigh([LabelCall(call, line.labels, line.lead)])
        if weights.status != "ok":
            return Completion(status="error", reason=weights.reason, model=name)
        text = self.tokens.chat(call).text
        reply = held.reply(call, line, weights.logprobs, text, name)
        usage = Usage(len(self.tokens.ids(text)), len(self.tokens.plain(reply.text)))
        return replace(reply, usage=usage, notes=self.escaped(call))

    def escaped(self, call: Call) -> tuple[str, ...]:
        """The note that control tokens were made plain text, where there were any."""
        found = any(c in door.safe(m.text) for m in call.messages for c in self.tokens.control)
        return ("control_tokens_escaped",) if found else ()

    def complete(self, call: Call, name: str) -> Completion:
        """Generate one reply."""
        s = call.sampling
        try:
            prompt = self.tokens.chat(call)
        except TemplateError as fault:
            return Completion(status="error", reason="chat_template_refused", notes=(str(fault)[:200],), model=name)
        if prompt.borders and not self.tokens.segments:
            return Completion(status="error", reason=UNSEGMENTED, model=name)
        (encoded,) = self.tokens.encode([prompt])
        ids = encoded.ids
        if not self.fits(len(ids) + s.max_tokens):
            why = f"context overflow: {len(ids)} prompt tokens and {s.max_tokens} for the reply exceed {self.context}"
            return Completion(status="error", reason="context_overflow", notes=(why,), model=name)
        generator = torch.Generator().manual_seed(int(digest(prompt.text, str(s.seed), call.replica)[:15], 16))
        reply: list[int] = []
        told: list[TokenOdds] = []
        ended = False

        def pick(logits: Any) -> int:
            logs = logits.double().log_softmax(0)
            token = int(logs.argmax()) if s.temperature <= 0 else drawn(logs / s.temperature, s.top_p, generator)
            if s.top_logprobs and token not in self.ends:
                best = logs.topk(min(s.top_logprobs, len(logs)))
                pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
                top = tuple((self.piece(i), p) for i, p in pairs)
                told.append(TokenOdds(self.piece(token), float(logs[token]), top))
            return token

        def more(token: int) -> bool:
            nonlocal ended
            if token in self.ends:
                ended = True
                return False
            reply.append(token)
            ended = any(x in self.text(reply) for x in s.stop)
            return not ended

        cached = self.engine.generate(ids, pick, more, s.max_tokens)
        text = self.text(reply)
        for mark in s.stop:
            text = text.partition(mark)[0]
        return Completion(
            text=door.safe(text),
            status="ok" if ended else "truncated",
            finish="stop" if ended else "length",
            usage=Usage(len(ids), len(reply), cached),
            model=name,
            tokens=tuple(told),
            notes=self.escaped(call),
        )

    def text(self, ids: Sequence[int]) -> str:
        """The text of a reply, control tokens left out."""
        return str(
            self.tokens._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )

    def piece(self, token: int) -> str:
        return door.safe(str(self.tokens._tokenizer.decode([token], clean_up_tokenization_spaces=False)))


def drawn(logs: Any, top_p: float | None, generator: Any) -> int:
    """One token by its probability, from the smallest set of likeliest tokens that holds ``top_p`` of the mass."""
    p = logs.softmax(0)
    if top_p is not None and top_p < 1:
        ranked, order = p.sort(descending=True)
        out = order[ranked.cumsum(0) - ranked >= top_p]
        p[out] = 0.0
    return int(torch.multinomial(p, 1, generator=generator))
