"""BLEURT in its own environment on a small random checkpoint, against the reference implementation.

BLEURT-20 itself is not run: its weights are not at hand.  The architecture, tokeniser and worker are the same.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from robustjudge.nouns import Case
from robustjudge.quality import rate
from robustjudge.quality.bleurt import PYTHON, Bleurt, install

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(1800)]

PAIRS = (
    ("the cat sat on the mat", "the cat sat on the mat"),
    ("the cat sat on the mat", "a dog barks at night"),
    ("a dog barks at night", "the cat sat on the mat"),
    ("the old man reads a letter", "Anna reads a letter while the dog barks at night"),
    ("the cat", "unheard words: Bücher 图书馆"),
    ("Anna reads a letter", "the dog barks " * 400),
)

# makes the checkpoint, then scores as the package's documentation does: one padded batch, (references, candidates)
REFERENCE = """
import json, sys, torch, sentencepiece
from bleurt_pytorch import BleurtConfig, BleurtForSequenceClassification
from bleurt_pytorch.bleurt.tokenization_bleurt_sp import BleurtSPTokenizer
out, pairs = sys.argv[1], json.loads(sys.stdin.read())
lines = [f"the cat {w} on the mat and a dog barks at night while {v} reads a letter"
         for w in ("sat", "slept", "ran") for v in ("Anna", "Ben", "the old man")] * 5
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(lines), model_prefix=out + "/spm", vocab_size=80, hard_vocab_limit=False, minloglevel=2,
    pad_id=0, unk_id=1, bos_id=2, eos_id=3, pad_piece="[PAD]", unk_piece="[UNK]", bos_piece="[CLS]", eos_piece="[SEP]")
tokenizer = BleurtSPTokenizer(out + "/spm.model")
tokenizer.save_pretrained(out)
torch.manual_seed(0)
torch.set_num_threads(1)
model = BleurtForSequenceClassification(BleurtConfig(
    vocab_size=len(tokenizer) + 8, embedding_size=16, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
    intermediate_size=64)).eval()
for p in model.parameters():
    if p.dim() > 1:
        torch.nn.init.normal_(p, std=0.3)
model.save_pretrained(out)
references, candidates = zip(*pairs)
batch = tokenizer(list(references), list(candidates), padding="longest", truncation=True, max_length=512, return_tensors="pt")
with torch.no_grad():
    print(json.dumps(model(**batch).logits.flatten().tolist()))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The worker's Python: the one named in the environment, else a fresh installation (minutes)."""
    return os.environ.get(PYTHON) or str(install(tmp_path_factory.mktemp("bleurt") / "env"))


@pytest.fixture(scope="module")
def scored(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Bleurt, list[float]]]:
    folder: Path = tmp_path_factory.mktemp("checkpoint")
    done = subprocess.run(
        [python, "-c", REFERENCE, str(folder)], input=json.dumps(PAIRS), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    judge = Bleurt(checkpoint=str(folder), python=python)
    judge.ready()
    yield judge, json.loads(done.stdout.splitlines()[-1])
    judge.close()


def test_worker_scores_equal_the_reference_implementation(scored: tuple[Bleurt, list[float]]) -> None:
    judge, wanted = scored
    got = [rate(judge, Case(id="c", task="t", response="", references=(r,)), c) for r, c in PAIRS]
    print("worker  ", [g.raw for g in got])
    print("package ", wanted)
    assert [g.raw for g in got] == pytest.approx(wanted, abs=1e-5)
    assert max(wanted) - min(wanted) > 0.01, "a constant model would prove nothing"
    assert got[1].raw != pytest.approx(got[2].raw, abs=1e-4), "the argument order must matter"
    assert all(g.value == min(1.0, max(0.0, g.raw or 0.0)) for g in got)


def test_long_pairs_are_flagged_and_a_repeat_is_equal(scored: tuple[Bleurt, list[float]]) -> None:
    judge, _ = scored
    reference, text = PAIRS[-1]
    case = Case(id="c", task="t", response="", references=(reference,))
    first = rate(judge, case, text)
    assert first.truncated and "chrf" in dict(first.parts)
    assert first == rate(judge, case, text)
    assert not rate(judge, case, "the cat").truncated
