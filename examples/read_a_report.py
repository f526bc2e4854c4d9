"""Reading figures in code: every figure is an Estimate with interval, n and method; undefined is never 0."""

import json

import robustjudge as rj

plan = rj.Plan(
    cases=lambda: rj.builtin_cases("logic"),
    judges=(("mine", rj.Prompted("scripted/gameable", rj.template("robustjudge"))),),
    protocols=(rj.Pointwise(),),
    attacks=tuple(rj.attack(name) for name in ("identity", "H1", "H5")),
)
run = rj.run(plan)
report = json.loads(run.report(("json",))["json"].read_text("utf-8"))
for panel in report["panels"]:
    for line in panel["lines"]:
        figure = line["figures"]["asr"]
        if figure["value"] is None:
            print(f"{line['attack']}: undefined, {figure['reason']}")
        else:
            print(
                f"{line['attack']}: {figure['value']:.2f} [{figure['low']:.2f}, {figure['high']:.2f}]"
                f" of {figure['n']} cases, {figure['method']}"
            )
    for flag in panel["flags"]:
        print(f"check: {flag}")
