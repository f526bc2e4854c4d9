"""The shape of ``robustjudge.yaml`` (pydantic models; the JSON Schema of the docs is made from them)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """No unknown keys: a typo is an error, never a silent default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CasesConfig(Strict):
    """Where cases come from: a built-in or published set by name, or a file with a column mapping."""

    source: str = Field("builtin", description="builtin, builtin/logic, paper (T1..T8), T1..T8, a task name, or a file")
    root: str = Field("", description="folder of the published data files (T1..T8)")
    limit: int | None = Field(None, ge=1, description="cases per task (per file for your own)")
    kind: str = ""
    columns: dict[str, Any] = Field(default_factory=dict, description="field of a case -> column of the file")
    make_weak: bool = Field(False, description="make verified weak responses by rule where the file has none")
    split: str = ""


class SamplingConfig(Strict):
    """How replies are drawn."""

    temperature: float = 0.0
    max_tokens: int = Field(512, ge=1)
    top_p: float | None = None
    seed: int | None = None
    stop: list[str] = Field(default_factory=list)
    top_logprobs: int = Field(0, ge=0)
    effort: str = ""


class JudgeConfig(Strict):
    """A judge: a model with a prompt of yours or a shipped template, a service, or a panel."""

    model: str = ""
    template: str = Field("", description="name of a shipped template")
    prompt: str | dict[str, Any] | None = Field(
        None,
        description="your prompt: a text, {file: PATH}, or one form per protocol {pointwise: {...}, pairwise: {...}}",
    )
    messages: list[dict[str, Any]] | None = None
    slots: dict[str, str] = Field(default_factory=dict, description="your slot name -> ours (task, response, ...)")
    scale: dict[str, Any] | list[str] | None = Field(None, description="{min, max, step} or {labels: [...]}")
    reply: str | dict[str, Any] | None = Field(None, description="reply form: a name, or {form, path, pattern, ...}")
    fence: Literal["nonce", "plain"] | None = None
    sampling: SamplingConfig = SamplingConfig()
    family: str = ""
    expect: bool = Field(False, description="ask label probabilities too, for an expected score")
    constrained: bool = Field(False, description="hold replies to the verdict line by a grammar (local models)")
    repeat: int = Field(1, ge=1)
    service: dict[str, Any] | None = None
    panel: list[JudgeConfig] = Field(default_factory=list)


class ModelConfig(Strict):
    """How a model is reached; secrets are named as ``${VARIABLE}``, never written."""

    base_url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    query: dict[str, str] = Field(default_factory=dict)
    ca: str = ""
    proxy: str = ""
    key_env: str = ""
    timeout: float = 120.0
    effort: str = ""
    family: str = ""
    rpm: float | None = None
    tpm: float | None = None
    max_concurrency: int = 256
    price: tuple[float, float] | None = None
    logprobs: bool | None = None
    revision: str = ""


class BudgetConfig(Strict):
    """What one trial's attacker may spend; missing is unlimited."""

    queries: int | None = Field(None, ge=1)
    writes: int | None = Field(None, ge=1)
    losses: int | None = Field(None, ge=1)
    gradients: int | None = Field(None, ge=1)


class ThreatConfig(Strict):
    """Who answers the attacker and what it sees."""

    answers: Literal["victim", "undefended", "surrogate"] = "victim"
    surrogate: str = Field("", description="name of a judge of this file")
    draws: int = Field(1, ge=1)
    verdict_only: bool = False
    rationale: bool = False
    attacker: str = Field("", description="model that writes for the attack")
    budget: BudgetConfig = BudgetConfig()


class Config(Strict):
    """The whole file."""

    name: str = "run"
    cases: list[CasesConfig] = Field(default_factory=lambda: [CasesConfig()])
    judges: dict[str, JudgeConfig] = Field(default_factory=dict)
    models: dict[str, ModelConfig] = Field(default_factory=dict)
    protocols: list[str] = Field(default_factory=lambda: ["pointwise"])
    attacks: list[str] = Field(default_factory=lambda: ["heuristic"])
    controls: list[str] = Field(default_factory=lambda: ["identity", "neutral/H6", "shuffled_payload/H6"])
    quick: bool = Field(False, description="attack settings for a small local model")
    defenses: dict[str, dict[str, Any] | None] = Field(default_factory=dict)
    threats: list[ThreatConfig] = Field(default_factory=lambda: [ThreatConfig()])
    seed: int = Field(0, ge=0, description="first seed")
    seeds: int = Field(1, ge=1, description="number of seeds")
    repeats: int = Field(1, ge=1, description="final evaluations of each attacked text")
    evaluators: dict[str, str] = Field(default_factory=dict, description="task kind -> quality evaluator")
    train_share: float = Field(0.0, ge=0.0, lt=1.0, description="share of cases on which universal attacks are fitted")
    max_calls: int | None = Field(None, ge=1)
    max_cost: float | None = Field(None, gt=0)
    tau: float = Field(1.0, gt=0, description="scale points of rise that count as success")
    policy: str = Field("", description="policy file of the release gate")
