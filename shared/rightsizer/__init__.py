"""rightsizer: finds oversized SageMaker GPU endpoints and changes them, with a proven way back.

The flow, in order: trigger, observation, usage, demand, options, recommendation, proposal, change, outcome, report.
`docs/architecture.md` draws the floors; import-linter holds them.
"""

__version__ = "0.2.0.dev0"
