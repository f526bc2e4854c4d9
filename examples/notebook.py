"""The main job in Python: works in a script and inside a notebook's running event loop."""

import robustjudge as rj

judge = rj.Prompted("scripted/gameable", rj.template("robustjudge"))
plan = rj.Plan(
    cases=lambda: rj.builtin_cases("mathematics"),
    judges=(("mine", judge),),
    protocols=(rj.Pointwise(),),
    attacks=tuple(rj.attack(name) for name in ("identity", "H1", "H5", "H6")),
)
run = rj.run(plan)
run.report()  # report.html, report.md and report.json in run.path
print(run.table().to_pandas().groupby("attack", observed=True)["attacked_score"].mean())
