"""A real model on this machine, without a key or network once it is pulled."""

import robustjudge as rj
from robustjudge.models.pull import is_pulled

if not is_pulled("smollm2"):
    raise SystemExit("fetch the weights once: robustjudge models pull smollm2")

judge = rj.Prompted("llamacpp/smollm2", rj.template("brief").plain(), expect=True, constrained=True)
plan = rj.Plan(
    cases=lambda: rj.builtin_cases("translation", 2),
    judges=(("smollm2", judge),),
    protocols=(rj.Pointwise(),),
    attacks=(rj.attack("identity"), rj.attack("H1")),
)
table = rj.run(plan).table()
print("clean", table["clean_expected"], "attacked", table["attacked_expected"])
