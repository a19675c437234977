"""Two-step deletion as a plan: mark, wait, watch, then hand over the command and the file that brings it all back.

Nothing is written to AWS. The mark is the journal and the message: a tag on the endpoint would need AddTags on
endpoints, and who holds that can opt endpoints in. No role of the program may delete one.
"""

from rightsizer.changes import deletion as farewell
from rightsizer.changes.plan.planned import Planned
from rightsizer.domain.change import Change
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.plan import Before, Plan
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import Ground
from rightsizer.domain.reason import Code, Reason


def two_steps(
    change: Change, ground: Ground, config: ConfigSight, before: Before, limits: ChangeLimits
) -> Planned | tuple[Reason, ...]:
    """The plan, or why there is none. An asynchronous endpoint publishes no Invocations, so waiting proves nothing."""
    kind = ground.proposal.recommendation.kind
    if kind is not EndpointKind.REAL_TIME:
        text = f"whether an endpoint of kind {kind.value} is used cannot be told by its invocations; its owner decides"
        return (Reason(Code.OTHER_KIND, text),)
    days = limits.grace.total_seconds() / 86_400
    plan = Plan(
        after=before.variants,
        kind="delete",
        guardrail=f"marked for deletion and watched for {days:g} days; rightsizer deletes nothing itself",
        test_s=int(limits.grace.total_seconds()),
        restore_file=farewell.restore_file(change.ref, config, before),
    )
    return Planned(before, plan)
