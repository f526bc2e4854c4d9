"""One nanoGCG run in the peer's environment: a JSON job on stdin; on stdout ``trace`` = ``[[seconds, best loss, processor
time], ...]`` and the ``best`` string.

A folder saved by transformers 5 is rewritten for version 4: the rotary base and the chat template stand elsewhere there.
The tokenizer is opened without a start token: nanoGCG deletes that token's text wherever a chat template prints it, and
where it opens every turn (``<|im_start|>``) the judge would be asked something else.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import nanogcg
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast


def rewritten(folder: Path, into: Path) -> Path:
    """A copy of the folder's configuration that version 4 reads, beside a link to the weights."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    rope = config.pop("rope_parameters", None) or {}
    if "rope_theta" in rope:
        config["rope_theta"] = rope["rope_theta"]
    config["torch_dtype"] = config.pop("dtype", "float32")
    (into / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for file in folder.glob("*.safetensors*"):
        (into / file.name).symlink_to(file.resolve())
    return into


def main() -> None:
    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    folder = Path(job["folder"])
    told = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    names = {k: told[k] for k in ("eos_token", "pad_token", "unk_token") if isinstance(told.get(k), str)}
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **names)
    template = folder / "chat_template.jinja"
    tokenizer.chat_template = told.get("chat_template") or template.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as work:
        model = AutoModelForCausalLM.from_pretrained(rewritten(folder, Path(work)), torch_dtype=torch.float32).eval()
        marks: list[tuple[float, float]] = []
        forward = nanogcg.gcg.GCG.compute_token_gradient

        def timed(*args: object) -> object:
            marks.append((time.perf_counter(), time.process_time()))
            return forward(*args)

        nanogcg.gcg.GCG.compute_token_gradient = timed
        wanted = nanogcg.GCGConfig(
            num_steps=job["steps"],
            search_width=job["width"],
            topk=256,
            optim_str_init=job["start"],
            seed=job["seed"],
            verbosity="ERROR",
        )
        found = nanogcg.run(model, tokenizer, [{"role": "user", "content": job["content"]}], job["target"], wanted)
    ends = [*marks[1:], (time.perf_counter(), time.process_time())]
    size = len(tokenizer(job["target"], add_special_tokens=False).input_ids)  # its loss is a mean over target tokens
    best, out = float("inf"), []
    for end, loss in zip(ends, found.losses):
        best = min(best, loss * size)
        out.append([end[0] - marks[0][0], best, end[1] - marks[0][1]])
    print(json.dumps({"trace": out, "best": found.best_string}))


if __name__ == "__main__":
    main()
