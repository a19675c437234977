"""A believable recommendation, proposal and change, for tests that need one and are not about judging."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from rightsizer.domain.approvers import Approvers
from rightsizer.domain.change import Change
from rightsizer.domain.endpoint import EndpointKind, EndpointRef, Mode
from rightsizer.domain.option import Effort, Excluded, Option, OptionKind, Risk, RiskResource, Target
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.price import Price
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Evidence, Finding, Gate, Recommendation, Replay

NOW = datetime(2026, 1, 12, 9, 30, tzinfo=UTC)


def price(name: str, usd: str) -> Price:
    return Price(name, "eu-west-1", Decimal(usd), "price-list-api", "Hosting", "2026-01-05")


def option(**changes: Any) -> Option:
    made = Option(
        kind=OptionKind.INSTANCE_TYPE,
        target=Target("ml.g5.xlarge", 1),
        price=price("ml.g5.xlarge", "1.40"),
        usd_per_month=Decimal("1022"),
        saving_usd_per_month=Decimal("4140.50"),
        switch_usd=Decimal("3.20"),
        payback_days=0.1,
        risks={RiskResource.GPU_MEMORY: Risk.VERY_LOW, RiskResource.LATENCY: Risk.LOW},
        risk=Risk.LOW,
        confidence=12.5,
        effort=Effort.VERY_LOW,
        restart_needed=True,
        rollback_possible=True,
        in_place=True,
        client_change="",
        p95_s=0.41,
        notes=("One GPU instead of four: the model uses only the first.",),
        facts={"GPU memory need": "13.1 GiB of 22.0 GiB"},
        not_checked=("host memory bandwidth",),
    )
    return replace(made, **changes)


def recommendation(name: str = "chat-7b", **changes: Any) -> Recommendation:
    shape = tuple(40 + 35 * math.sin(math.tau * (hour - 8) / 24) for hour in range(14 * 24))
    made = Recommendation(
        ref=EndpointRef("111122223333", "eu-west-1", name),
        variant="AllTraffic",
        kind=EndpointKind.REAL_TIME,
        mode=Mode.PROPOSE,
        owner="search",
        fingerprint=f"{name}-cfg|1",
        evaluated_at=NOW,
        instance_type="ml.g5.12xlarge",
        instance_count=1,
        price=price("ml.g5.12xlarge", "7.09"),
        usd_per_month=Decimal("5175.70"),
        finding=Finding.OVER_PROVISIONED,
        reason=Reason(Code.CHEAPER_OPTION, "p95 of GPU use is 11 % of four A10G; one A10G carries it at 44 %."),
        gate=Gate.PROPOSE,
        gate_reason=Reason(Code.NEEDS_APPROVAL, "The endpoint is tagged rightsizer:mode=propose."),
        options=(option(),),
        evidence=Evidence(
            start=NOW - timedelta(days=14),
            end=NOW,
            days=14.0,
            valid_share=0.998,
            requests=1_240_551,
            rung="L1",
            figures={"GPU use, p95": "11 %", "Model latency, p95": "0.28 s"},
        ),
        replay=Replay(14, 3.0, 1.0, 0.44, 8.9, 7, tuple(value / 170 for value in shape), 1240, 2, 0.5),
        excluded=(Excluded("ml.g4dn.xlarge", Reason(Code.TOO_SLOW, "p95 would be 0.9 s, above the 0.5 s declared.")),),
        not_checked=("downstream time-outs",),
        hourly_requests=tuple(value * 90 for value in shape),
    )
    return replace(made, **changes)


def proposal(identity: str = "p-5f2c9a7d1e3b4c60", name: str = "chat-7b", **changes: Any) -> Proposal:
    made = Proposal(
        id=identity,
        recommendation=recommendation(name),
        created_at=NOW,
        expires_at=NOW + timedelta(days=14),
        state=ProposalState.PENDING,
        approvable=True,
    )
    return replace(made, **changes)


def with_approver(limits: ChangeLimits, by: str) -> ChangeLimits:
    """The limits with a list that names the Slack user who decided, where they have none."""
    source, _, person = by.partition(":")
    if source != "slack" or limits.approvers.entries:
        return limits
    return replace(limits, approvers=Approvers(frozenset({person}), "aws:111122223333"))


def change(at: datetime, **changes: Any) -> Change:
    """A change of the endpoint `chat` that was created at `at`."""
    made = Change(
        id="c-1",
        proposal_id="p-1",
        ref=EndpointRef("1", "eu-west-1", "chat"),
        owner="",
        variant="v",
        option=option(),
        saving_usd_per_month=option().saving_usd_per_month,
        created_at=at,
    )
    return replace(made, **changes)
