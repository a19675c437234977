"""rightsizer: finds oversized SageMaker GPU endpoints and changes them, with a proven rollback.

The flow, in order: trigger, observation, usage, demand, options, recommendation, proposal, change, outcome, report.
`docs/architecture.md` draws the floors; import-linter holds them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rightsizer.advice.advise import advise as advise

__version__ = "0.3.0.dev0"


def __getattr__(name: str) -> Any:
    """``from rightsizer import advise`` loads the advice and its tables then, and no function of the stack does."""
    if name == "advise":
        from rightsizer.advice.advise import advise

        return advise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
