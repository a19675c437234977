"""The alarms of the stack and the entries of docs/runbook.md, followed on the simulated account."""
