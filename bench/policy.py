"""The engine as a policy of the referee: views in, the engine's own inputs, its recommendation, an action out.

No second engine: every figure and every decision comes from `recommender.recommend.recommend`. The referee is
imported only when an action is made; what it passes in is typed by the Protocols of `bench.views`.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

from bench.adapter import DAY_0, Memory, config_name, facts, framework, is_slow_by_habit, outcomes, remember
from bench.causes import NO_ROOM, cause_of, worst_of
from bench.views import Account, Actions, View
from rightsizer.autoscaling.schedules import scheduled_counts
from rightsizer.changes.overruled import ApprovedAs, covered_fleet, overruling_reason
from rightsizer.changes.preflight import withhold_refused
from rightsizer.changes.stages import option_of_stage
from rightsizer.changes.start_limits import budget_share
from rightsizer.dimensions import DIMENSIONS, dimension_of
from rightsizer.domain.endpoint import Endpoint, EndpointKind, EndpointRef, Mode, Objective, ScalableTarget, Variant
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.history import History, OpenQuestion, PastChange, PastEnd
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.price import PriceTable
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.reason import UNREADABLE, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.usage import DailyUsage, VariantUsage
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.proposal import (
    ChangePermission,
    permission_for_endpoint,
    proposal_for,
    withhold_undone_count,
)
from rightsizer.recommender.recommend import recommend

KINDS = {
    "real-time": EndpointKind.REAL_TIME,
    "inference-components": EndpointKind.INFERENCE_COMPONENTS,
    "async": EndpointKind.ASYNC,
}
"""What the referee calls `hosting`."""
KEEP_BUSY = {
    "PolicyName": "keep-busy",
    "PolicyType": "TargetTrackingScaling",
    "TargetTrackingScalingPolicyConfiguration": {
        "TargetValue": 0.7,
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
        },
    },
}
"""How the referee scales: 0.7 requests at work for each that an instance serves at once."""


PROVEN_AND_RESTED = 2
"""Days from the beginning of a stage to the next one: its probation and the rest after it, a day each."""


class RightsizerPolicy(ABC):
    """The engine with its default thresholds; who answers for an endpoint's owner, a class below says."""

    name = "rightsizer"
    policy = Policy()
    approver = ""
    """Who approves, as `Decision.by`."""

    def __init__(self) -> None:
        self._memory: dict[str, Memory] = {}
        self._catalogue: Catalogue | None = None
        self._prices: PriceTable | None = None
        self.log: list[tuple[int, Recommendation]] = []
        self._questions: dict[str, OpenQuestion] = {}
        """What is pending of each endpoint, or approved and not begun, as the product's table has it."""

    def decide(self, account: Account) -> dict[str, object]:
        """One action per endpoint that should change."""
        actions: Actions = importlib.import_module("referee.actions")
        if self._catalogue is None:
            self._catalogue, self._prices = facts(account.catalogue)
        assert self._prices is not None
        for view in account.endpoints:
            remember(self._memory.setdefault(view.endpoint_name, Memory(approver=self.approver)), view, self._catalogue)
        known = {name: tuple(outcomes(memory)) for name, memory in self._memory.items()}
        out: dict[str, object] = {}
        for view in account.endpoints:
            memory = self._memory[view.endpoint_name]
            others = tuple(past for name, some in known.items() if name != view.endpoint_name for past in some)
            found = self._judge(view, memory, others, account.day)
            self.log.append((account.day, found))
            answer = self._answer(actions, found, view)
            if answer is not None:
                out[view.endpoint_name], memory.option = answer
        return out

    @abstractmethod
    def _answer(self, actions: Actions, found: Recommendation, view: View) -> tuple[object, Option] | None:
        """The action of the day and the option that it carries out; None keeps."""

    @abstractmethod
    def _observed(self, view: View, memory: Memory) -> tuple[Endpoint, tuple[DailyUsage, ...]]:
        """The endpoint as its owner set it up, and the days that the engine reads."""

    def _judge(self, view: View, memory: Memory, others: tuple[PastChange, ...], day: int) -> Recommendation:
        assert self._catalogue is not None
        assert self._prices is not None
        now = DAY_0 + timedelta(days=day)
        endpoint, days = self._observed(view, memory)
        usage = VariantUsage(view.endpoint_name, view.variant_name, days)
        tests = sum(1 for c in memory.changes if c.ended is PastEnd.TESTED)
        asked = self._questions.get(view.endpoint_name)
        history = History(endpoint=tuple(memory.changes), account=others, tests_this_month=tests, asked=asked)
        inputs = AccountInputs(self._prices, self._catalogue, {}, history, self.policy, now)
        return recommend(endpoint, usage, inputs, DIMENSIONS)


class ShippedAuto(RightsizerPolicy):
    """The product as it is installed: default settings, endpoints tagged auto, and nobody answers what it asks.

    Owners declared what the referee shows of them and no more: an objective on about half, no least instances, no
    leave for shadow tests. An action is what the product carries out itself on that kind of endpoint.
    """

    name = "rightsizer (shipped, auto)"
    mode = Mode.AUTO
    limits = ChangeLimits()
    proposal_days = 14

    def __init__(self) -> None:
        super().__init__()
        self.causes: list[tuple[int, str, str, float]] = []
        """Day, endpoint, why nothing was done or what was, and what the chosen option saves, US dollars a month."""
        self._begun: tuple[int, int, Decimal] = (-1, 0, Decimal(0))
        """The day, the changes that began on it, and US dollars of their switches."""
        self._now: dict[str, Endpoint] = {}

    def _observed(self, view: View, memory: Memory) -> tuple[Endpoint, tuple[DailyUsage, ...]]:
        """The endpoint, and its days since the owner's last deployment, as the product reads them."""
        found = _installed(view, memory, self.mode)
        self._now[view.endpoint_name] = found
        first = found.modified_at.date() if found.is_plain and not found.scaling else date.min
        return found, tuple(day for day in memory.digests if day.day >= first)

    def _answer(self, actions: Actions, found: Recommendation, view: View) -> tuple[object, Option] | None:
        proposal = self._proposal(found)
        if proposal is None or found.chosen_option is None:
            self._say(found, cause_of(found))
        elif proposal.state is ProposalState.APPROVED:
            return self._done(actions, found, found, view)
        else:
            self._say(found, f"asked, nobody answers: {cause_of(found)}")
        return None

    def _proposal(self, found: Recommendation) -> Proposal | None:
        """What is asked by the recommendation; it takes the place of what was pending, which missing data leave."""
        proposal = proposal_for(found, self._reach(found), self.proposal_days, found.evaluated_at)
        if proposal is not None and found.chosen_option is not None:
            self._questions[found.ref.name] = OpenQuestion(found.chosen_option, found.fingerprint)
        elif found.finding is not Finding.NOT_ENOUGH_DATA and found.gate_reason.code not in UNREADABLE:
            self._questions.pop(found.ref.name, None)
        return proposal

    def _reach(self, found: Recommendation) -> ChangePermission:
        """What the deployed role may do: the stack may change endpoints, untagged ones too."""
        assert self._catalogue is not None
        endpoint = self._now[found.ref.name]
        permission = withhold_undone_count(
            endpoint, found, permission_for_endpoint(endpoint, writes=True, untagged=True)
        )
        option = found.chosen_option
        deploys = option is not None and dimension_of(option.kind).is_deployed(option)
        return withhold_refused(endpoint, option, deploys, self._catalogue, permission)

    def _done(
        self, actions: Actions, found: Recommendation, decided: Recommendation, view: View
    ) -> tuple[object, Option] | None:
        """The action of what was decided, while there is room for a change on the day of what is found."""
        option = decided.chosen_option
        action = None if option is None else carried(actions, decided, option, view)
        if option is None or action is None:
            self._say(found, f"the program does not do {option.kind.value if option else 'that'} on {view.hosting}")
            return None
        if not self._begin(option, day_of(found)):
            self._say(found, NO_ROOM)
            return None
        self._say(found, "done")
        if decided.gate is not Gate.TEST and not option.test_usd:  # after a test the change is still to begin
            self._questions.pop(found.ref.name, None)
        return action, option

    def _begin(self, option: Option, day: int) -> bool:
        """Whether the limits of a day leave room for the change; then it counts on that day."""
        before, changes, usd = self._begun
        if before != day:
            changes, usd = 0, Decimal(0)
        if not budget_share(f"{day}", option.switch_usd, self.limits, restores=option.restores).room.has(changes, usd):
            return False
        self._begun = (day, changes + 1, usd + option.switch_usd)
        return True

    def _say(self, found: Recommendation, cause: str) -> None:
        usd = float(found.chosen_option.saving_usd_per_month) if found.chosen_option is not None else 0.0
        self.causes.append((day_of(found), found.ref.name, cause, usd))


class ShippedApproved(ShippedAuto):
    """Default thresholds; no endpoint is tagged, and a person approves a day later what has a button and
    performance risk 0 or 1. One instance in one Availability Zone is told beside that risk, and approved.

    A stack changes untagged endpoints after an approval only with `MayChange=tagged-and-untagged`; its default is
    `tagged`, where such an endpoint has no button. Every other setting is the default.
    """

    name = "rightsizer (shipped, approved)"
    mode = Mode.PROPOSE
    approver = "slack:U1"
    risk = 1
    """The largest performance risk that is approved."""

    def __init__(self) -> None:
        super().__init__()
        self._approved: dict[str, tuple[Recommendation, str]] = {}
        """What was proposed the day before and is approved now, with the state that it was decided on."""
        self._tested: set[str] = set()
        """Endpoints whose approved option had its test, and whose change may follow."""
        self._plans: dict[str, tuple[Recommendation, int]] = {}
        """What was approved with a stage that follows, and the day on which its first stage began."""

    def _answer(self, actions: Actions, found: Recommendation, view: View) -> tuple[object, Option] | None:
        asked, state = self._approved.pop(view.endpoint_name, (None, ""))
        if found.gate is Gate.APPLY:  # the way back, which the approval of the change permits
            return super()._answer(actions, found, view)
        after = view.endpoint_name in self._tested
        self._tested.discard(view.endpoint_name)
        if (later := self._next_stage(actions, found, view)) is not None:
            return later
        if asked is None or asked.chosen_option is None or state != self._now[view.endpoint_name].fingerprint:
            self._ask(found)
            return None
        begins = ApprovedAs.TEST if asked.offers_test else ApprovedAs.CHANGE
        begins = ApprovedAs.CHANGE_AFTER_TEST if after else begins
        assert self._catalogue is not None
        option = covered_fleet(asked.chosen_option, asked, found, self._catalogue, approved_as=begins)
        asked = replace(asked, options=(option,))
        refused = overruling_reason(option, asked, found, approved_as=begins)
        if refused is not None:
            self._questions.pop(view.endpoint_name, None)  # withdrawn; the next evaluation asks anew
            self._say(found, f"approved, then overruled: {refused.code.value}")
            return None
        untested = replace(asked, options=(replace(option, test_usd=Decimal(0)),))
        answer = self._done(actions, found, untested if after else asked, view)
        waits = answer is None and self.causes[-1][2] == NO_ROOM
        if answer is not None and begins is not ApprovedAs.TEST and asked.stages:
            self._plans[view.endpoint_name] = (asked, day_of(found))
        if (begins is ApprovedAs.TEST and answer is not None) or (waits and after):
            self._tested.add(view.endpoint_name)
        if waits or view.endpoint_name in self._tested:
            self._approved[view.endpoint_name] = (asked, state)
        return answer

    def _next_stage(self, actions: Actions, found: Recommendation, view: View) -> tuple[object, Option] | None:
        """The next stage of an approved plan, where the one before was proven for a day and rested for another."""
        asked, began = self._plans.get(view.endpoint_name, (None, 0))
        if asked is None or day_of(found) < began + PROVEN_AND_RESTED:
            return None
        stage = asked.stages[0]
        del self._plans[view.endpoint_name]
        if view.instance_type != stage.target.instance_type or max(view.instance_counts) != min(view.instance_counts):
            self._say(found, "plan: the stage before does not stand")
            return None
        option = option_of_stage(stage, found.variant, found)
        if isinstance(option, Reason) or overruling_reason(option, asked, found) is not None:
            self._say(found, "plan: ended by new facts")
            return None
        return self._done(actions, found, replace(asked, options=(option,), stages=()), view)

    def _ask(self, found: Recommendation) -> None:
        proposal = self._proposal(found)
        if proposal is None or found.chosen_option is None:
            self._say(found, cause_of(found))
        elif not proposal.approvable:
            self._say(found, f"no button: {found.chosen_option.kind.value}")
        elif (risk := found.chosen_option.performance_risk) > self.risk:
            self._say(found, f"asked at risk {int(risk)}: {worst_of(found.chosen_option)}")
        else:
            self._approved[found.ref.name] = (found, self._now[found.ref.name].fingerprint)
            self._say(found, "asked, approved the next day")


def day_of(found: Recommendation) -> int:
    """The referee's day of a judgement."""
    return (found.evaluated_at - DAY_0).days


def carried(actions: Actions, found: Recommendation, option: Option, view: View) -> object | None:
    """The option as the action that the product would carry out on such an endpoint; None where it would not."""
    dimension = dimension_of(option.kind)
    if not option.in_place or not dimension.keeps or KINDS[view.hosting] not in dimension.applies_to:
        return None
    if found.gate is Gate.TEST or option.test_usd > 0:  # who is asked about an option with a test runs the test
        return actions.Trial(option.target.instance_type, hours=2.0 if option.test_hours is None else option.test_hours)
    if option.kind is OptionKind.SCALE_TO_ZERO:
        return actions.ScaleToZeroWhenIdle(option.target.idle_minutes or 60)
    target = option.target
    if view.autoscale_max is not None and target.minimum is not None:  # the owner's scaling starts from its minimum
        target = replace(target, instance_count=target.minimum)
    watched = found.finding is not Finding.UNDER_PROVISIONED and not is_slow_by_habit(view)
    return _deploy(actions, target, view, guard=watched)


def _installed(view: View, memory: Memory, mode: Mode) -> Endpoint:
    """The view as the endpoint that the product would observe: its kind, its owner's tags and scaling as they are."""
    given = dict(view.tags)
    kind = KINDS[view.hosting]
    tags = {key: value for key, value in given.items() if key == "environment"}
    if given.get("cold-start-ok") == "true":
        tags["rightsizer:cold-start-ok"] = "true"
    if mode is Mode.AUTO:
        tags["rightsizer:mode"] = "auto"
    scaling: tuple[ScalableTarget, ...] = ()
    if view.autoscale_max is not None or len(set(view.instance_counts)) > 1 or view.scale_to_zero_minutes is not None:
        least = 0 if view.scale_to_zero_minutes is not None else min(view.instance_counts)
        top = max(view.autoscale_max or 0, *view.instance_counts)
        resource = f"endpoint/{view.endpoint_name}/variant/{view.variant_name}"
        policies = (KEEP_BUSY,) if view.autoscale_max is not None else ()
        dimension = "sagemaker:variant:DesiredInstanceCount"
        done = memory.option.target if memory.option is not None else None
        ours = _our_actions(done.hourly_counts) if done is not None and done.hourly_counts else ()
        scaling = (ScalableTarget(resource, dimension, least, top, policies=policies, scheduled=ours),)
    managed = None
    if kind is EndpointKind.INFERENCE_COMPONENTS:  # instances follow the copies, down to one until a change
        managed = 0 if view.scale_to_zero_minutes is not None else 1
    count, long_ago = max(view.instance_counts), DAY_0 - timedelta(days=60)
    return Endpoint(
        ref=EndpointRef("111122223333", "us-east-1", view.endpoint_name),
        status="InService",
        config_name=config_name(given.get("model-version", "")),
        created_at=long_ago,
        modified_at=DAY_0 + timedelta(days=memory.since if memory.since else -60),
        kind=kind,
        kinds=(kind,),
        variants=(
            Variant(view.variant_name, "model", view.instance_type, count, count, 1.0, (), view.routing, managed),
        ),
        tags=tags,
        mode=mode,
        mode_declared=mode is Mode.AUTO,
        objective=Objective(view.slo_p95_ms / 1000 if view.slo_p95_ms is not None else None),
        owner="referee",
        owned_by="",
        scaling=scaling,
        framework=framework(view),
    )


def _our_actions(counts: Sequence[int]) -> tuple[dict[str, object], ...]:
    """Scheduled actions of counts by the hour, as a change of ours leaves them."""
    return tuple(
        {
            "ScheduledActionName": f"rightsizer-c-{one.label}",
            "Schedule": one.schedule,
            "ScalableTargetAction": {"MinCapacity": one.count, "MaxCapacity": one.count},
        }
        for one in scheduled_counts(counts)
    )


def _deploy(actions: Actions, target: Target, view: View, guard: bool) -> object:
    """The deployment; what brings room back has no guard, for what was before it is worse."""
    counts = target.hourly_counts or (target.instance_count,) * 24
    top = target.maximum
    if top is None and view.autoscale_max is not None:
        top = max(view.autoscale_max, *counts)
    return actions.Deploy(target.instance_type, counts, autoscale_max=top, routing=target.routing, guard=guard)
