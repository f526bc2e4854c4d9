"""The torch side of one white-box model; used from its owner's thread only.

One primitive reads next-token log-probabilities of many sequences that share prefixes, another differentiates the
verdict margin by the embeddings of a suffix; everything else is made of these two.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import torch
from transformers import AttentionInterface

from robustjudge.models.whitebox.bundles import WORTH, Ids, Row, bundles, chunks, covered, homes, packs
from robustjudge.models.whitebox.prefix import NAME, Pack, Pass, Store, Stretch, attention, positions, tensor

MIB = 1 << 20
TOLERANCE = 1e-3
"""Largest difference of logits at which the shared attention counts as the model's own (float32 noise is 1e-5)."""

AttentionInterface.register(NAME, attention)


class Engine:
    """A causal language model with prefix sharing.

    ``share`` keeps keys and values of prefixes (off: every sequence is run whole, by the model's own attention);
    ``tokens`` is how many new tokens go into one call, ``worth`` what a split of a batch must save, ``memory`` the
    MiB kept for prefixes.  A model whose attention cannot be shared exactly is found at start and run whole.
    """

    def __init__(
        self, model: Any, *, share: bool = True, tokens: int = 1024, worth: int = WORTH, memory: int = 256
    ) -> None:
        self.model = model
        self.embeddings: Any = model.get_input_embeddings().weight
        self.size: int = model.config.get_text_config().vocab_size
        self.store = Store(memory * MIB)
        self.tokens, self.worth = tokens, worth
        self.forwarded = 0
        """Tokens run through the model so far, backward passes apart."""
        self.differentiated = 0
        """Those of them that a gradient was asked for."""
        self.share = share and self._shares()

    def _shares(self) -> bool:
        """Switch to the shared attention if it gives the logits of the model's own one."""
        probe = tuple((7 * i + 3) % self.size for i in range(24))
        plain = self.model.config._attn_implementation
        with torch.no_grad():
            wanted = self.model(input_ids=tensor([probe]), use_cache=False).logits[0, 12:]
            try:
                self.model.set_attn_implementation(NAME)
                self.share = True
                whole = self.forward(tensor([probe]), Stretch(), None)[0, 12:]
                prefix = self._extended(Stretch(), probe[:16])
                rows = [Row(probe, tuple(range(16, 24))), Row(probe[:20], tuple(range(12, 20)))]
                found = self.packed(rows, (16, 12), prefix)
            except (NotImplementedError, TypeError, ValueError, RuntimeError, AttributeError, KeyError):
                found = None
        self.forwarded = 0
        if found is not None:
            pairs = ((whole, wanted), (found[0], wanted[4:]), (found[1], wanted[:8]))
            worst = max(float((x - y).abs().max()) for x, y in pairs)
            if worst <= TOLERANCE * max(1.0, float(wanted.abs().max())):
                return True
        self.model.set_attn_implementation(plain)
        return False

    # ------------------------------------------------------------------ forward

    def forward(
        self, new: Any, prefix: Stretch, reads: Sequence[int] | None, keep: bool = False, pack: Pack | None = None
    ) -> Any:
        """Logits (batch, reads, vocabulary) after the given positions of ``new`` (all of them for ``None``).

        ``new`` are ids (batch, n) or embeddings (batch, n, width) behind ``prefix``, or the one sequence of a ``pack``.
        With ``keep`` the new keys and values are returned besides.
        """
        at = pack.positions if pack is not None else positions(len(prefix), new.shape[1], new.device)
        given = {"inputs_embeds" if new.is_floating_point() else "input_ids": new}
        if reads is not None:
            given["logits_to_keep"] = torch.tensor(list(reads))
        self.forwarded += new.shape[0] * new.shape[1]
        self.differentiated += new.shape[0] * new.shape[1] if new.requires_grad else 0
        with Pass(prefix, keep, pack) as run:
            logits = self.model(**given, position_ids=at, use_cache=False).logits
        return (logits, run.layers()) if keep else logits

    def packed(self, rows: Sequence[Row], starts: Sequence[int], prefix: Stretch) -> list[Any]:
        """Per row the logits (reads, vocabulary), row i run from token ``starts[i]`` on."""
        new = [row.ids[n:] for row, n in zip(rows, starts, strict=True)]
        firsts = accumulate(map(len, new), initial=0)
        reads = [f + r - n for f, row, n in zip(firsts, rows, starts, strict=False) for r in row.reads]
        pack = Pack([len(ids) for ids in new], starts, len(prefix))
        logits = self.forward(tensor([tuple(chain(*new))]), prefix, reads, pack=pack)[0]
        return list(logits.split([len(row.reads) for row in rows]))

    def prefix(self, ids: Ids) -> Stretch:
        """Keys and values of ``ids``, as far as known from the store; empty where nothing is shared."""
        if not self.share or not ids:
            return Stretch()
        known = self.store.longest(ids)
        if len(known) == len(ids):
            return known
        with torch.no_grad():
            whole = self._extended(known, ids[len(known) :])
        self.store.keep(whole)
        return whole

    def _extended(self, known: Stretch, ids: Ids) -> Stretch:
        _, layers = self.forward(tensor([ids]), known, (len(ids) - 1,), keep=True)
        return known.joined(ids, layers)

    def scan(self, rows: Sequence[Row]) -> list[Any]:
        """Per row the log-probabilities (reads, vocabulary) after its read positions.

        Equal rows are run once.  Equal prefixes are run once, known ones not at all.
        """
        numbers: dict[Row, int] = {}
        for row in rows:
            numbers.setdefault(row, len(numbers))
        distinct = list(numbers)
        wide = max(1, (1 << 26) // self.size)
        with torch.no_grad():
            out = self._behind_known(distinct, wide) if self.share else self._whole(distinct, wide)
        return [out[numbers[row]] for row in rows]

    def _whole(self, rows: Sequence[Row], wide: int) -> dict[int, Any]:
        out: dict[int, Any] = {}
        for members in chunks(rows, range(len(rows)), self.tokens, wide):
            logits = self.forward(tensor([rows[i].ids for i in members]), Stretch(), rows[members[0]].reads)
            out.update(zip(members, logits.log_softmax(-1), strict=True))
        return out

    def _behind_known(self, rows: Sequence[Row], wide: int) -> dict[int, Any]:
        known = self.store.known
        groups = []
        for at, members in homes(rows, [s.ids for s in known], self.worth).items():
            home = known[at] if at >= 0 else Stretch()
            alike = [rows[i] for i in members]
            for group in bundles(alike, self.worth, home.ids):
                groups.append((group.shared, home, [members[i] for i in group.rows]))
        out: dict[int, Any] = {}
        # the longest prefix first: the shorter ones of the same text are then views of it
        for shared, home, members in sorted(groups, key=lambda group: -group[0]):
            if len(members) == 1:
                (i,) = members
                out[i] = self._alone(rows[i], shared).log_softmax(-1)
                continue
            starts = {i: covered(home.ids, rows[i]) for i in members}
            if sum(max(0, shared - n) for n in starts.values()) >= self.worth:
                home, starts = self.prefix(rows[members[0]].ids[:shared]), dict.fromkeys(members, shared)
            home = home.cut(max(starts.values()))
            for pack in packs(rows, starts, self.tokens, wide):
                logits = self.packed([rows[i] for i in pack], [starts[i] for i in pack], home)
                out.update(zip(pack, (x.log_softmax(-1) for x in logits), strict=True))
        return out

    def _alone(self, row: Row, known: int) -> Any:
        """One row in one pass behind what is known of its first ``known`` tokens; its keys and values are kept."""
        prefix = self.store.longest(row.ids[:known])
        n = len(prefix)
        logits, layers = self.forward(tensor([row.ids[n:]]), prefix, [r - n for r in row.reads], keep=True)
        self.store.keep(prefix.joined(row.ids[n:], layers))
        return logits[0]

    # ------------------------------------------------------------------ generation

    def generate(self, ids: Ids, pick: Any, more: Any, most: int) -> int:
        """Tokens one by one: ``pick(logits)`` chooses, ``more(token)`` says whether to go on; how many came from known
        prefixes is returned."""
        with torch.no_grad():
            saved = len(self.store.longest(ids[:-1])) if self.share else 0
            prefix = self.prefix(ids[:-1])
            tail = ids[len(prefix) :]
            for _ in range(most):
                if self.share:
                    logits, layers = self.forward(tensor([tail]), prefix, (len(tail) - 1,), keep=True)
                    prefix = prefix.joined(tail, layers)
                else:
                    logits = self.forward(tensor([tail]), prefix, (len(tail) - 1,))
                token = pick(logits[0, 0])
                if not more(token):
                    break
                tail = (token,) if self.share else (*tail, token)
        return saved
