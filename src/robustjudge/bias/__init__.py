"""Bias probes: does something that ought not to matter move a judge, by how much, and what is ruled out?

``probe`` runs the probes of a judge as one plan; ``findings`` reads them off the table; ``page`` is the report.
"""

from robustjudge.bias.design import bias_plan, probe
from robustjudge.bias.edits import Edit, Probe, probe_names, probes
from robustjudge.bias.finding import Finding, Report
from robustjudge.bias.findings import findings
from robustjudge.bias.page import page, write
from robustjudge.bias.policy import BiasPolicy

__all__ = [
    "BiasPolicy",
    "Edit",
    "Finding",
    "Probe",
    "Report",
    "bias_plan",
    "findings",
    "page",
    "probe",
    "probe_names",
    "probes",
    "write",
]
