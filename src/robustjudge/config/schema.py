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
    kind: str = Field("", description="task kind where rows name none; chooses the quality evaluator")
    columns: dict[str, Any] = Field(default_factory=dict, description="field of a case -> column of the file")
    make_weak: bool = Field(False, description="make verified weak responses by rule where the file has none")
    split: str = Field("", description="part of a dataset folder")


class SamplingConfig(Strict):
    """How replies are drawn."""

    temperature: float = Field(0.0, description="sampling temperature")
    max_tokens: int = Field(512, ge=1, description="most tokens of a reply")
    top_p: float | None = Field(None, description="nucleus sampling")
    seed: int | None = Field(None, description="seed that is sent to the model")
    stop: list[str] = Field(default_factory=list, description="texts that end a reply")
    top_logprobs: int = Field(0, ge=0, description="alternatives per token to ask for")
    effort: str = Field("", description="reasoning effort")


class JudgeConfig(Strict):
    """A judge: a model with a prompt of yours or a shipped template, a service, or a panel."""

    model: str = Field("", description="provider/model")
    template: str = Field("", description="name of a shipped template")
    prompt: str | dict[str, Any] | None = Field(
        None,
        description="your prompt: a text, {file: PATH}, or one form per protocol {pointwise: {...}, pairwise: {...}}",
    )
    messages: list[dict[str, Any]] | None = Field(None, description="your prompt as chat messages {role, text | file}")
    slots: dict[str, str] = Field(default_factory=dict, description="your slot name -> ours (task, response, ...)")
    scale: dict[str, Any] | list[str] | None = Field(None, description="{min, max, step} or {labels: [...]}")
    reply: str | dict[str, Any] | None = Field(None, description="reply form: a name, or {form, path, pattern, ...}")
    fence: Literal["nonce", "plain"] | None = Field(
        None, description="nonce: our marks around untrusted texts; plain: none"
    )
    syntax: Literal["format", "literal"] | None = Field(
        None, description="format: your prompt is filled by str.format, {{ is one brace; literal: braces stay doubled"
    )
    sampling: SamplingConfig = Field(SamplingConfig(), description="how replies are drawn")
    family: str = Field("", description="model family, where the table does not know it")
    expect: bool = Field(False, description="ask label probabilities too, for an expected score")
    constrained: bool = Field(False, description="hold replies to the verdict line: the likeliest label (local models)")
    repeat: int = Field(1, ge=1, description="ask so often and take the median or strict majority")
    service: dict[str, Any] | None = Field(
        None, description="a judge that somebody else owns: {name, url | callable, ...}"
    )
    panel: list[JudgeConfig] = Field(default_factory=list, description="several judges that vote")
    surrogate: bool = Field(
        False, description="it only answers attackers (a threat model names it), and is not attacked"
    )


class ModelConfig(Strict):
    """How a model is reached; secrets are named as ``${VARIABLE}``, never written."""

    base_url: str = Field("", description="address of the API (default: the provider's own)")
    headers: dict[str, str] = Field(default_factory=dict, description="extra headers; ${VARIABLE} for secrets")
    query: dict[str, str] = Field(default_factory=dict, description="extra query parameters; ${VARIABLE} for secrets")
    ca: str = Field("", description="PEM file of an extra certificate authority")
    proxy: str = Field("", description="URL of an HTTP proxy")
    key_env: str = Field("", description="environment variable that holds the key")
    timeout: float = Field(120.0, description="seconds for one request")
    effort: str = Field("", description="reasoning effort, where the sampling names none")
    family: str = Field("", description="model family, where the table does not know it")
    rpm: float | None = Field(None, description="requests a minute")
    tpm: float | None = Field(None, description="tokens a minute")
    max_concurrency: int = Field(256, description="most requests at once")
    price: tuple[float, float] | None = Field(None, description="USD per million prompt and completion tokens")
    logprobs: bool | None = Field(None, description="whether the endpoint tells log-probabilities")
    revision: str = Field("", description="a tag of yours that separates ledger entries")


class BudgetConfig(Strict):
    """What one trial's attacker may spend; missing is unlimited."""

    queries: int | None = Field(None, ge=1, description="texts evaluated on the judge")
    writes: int | None = Field(None, ge=1, description="texts written by the attacker model")
    losses: int | None = Field(None, ge=1, description="loss evaluations")
    gradients: int | None = Field(None, ge=1, description="gradient steps")


class ThreatConfig(Strict):
    """Who answers the attacker and what it sees."""

    answers: Literal["victim", "undefended", "surrogate"] = Field(
        "victim", description="the judge as deployed, without its defense, or another judge"
    )
    surrogate: str = Field("", description="name of a judge of this file")
    name: str = Field("", description="what reports call it, where two differ only in attacker or budget")
    draws: int = Field(1, ge=1, description="draws of a defense's randomness that feedback is averaged over")
    verdict_only: bool = Field(False, description="feedback says only win or not")
    rationale: bool = Field(False, description="feedback shows the judge's words")
    attacker: str = Field("", description="model that writes for the attack")
    budget: BudgetConfig = Field(BudgetConfig(), description="what one trial may spend")


class Config(Strict):
    """The whole file."""

    name: str = Field("run", description="name of the run, part of its folder's name")
    cases: list[CasesConfig] = Field(
        default_factory=lambda: [CasesConfig()], description="where cases come from (default: the built-in ones)"
    )
    judges: dict[str, JudgeConfig] = Field(default_factory=dict, description="name -> judge")
    models: dict[str, ModelConfig] = Field(default_factory=dict, description="model name -> how it is reached")
    protocols: list[str] = Field(
        default_factory=lambda: ["pointwise"], description="pointwise, grading, pairwise, best_of:K, appeal"
    )
    attacks: list[str] = Field(
        default_factory=lambda: ["heuristic"],
        description="names, aliases, suites, categories, payload:FILE (a TOML file of yours),"
        " variants:FILE (approved red-team texts)",
    )
    controls: list[str] = Field(
        default_factory=lambda: ["identity", "neutral/H6", "shuffled_payload/H6"],
        description="null controls that every attack is compared with",
    )
    quick: bool = Field(False, description="attack settings for a small local model")
    defenses: dict[str, dict[str, Any] | None] = Field(
        default_factory=dict, description="name -> settings; every judge runs bare and behind each of them"
    )
    stacks: int = Field(
        1, ge=1, le=4, description="run every stack of up to so many of the defenses too; the report ranks them"
    )
    threats: list[ThreatConfig] = Field(
        default_factory=lambda: [ThreatConfig()], description="who answers the attacker, and what it may spend"
    )
    seed: int = Field(0, ge=0, description="first seed")
    seeds: int = Field(1, ge=1, description="number of seeds")
    repeats: int = Field(1, ge=1, description="final evaluations of each attacked text")
    evaluators: dict[str, str] = Field(default_factory=dict, description="task kind -> quality evaluator")
    train_share: float = Field(0.0, ge=0.0, lt=1.0, description="share of cases on which universal attacks are fitted")
    max_calls: int | None = Field(None, ge=1, description="hard cap on calls of the run")
    max_cost: float | None = Field(None, gt=0, description="hard cap on the run's cost, USD")
    tau: float = Field(1.0, gt=0, description="scale points of rise that count as success")
    policy: str = Field("", description="policy file of the release gate")
    suite: str = Field("", description="the frozen plan that this was made from, as name@hash/size; set by --suite")
