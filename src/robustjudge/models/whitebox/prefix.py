"""Keys and values of shared prefixes: computed once, never copied, kept while memory lasts.

The attention below scores every row against one prefix in a single product and joins both parts in one softmax; it is
exact, and works for every architecture that calls the attention interface of transformers (others run unshared).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from robustjudge.models.whitebox.bundles import Ids, common

NAME = "robustjudge_shared_prefix"
Layers = tuple[tuple[Any, Any], ...]
"""Per layer the keys and the values, (1, key-value heads, tokens, width) each, rotated to their positions."""


@dataclass(frozen=True)
class Stretch:
    """A token sequence with its keys and values per layer."""

    ids: Ids = ()
    layers: Layers = ()

    def __len__(self) -> int:
        return len(self.ids)

    def cut(self, n: int) -> Stretch:
        """Its first ``n`` tokens (views, no copies)."""
        if n >= len(self.ids):
            return self
        return Stretch(self.ids[:n], tuple((k[:, :, :n], v[:, :, :n]) for k, v in self.layers)) if n else Stretch()

    def joined(self, ids: Ids, layers: Layers) -> Stretch:
        """Followed by ``ids``, whose keys and values are ``layers``."""
        if not self.ids:
            return Stretch(ids, layers)
        pairs = zip(self.layers, layers, strict=True)
        both = tuple((torch.cat((a, c), 2), torch.cat((b, d), 2)) for (a, b), (c, d) in pairs)
        return Stretch(self.ids + ids, both)

    @property
    def bytes(self) -> int:
        return sum(t.element_size() * t.nelement() for pair in self.layers for t in pair)


MOST = 64
"""Stretches kept: each is compared with every prompt, so more cost more than they save."""


class Store:
    """The stretches computed lately, at most ``limit`` bytes and :data:`MOST` of them; any prefix of one is at hand."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: list[tuple[Stretch, int]] = []

    @property
    def known(self) -> list[Stretch]:
        """All of them, the one used last first."""
        return [stretch for stretch, _ in reversed(self._kept)]

    def clear(self) -> None:
        """Forget all of them."""
        self._kept.clear()

    def longest(self, ids: Ids) -> Stretch:
        """The longest known prefix of ``ids``."""
        best, at = 0, -1
        for i, (stretch, _) in enumerate(self._kept):
            n = common(stretch.ids, ids)
            if n > best:
                best, at = n, i
        if at < 0:
            return Stretch()
        used = self._kept.pop(at)
        self._kept.append(used)  # used last
        return used[0].cut(best)

    def keep(self, stretch: Stretch) -> None:
        """Remember a stretch; what it extends and what no longer fits is dropped."""
        n = len(stretch)
        self._kept = [k for k in self._kept if k[0].ids != stretch.ids[: len(k[0])] or len(k[0]) > n]
        self._kept.append((stretch, stretch.bytes))
        total = sum(size for _, size in self._kept)
        while len(self._kept) > 1 and (total > self._limit or len(self._kept) > MOST):
            total -= self._kept.pop(0)[1]


class Pack:
    """Rows of different lengths laid end to end in one sequence, row i behind the first ``starts[i]`` tokens of one
    prefix: products by weights see no padding, attention pads the rows for itself."""

    def __init__(self, lengths: Sequence[int], starts: Sequence[int], prefix: int) -> None:
        size, begin = torch.tensor(lengths)[:, None], torch.tensor(starts)[:, None]
        column = torch.arange(max(lengths))[None]
        first = size.cumsum(0) - size
        real = column < size
        self.padded = (first + column).where(real, first)
        """(rows, longest): where each padded place is found in the sequence."""
        self.back = real.flatten().nonzero()[:, 0]
        """(tokens,): the padded place of each token."""
        self.unseen = torch.arange(prefix)[None] >= begin
        """(rows, prefix): what of the prefix a row does not stand behind."""
        self.positions = (begin + column)[real][None]


@dataclass
class Pass:
    """One forward pass on this thread: the prefix behind which it runs, how its rows are packed and, if asked for, the
    new keys and values."""

    prefix: Stretch
    keep: bool = False
    pack: Pack | None = None
    kept: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def __enter__(self) -> Pass:
        _NOW.run = self
        return self

    def __exit__(self, *exc: object) -> None:
        _NOW.run = None

    def layers(self) -> Layers:
        return tuple(self.kept[i] for i in sorted(self.kept))


_NOW = threading.local()


def attention(
    module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float | None = None, **extra: Any
) -> tuple[Any, None]:
    """Causal attention of (batch, heads, n, width) behind the prefix of the current :class:`Pass`."""
    if mask is not None or extra.get("sliding_window") or extra.get("softcap") or extra.get("s_aux") is not None:
        raise NotImplementedError("masks, windows, caps and sinks are left to the model's own attention")
    run: Pass | None = getattr(_NOW, "run", None)
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    if run is not None and run.keep:
        run.kept[module.layer_idx] = (key, value)
    pack = run.pack if run is not None else None
    if pack is not None:
        query, key, value = (x[0][:, pack.padded].transpose(0, 1) for x in (query, key, value))
    if run is None or not len(run.prefix):
        out = scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=True)
    else:
        out = _behind(query, key, value, run.prefix.layers[module.layer_idx], scale, pack and pack.unseen)
    out = out.transpose(1, 2)
    return (out.flatten(0, 1)[pack.back][None] if pack is not None else out.contiguous()), None


def _behind(query: Any, key: Any, value: Any, before: tuple[Any, Any], scale: float, unseen: Any = None) -> Any:
    before_k, before_v = before
    batch, heads, n, width = query.shape
    shared = key.shape[1]
    group = heads // shared
    # (key-value heads, batch, group * n, width): all rows meet the one prefix in a single matrix product
    q = (query * scale).view(batch, shared, group, n, width).permute(1, 0, 2, 3, 4).reshape(shared, -1, width)
    past = torch.bmm(q, before_k[0].transpose(1, 2)).view(shared, batch, group * n, -1)
    if unseen is not None:
        past = past.masked_fill_(unseen[:, None], float("-inf"))
    now = torch.matmul(q.view(shared, batch, group * n, width), key.permute(1, 0, 3, 2))
    hidden = torch.ones(n, n, dtype=torch.bool, device=query.device).triu(1).repeat(group, 1)
    weights = torch.cat((past, now.masked_fill(hidden, float("-inf"))), -1).softmax(-1)
    p = before_k.shape[2]
    out = torch.bmm(weights[..., :p].reshape(shared, -1, p), before_v[0]).view(shared, batch, group * n, width)
    out = out + torch.matmul(weights[..., p:], value.transpose(0, 1))
    return out.view(shared, batch, group, n, width).permute(1, 0, 2, 3, 4).reshape(batch, heads, n, width)


def positions(start: int, n: int, device: Any = None) -> Any:
    """Position ids of ``n`` tokens behind ``start`` others."""
    return torch.arange(start, start + n, device=device)[None]


def tensor(ids: Sequence[Ids] | Ids) -> Any:
    """Ids, or id sequences of equal length, as a tensor."""
    return torch.tensor(ids, dtype=torch.long)
