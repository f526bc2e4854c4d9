"""A defense before a judge, with the bare judge as its matched baseline."""

import robustjudge as rj

judge = rj.Prompted("scripted/fenced", rj.template("robustjudge").plain())
plan = rj.Plan(
    cases=lambda: rj.builtin_cases("knowledge"),
    judges=(("fenced", judge),),
    defenses=(("none", None), ("random_delimiters", rj.defense("random_delimiters", {}))),
    protocols=(rj.Pointwise(),),
    attacks=tuple(rj.attack(name) for name in ("identity", "H1", "H6")),
)
table = rj.run(plan).table()
for shield in table.distinct("defense"):
    for attack in table.distinct("attack"):
        rows = table.only(defense=shield, attack=attack)
        print(
            f"{shield}, {attack}: clean {rows['clean_score'].mean():.1f}, attacked {rows['attacked_score'].mean():.1f}"
        )
