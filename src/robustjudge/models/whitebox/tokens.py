"""Text and token ids of one model: chat prompts in which untrusted text stays text, and what a suffix may be made of.

A searched suffix is spelled as it follows a space: ids are legal when their text, put behind a space and encoded
again, gives the same ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

from robustjudge import door
from robustjudge.errors import ConfigError
from robustjudge.models import trie
from robustjudge.models.control import joint, jointed, neutral
from robustjudge.models.whitebox.bundles import Ids
from robustjudge.nouns import Call, LabelCall, Message

ANCHOR = "a"
"""A word before a suffix, so that the suffix is encoded in the middle of a text."""

Found = tuple[int, int]
"""Start and end of a stretch of tokens."""


@dataclass(frozen=True)
class Prompt:
    """A chat as one text; ``borders`` are places, in characters, where a token must end."""

    text: str
    borders: tuple[int, ...] = ()

    def head(self, end: int) -> Prompt:
        """Its first ``end`` characters."""
        return Prompt(self.text[:end], tuple(b for b in self.borders if b < end))


@dataclass(frozen=True)
class Encoded:
    """Token ids and the characters that each stands for."""

    ids: Ids
    offsets: tuple[tuple[int, int], ...]


class Tokens:
    """The tokenizer of one model, a fast one with a chat template."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        from tokenizers import Tokenizer

        if not getattr(tokenizer, "is_fast", False):
            raise ConfigError(f"{name}: the tokenizer has no fast form (tokenizer.json), which this engine needs")
        if not tokenizer.chat_template:
            raise ConfigError(f"{name} has no chat template; how it wants to be asked is not guessed")
        self._tokenizer = tokenizer
        self._chat: Any = tokenizer.backend_tokenizer
        self._plain: Any = Tokenizer.from_str(self._chat.to_str())
        self._plain.encode_special_tokens = True  # control tokens written as text are text
        for fast in (self._chat, self._plain):
            fast.no_padding()
            fast.no_truncation()
        added = tokenizer.added_tokens_decoder
        template = str(tokenizer.chat_template)
        self.control = tuple(t.content for t in added.values() if t.special or t.content in template)
        self.special = frozenset(i for i, t in added.items() if t.special or t.content in template)
        self.size = int(self._chat.get_vocab_size(with_added_tokens=True))
        self.start: int | None = next(
            (t for t in (tokenizer.bos_token_id, tokenizer.eos_token_id) if t is not None), None
        )

        ids = [i for text in ("ab", "cd") for i in self._chat.encode(text, add_special_tokens=False).ids]
        self.segments = tokenizer.decode(ids, clean_up_tokenization_spaces=False) == "abcd"
        """Texts may be encoded piece by piece: nothing comes between the pieces."""

    # ------------------------------------------------------------------ prompts

    def chat(self, call: Call) -> Prompt:
        """The prompt of a call with its forced token borders; raises what the chat template raises."""
        mark = joint(call)
        text = self.prompt(tuple(jointed(m, mark) for m in call.messages))
        if not mark:
            return Prompt(text)
        pieces = text.split(mark)
        return Prompt("".join(pieces), tuple(accumulate(map(len, pieces[:-1]))))

    def prompt(self, messages: tuple[Message, ...]) -> str:
        """The chat as one text that ends where the reply begins; a closing assistant turn stays open.

        Raises what the chat template raises for roles that it does not take.
        """
        turns = [{"role": m.role, "content": neutral(m, self.control)} for m in messages]
        opened = messages[-1].role == "assistant"
        text: str = self._tokenizer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=not opened, continue_final_message=opened
        )
        return text

    def encode(self, prompts: Sequence[Prompt]) -> list[Encoded]:
        """Encodings of whole prompts, control tokens included, each piece between two borders by itself."""
        spans = [list(pairwise((0, *p.borders, len(p.text)))) for p in prompts]
        pieces = [p.text[a:b] for p, ab in zip(prompts, spans, strict=True) for a, b in ab]
        found = iter(self._chat.encode_batch(pieces, add_special_tokens=False))
        out = []
        for ab in spans:
            parts = [(a, next(found)) for a, _ in ab]
            ids = tuple(i for _, e in parts for i in e.ids)
            out.append(Encoded(ids, tuple((a + x, a + y) for a, e in parts for x, y in e.offsets)))
        return out

    def ids(self, text: str) -> Ids:
        """Ids of a part of a prompt."""
        return tuple(self._chat.encode(text, add_special_tokens=False).ids)

    def plain(self, text: str) -> Ids:
        """Ids of plain text: nothing in it is a control token."""
        return tuple(self.plain_encoding(text).ids)

    def plain_encoding(self, text: str) -> Any:
        """The encoding (``ids``, ``offsets`` in characters) of plain text."""
        return self._plain.encode(text, add_special_tokens=False)

    def cut(self, prompt: str) -> int:
        """Where the last control token of a prompt begins: what follows is encoded independently of what precedes."""
        return max((prompt.rfind(c) for c in self.control), default=-1)

    def verdicts(self, tail: str, lead: str, labels: tuple[str, ...]) -> tuple[Ids, tuple[Ids, ...]]:
        """(ids of tail + lead, what each label adds) for the end of a prompt, see :func:`trie.split`."""
        return _verdicts(self, tail + lead, labels)

    # ------------------------------------------------------------------ suffixes

    def text(self, ids: Ids) -> str:
        """The text of ids as it follows a space."""
        return str(self._tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)).removeprefix(" ")

    def spell(self, ids: Sequence[Ids]) -> tuple[str, ...]:
        """The text of each id sequence; empty for one that does not survive the text interface behind a space."""
        texts = [self.text(s) if all(0 <= i < self.size for i in s) else "" for s in ids]
        again = self._plain.encode_batch([f"{ANCHOR} {t}" for t in texts], add_special_tokens=False)
        heads = {self.plain(ANCHOR), self.plain(ANCHOR + " ")}
        out = []
        for s, text, encoded in zip(ids, texts, again, strict=True):
            back = tuple(encoded.ids)
            whole = bool(s) and back[len(back) - len(s) :] == s and back[: len(back) - len(s)] in heads
            out.append(text if whole and self._sayable(s, text) else "")
        return tuple(out)

    def _sayable(self, ids: Ids, text: str) -> bool:
        return (
            not self.special.intersection(ids)
            and bool(text.strip())
            and "\ufffd" not in text
            and door.safe(text) == text
        )

    @lru_cache(maxsize=1)  # noqa: B019 (a tokenizer lives as long as its model)
    def legal(self) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
        """For every id: may it begin a suffix, may it stand in one (single tokens that survive on their own)."""
        every = [(i,) for i in range(self.size)]
        first = [bool(t) for t in self.spell(every)]
        texts = [str(self._tokenizer.decode([i], clean_up_tokenization_spaces=False)) for i in range(self.size)]
        alone = self._plain.encode_batch(texts, add_special_tokens=False)
        inside = [
            f or (tuple(e.ids) == s and self._sayable(s, t))
            for f, e, s, t in zip(first, alone, every, texts, strict=True)
        ]
        return tuple(first), tuple(inside)

    def locate(self, asked: LabelCall, prompt: str, encoded: Encoded, suffix: Ids) -> Found | None:
        """Where the ids of ``suffix`` end the author's candidate in an encoded prompt; ``None`` when they do not."""
        ids = encoded.ids
        ends = self._ends(asked, prompt, self.text(suffix))
        for end in range(len(ids), len(suffix) - 1, -1):
            start = end - len(suffix)
            if ids[end - 1] == suffix[-1] and ids[start:end] == suffix and encoded.offsets[end - 1][1] in ends:
                return start, end
        return None

    def near(self, asked: LabelCall, prompt: str, encoded: Encoded, suffix: Ids) -> Found | None:
        """The tokens that the text of a suffix covers where its own ids are not found."""
        text = self.text(suffix)
        for end in sorted(self._ends(asked, prompt, text), reverse=True):
            inside = [i for i, (a, b) in enumerate(encoded.offsets) if b > end - len(text) and a < end and b > a]
            if inside:
                return inside[0], inside[-1] + 1
        return None

    def _ends(self, asked: LabelCall, prompt: str, text: str) -> set[int]:
        """The character positions at which a candidate that ends with ``text`` ends in the prompt."""
        ends = set()
        for m in asked.call.messages:
            for part in m.parts:
                shown = door.safe(part.text)
                if part.field.startswith("candidate/") and text and shown.endswith(text):
                    at = prompt.rfind(shown)
                    if at >= 0:
                        ends.add(at + len(shown))
        return ends


@lru_cache(maxsize=4096)
def _verdicts(tokens: Tokens, lead: str, labels: tuple[str, ...]) -> tuple[Ids, tuple[Ids, ...]]:
    return trie.split([tokens.ids(lead + label) for label in labels], tokens.ids(lead))
