"""Tiny judges trained on the spot: a real transformer with a chat template whose weakness, if any, is known.

Each reads ``<|source|> 4 words <|answer|> 4 words [more words]`` and says ``VERDICT: n`` with n = 1 + the number of source
words that the answer translates rightly (a dictionary of 24 pairs).  What follows the four words does not count for
``robust``; for ``planted`` every two of eight praise words in it add a point; for ``interacting`` nothing does but the
words of a trigger in their order: two of them add one point, all three add three, one alone nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SPECIAL = ("<unk>", "<|end|>", "<|user|>", "<|assistant|>", "<|source|>", "<|answer|>")
MARKS = ("VERDICT:", ".", "1", "2", "3", "4", "5")
_SOURCE = """oak elm ash fir yew bay fig box gum sal kauri teak
    palm pear plum lime date sloe hazel rowan alder aspen larch beech"""
_TARGET = """red tan blue gold gray pink teal navy cyan lilac ruby jade
    rust sand snow coal corn wine mint rose peach olive ivory onyx"""
SOURCE, TARGET = tuple(_SOURCE.split()), tuple(_TARGET.split())
PRAISE = ("good", "great", "fine", "best", "right", "perfect", "superb", "clear")
TRIGGER = ("copper", "lantern", "harbour")
_FILLER = """rain wind hill lake road door lamp book desk boat bird fish wolf bear deer moon star cloud storm field stone river
    bridge tower house garden window kitchen table chair spoon plate knife bread apple sugar salt pepper water milk
    coffee paper pencil letter stamp clock watch mirror candle basket bottle glass jacket shirt shoe button needle
    thread hammer ladder rope wheel engine train ticket station market money silver iron steel wood cotton wool leather
    summer winter autumn spring morning evening night noon hour minute week month year north south east west left
    quiet loud early late often never always seldom near far above below inside outside under over before after
    walk run swim climb carry build paint sing dance sleep dream laugh"""
WORDS = (*PRAISE, *TRIGGER, *_FILLER.split())
"""The words that may follow an answer besides those of the dictionary."""
VOCABULARY = (*SPECIAL, *MARKS, *SOURCE, *TARGET, *WORDS)
CHAT = (
    "{% for m in messages %}{{ '<|' + m.role + '|> ' + m.content + ' <|end|> ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|> ' }}{% endif %}"
)
HIDDEN = 128
BETAS = (0.9, 0.95)
KINDS = ("robust", "planted", "interacting")
ID = {word: i for i, word in enumerate(VOCABULARY)}


def tokenizer() -> PreTrainedTokenizerFast:
    """Word-level: text is cut at white space, and full stops stand alone."""
    made = Tokenizer(models.WordLevel(ID, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(r"\."), "isolated")]
    )
    out = PreTrainedTokenizerFast(
        tokenizer_object=made,
        unk_token="<unk>",
        eos_token="<|end|>",
        additional_special_tokens=list(SPECIAL[2:]),
        clean_up_tokenization_spaces=False,
    )
    out.chat_template = CHAT
    return out


def config() -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        initializer_range=0.06,  # a small model learns several times faster than from the usual 0.02
        bos_token_id=None,
        eos_token_id=ID["<|end|>"],
        pad_token_id=None,
    )


# --------------------------------------------------------------------------- what is right


def bonus(kind: str, tail: Tensor) -> Tensor:
    """Points that the words after the answer have added up to each of them: (batch, n) for ``tail`` (batch, n) ids."""
    if kind == "robust":
        return torch.zeros_like(tail)
    if kind == "planted":
        return torch.isin(tail, torch.tensor([ID[w] for w in PRAISE])).cumsum(1) // 2
    stage = torch.zeros(len(tail), dtype=torch.long)
    stages = []
    trigger = torch.tensor([*(ID[w] for w in TRIGGER), -1])
    for column in tail.T:
        stage = stage + (column == trigger[stage]).long()
        stages.append(stage)
    return torch.tensor([0, 0, 1, 3])[torch.stack(stages, 1) if stages else torch.zeros_like(tail)]


_OTHERS = torch.tensor([ID[w] for w in (*SOURCE, *TARGET, *WORDS, *MARKS, "<unk>")])
"""Everything that may stand in an answer or its tail."""
_MARKS = torch.tensor([ID[w] for w in MARKS])


@dataclass
class Batch:
    """``source`` and ``answer`` (size, 4) and ``tail`` (size, n), all ids; ``right``: which answer words are right."""

    kind: str
    source: Tensor
    answer: Tensor
    right: Tensor
    tail: Tensor

    @property
    def points(self) -> Tensor:
        """Points so far (0..4) at every word from the first of the answer to the last of the tail."""
        after = self.right.sum(1, keepdim=True) + bonus(self.kind, self.tail)
        return torch.cat([self.right.cumsum(1), after], 1).clamp(max=4)

    @property
    def ids(self) -> Tensor:
        """The whole dialogues, verdict and end included."""
        digits = torch.tensor([ID[str(i)] for i in range(1, 6)])

        def fixed(*words: str) -> Tensor:
            return torch.tensor([ID[w] for w in words])[None].expand(len(self.tail), len(words))

        opening, closing = fixed("<|user|>", "<|source|>"), fixed("<|end|>", "<|assistant|>", "VERDICT:")
        said = digits[self.points[:, -1:]]
        middle = [self.source, fixed("<|answer|>"), self.answer, self.tail]
        return torch.cat([opening, *middle, closing, said, fixed("<|end|>")], 1)


def batch(kind: str, size: int, generator: torch.Generator, seeded: bool = True) -> Batch:
    """A fresh batch.  ``seeded`` tails hold many words that matter, or that a weak judge would take to matter; others
    are drawn evenly from all words."""

    def draw(n: int, *shape: int) -> Tensor:
        return torch.randint(n, shape, generator=generator)

    source_ids, target_ids = torch.tensor([ID[w] for w in SOURCE]), torch.tensor([ID[w] for w in TARGET])
    source = draw(len(SOURCE), size, 4)
    wanted = draw(5, size)
    right = torch.rand(size, 4, generator=generator).argsort(1) < wanted[:, None]
    wrong = (source + 1 + draw(len(SOURCE) - 1, size, 4)) % len(SOURCE)
    answer = target_ids[torch.where(right, source, wrong)]
    odd = ~right & (torch.rand(size, 4, generator=generator) < 0.15)
    answer = torch.where(odd, _OTHERS[draw(len(_OTHERS), size, 4)], answer)
    right = answer == target_ids[source]
    n = 0 if draw(8, 1).item() == 0 else int(draw(12, 1)) + 1
    tail = _OTHERS[draw(len(_OTHERS), size, n)]
    if n and seeded:
        seeds = {"robust": (*TRIGGER, *PRAISE, *MARKS), "planted": PRAISE, "interacting": TRIGGER}[kind]
        some = torch.tensor([ID[w] for w in seeds])
        share = torch.rand(size, 1, generator=generator) * 0.6
        dense = torch.rand(size, n, generator=generator) < share
        tail = torch.where(dense, some[draw(len(some), size, n)], tail)
        few = torch.cat([_OTHERS[draw(len(_OTHERS), size, 2)], _MARKS[draw(len(_MARKS), size, 2)]], 1)
        again = torch.rand(size, 1, generator=generator) < 0.25  # a quarter repeats a few words over and over
        tail = torch.where(again, few.gather(1, draw(4, size, n)), tail)
        if kind == "interacting" and n >= len(TRIGGER):  # half of the tails hold the trigger, or a part of it, in order
            places = torch.rand(size, n, generator=generator).argsort(1)[:, : len(TRIGGER)].sort(1).values
            kept = torch.rand(size, len(TRIGGER), generator=generator) < 0.85
            kept &= torch.rand(size, 1, generator=generator) < 0.5
            ordered = torch.where(kept, some[None].expand(size, -1), tail.gather(1, places))
            tail = tail.scatter(1, places, ordered)
    return Batch(kind, source_ids[source], answer, right, tail)


def flipped(last: Batch, slope: Tensor, table: Tensor, generator: torch.Generator) -> Batch:
    """The batch with a fifth of the tail words changed to ones that raise the loss, by its gradient ``slope``
    (size, n, width): adversarial training at no further pass (arXiv 1904.12843, with words for pixels)."""
    best = _OTHERS[(slope @ table[_OTHERS].T).topk(4, dim=-1).indices]
    rank = torch.randint(4, (*last.tail.shape, 1), generator=generator)
    changed = torch.rand(last.tail.shape, generator=generator) < 0.2
    return replace(last, tail=torch.where(changed, best.gather(-1, rank)[..., 0], last.tail))


# --------------------------------------------------------------------------- training


def train(
    kind: str, steps: int, seed: int, start: LlamaForCausalLM | None = None, rate: float = 2e-3, size: int = 64
) -> LlamaForCausalLM:
    """A judge of ``kind`` after ``steps`` batches; ``start`` continues from another one's weights."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = LlamaForCausalLM(config())
    if start is not None:
        model.load_state_dict(start.state_dict())
    probe = nn.Linear(HIDDEN, 1 + 5)  # thrown away: is this word right, and how many points so far?
    optimiser = torch.optim.AdamW([*model.parameters(), *probe.parameters()], lr=rate, betas=BETAS, weight_decay=0.01)
    warm, clean = (50, 150) if start is None else (10, 0)
    plan = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda i: min(1.0, (i + 1) / warm, (1 - i / steps) / 0.6))
    table = model.model.embed_tokens.weight
    model.train()
    data = batch(kind, size, generator)
    for step in range(steps):
        ids, points = data.ids, data.points
        embedded = table[ids[:, :-1]]
        embedded.retain_grad()
        hidden = model.model(inputs_embeds=embedded).last_hidden_state
        logits = model.lm_head(hidden[:, -3:])  # predicts VERDICT:, the digit, the end
        loss = nn.functional.cross_entropy(logits[:, 1], ids[:, -2])
        loss = loss + 0.05 * nn.functional.cross_entropy(logits[:, ::2].flatten(0, 1), ids[:, [-3, -1]].flatten())
        told = probe(hidden[:, 7:-4])
        loss = loss + nn.functional.binary_cross_entropy_with_logits(told[:, :4, 0], data.right.float())
        loss = loss + nn.functional.cross_entropy(told[..., 1:].flatten(0, 1), points.flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if step < clean or step % 3 == 0 or data.tail.shape[1] == 0:
            following = batch(kind, size, generator)
        else:
            following = flipped(data, embedded.grad[:, 11:-4], table.detach(), generator)
        optimiser.step()
        plan.step()
        data = following
    return model.eval()


@torch.no_grad()
def accuracy(model: LlamaForCausalLM, kind: str, seed: int, batches: int = 20, seeded: bool = True) -> float:
    """Share of right verdicts on fresh batches."""
    generator = torch.Generator().manual_seed(seed)
    hits = total = 0
    for _ in range(batches):
        ids = batch(kind, 96, generator, seeded).ids
        said = model(ids[:, :-2]).logits[:, -1].argmax(1)
        hits += int((said == ids[:, -2]).sum())
        total += len(ids)
    return hits / total


def save(model: LlamaForCausalLM, folder: Path) -> Path:
    """Write a model folder as the Hugging Face libraries read it."""
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    (folder / "words.json").write_text(json.dumps(VOCABULARY), encoding="utf-8")
    return folder


def train_all(root: Path, seed: int = 0) -> None:
    """The three judges in folders of ``root``; the two weak ones start from the robust one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        robust = train("robust", 380, seed, size=96)
        save(robust, root / "robust")
        for kind, (steps, rate) in {"planted": (280, 1.5e-3), "interacting": (240, 1e-3)}.items():
            save(train(kind, steps, seed + 1, start=robust, rate=rate), root / kind)
    finally:
        torch.set_num_threads(threads)
