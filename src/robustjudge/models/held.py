"""A reply held to the verdict line: one of the declared labels, chosen by its whole probability, not token by token.

A grammar alone bends the choice.  At the first token "F" and "S" compete with the weight of every word that begins so
("For", "Sorry"), whatever the model thinks of FAILURE and SUCCESS, and the label is then spelled letter by letter in
tokens that the model would never choose.  So the labels are weighed in the model's own spelling, and the likeliest is
the reply; at a temperature T > 0 one is drawn with weight p^(1/T).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from robustjudge.judges import verdict_grammar
from robustjudge.nouns import Call, Completion, Readout, Sampling, TokenOdds
from robustjudge.spec import digest


def line_of(call: Call) -> Readout | None:
    """The labels that the call is held to, when its grammar is that of its own verdict line."""
    readout = call.readout
    return readout if readout is not None and call.sampling.grammar == verdict_grammar(readout) else None


def reply(call: Call, readout: Readout, logprobs: Sequence[float], seed: str, model: str) -> Completion:
    """The verdict line with the label that ``logprobs`` (one per label) and the call's sampling choose.

    ``seed`` names the draw besides the sampling's own seed and the replica.  Asked for log-probabilities, the reply
    tells one entry: the label, with the likeliest labels as its alternatives.
    """
    s = call.sampling
    place = _chosen(logprobs, s, digest(seed, str(s.seed), call.replica))
    label = readout.labels[place]
    told: tuple[TokenOdds, ...] = ()
    if s.top_logprobs:
        ranked = sorted(zip(readout.labels, logprobs, strict=True), key=lambda x: -x[1])
        told = (TokenOdds(label, logprobs[place], tuple(ranked[: s.top_logprobs])),)
    return Completion(text=f"{readout.lead}{label}\n", status="ok", finish="stop", model=model, tokens=told)


def _chosen(logprobs: Sequence[float], sampling: Sampling, seed: str) -> int:
    """Place of the likeliest label (the first of equals), or of one drawn from the likeliest that hold ``top_p``."""
    ranked = sorted(range(len(logprobs)), key=lambda i: -logprobs[i])
    if sampling.temperature <= 0:
        return ranked[0]
    weights = [math.exp((logprobs[i] - logprobs[ranked[0]]) / sampling.temperature) for i in ranked]
    kept, room = 0, (1.0 if sampling.top_p is None else sampling.top_p) * math.fsum(weights)
    while kept < len(ranked) and (not kept or math.fsum(weights[:kept]) < room):
        kept += 1
    return random.Random(seed).choices(ranked[:kept], weights[:kept])[0]
