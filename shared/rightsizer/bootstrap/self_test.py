"""The self-test of a function: our own event asks for its checks, and the answer is a list.

Only who may invoke the function directly can send that event: what comes through a queue, a stream, a rule or the
Function URL is wrapped, and has other fields at its top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


SOURCE, DETAIL_TYPE = "rightsizer.terminal", "Self Test"


def event() -> dict[str, str]:
    """Event that `rightsizer doctor --deployed` sends."""
    return {"source": SOURCE, "detail-type": DETAIL_TYPE}


def answer(door: str, received: Any) -> dict[str, Any] | None:
    """The checks of this door where the event asks for them, else None. It changes nothing but its own marker."""
    asked = isinstance(received, dict) and (received.get("source"), received.get("detail-type")) == (
        SOURCE,
        DETAIL_TYPE,
    )
    return {"door": door, **_run_checks(door)} if asked else None


def _run_checks(door: str) -> dict[str, Any]:
    import platform
    from dataclasses import replace

    import botocore

    from rightsizer import __version__, wire
    from rightsizer.aws.self_test import SelfTestParts, checks, scene_of
    from rightsizer.bootstrap import now, session, settings
    from rightsizer.bootstrap.channels import slack
    from rightsizer.domain.self_test import Check, Outcome
    from rightsizer.errors import RightsizerError

    versions = {"rightsizer": __version__, "python": platform.python_version(), "botocore": botocore.__version__}
    try:
        known = settings()
        scene = scene_of(session(), now(), known.table, known.slack_secret)
        if not isinstance(scene, Check):
            scene = replace(scene, policy_parameter=known.policy_parameter, bill=known.bill)
    except RightsizerError as error:
        remedy = "correct the setting that the message names, and deploy again"
        lost = Check("settings", "reading settings and knowing the role", Outcome.FAILED, str(error), remedy)
        return {"versions": versions, "checks": wire.plain([lost])}
    if isinstance(scene, Check):
        return {"versions": versions, "checks": wire.plain([scene])}
    channel = slack() if door == "propose" else None  # the other doors that post use the same token and channel
    parts = SelfTestParts(door, scene, _builder(door), known.bucket, channel.checks if channel is not None else None)
    return {"versions": versions, "checks": wire.plain(list(checks(parts)))}


def _builder(door: str) -> Callable[[], object]:
    """What makes the flow of the door."""
    from rightsizer.bootstrap import changes, evaluation, proposals

    builders: dict[str, Callable[[], object]] = {
        "sweep": evaluation.sweep,
        "evaluate": evaluation.evaluate,
        "interruption": evaluation.interruption,
        "propose": proposals.propose,
        "respond": proposals.respond,
        "picture": proposals.picture,
        "report": proposals.report,
        "apply": changes.apply,
        "hours": changes.hours,
    }
    return builders[door]
