"""Endpoints and keys: settings hold no secret; a missing key is told before anything is sent."""

import os

import robustjudge as rj
from robustjudge.errors import ConfigError
from robustjudge.models.base import Settings

os.environ.pop("HOUSE_GATEWAY_KEY", None)  # so that this example sends nothing
name = "openai/gpt-4o-mini-2024-07-18"
settings = Settings(
    base_url="https://gateway.example/v1",
    key_env="HOUSE_GATEWAY_KEY",
    headers=(("X-Team", "quality"), ("X-Trace", "${HOUSE_TRACE}")),
    rpm=60,
    family="openai",
    price=(0.15, 0.60),
)
plan = rj.Plan(
    cases=lambda: rj.builtin_cases("logic", 2),
    judges=(("mini", rj.Prompted(name, rj.template("robustjudge"))),),
    protocols=(rj.Pointwise(),),
    attacks=(rj.attack("H1"),),
)
try:
    rj.run(plan, rj.Options(models={name: settings}, max_cost=0.50))
except ConfigError as fault:
    print(fault)
