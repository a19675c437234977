"""Orders of a person: roll back, freeze, thaw, and a proposal for inference components.

Orders are recorded by conditional writes; the `apply` door acts on them. No evaluation proposes what is ordered
here, since nothing here knows what it would save. Such a proposal goes the way of every other: approval, preflight,
journal, probation. Nothing of it is applied by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal, Protocol

from rightsizer.autoscaling.scheduled_actions import change_due_now
from rightsizer.changes.shadow_test_result import change_id_after, passed_test
from rightsizer.changes.stages import UNDONE, change_id_of_next, proven_stage
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass, JournalEvent
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.endpoint import Endpoint, EndpointKind, Mode, Variant
from rightsizer.domain.hours_record import hours_id
from rightsizer.domain.live_state import EndpointSight, Gone
from rightsizer.domain.option import Effort, Money, Option, OptionKind, Risk, RiskResource, ScaleIn, Target, new_option
from rightsizer.domain.plan import terminal_command
from rightsizer.domain.policy import Policy, Switch
from rightsizer.domain.price import Price
from rightsizer.domain.proposal import Proposal, ProposalState, decider_name
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.errors import ConflictError, InputError, ReadError
from rightsizer.ports.changes import Journal
from rightsizer.ports.evaluation import FleetReader, PriceBook
from rightsizer.recommender import proposal
from rightsizer.recommender.pricing import cost_of, monthly_cost
from rightsizer.recommender.proposal import proposal_id

STANDING = (ChangeState.PROVEN, ChangeState.APPLIED)
"""Ends after which the endpoint runs what the change made."""
MOST = 6
"""Components of one change: each is looked at twice while it rolls, and a change costs at most 40 invocations."""
DAYS = 14
"""How long it waits for an answer."""
UNKNOWN = "the saving is not known: how copies are packed on instances is not read, so none is promised or booked"
SAID_NO = (Mode.OFF, Mode.REPORT)


@dataclass(frozen=True, slots=True)
class Orders:
    """Orders are written to the journal; the next tick carries them out."""

    journal: Journal
    look: Callable[[str], EndpointSight | Gone] | None = None
    """How an endpoint looks now; without it the `apply` door alone sees that there is nothing left to go back from."""
    stop: Callable[[str, str, datetime], object] | None = None
    """Records the order on a proposal (id, by, now), where its shadow test passed and its change has no journal yet."""

    def request_rollback(self, change_id: str, by: str, now: datetime) -> Change:
        """Bring the endpoint back to its old configuration, also after the change was proven.

        Of a shadow test that passed, stop the change that follows it; of a plan of several stages, the last one that
        stands goes back. A change that was not begun does not begin. While office hours have stopped the endpoint, the
        order is kept on the proposal until it serves.

        Raises InputError when there is nothing to go back from, ConflictError when another change holds the endpoint.
        """
        change = self.journal.load(change_id)
        if change is None:
            raise InputError(f"rolling back: there is no change {change_id}")
        test = passed_test(change)
        if test is not None:
            following = self.journal.load(change_id_after(test))
            if following is None and self.stop is not None:
                self.stop(change.proposal_id, by, now)
                return change
            change = following or change
        change = self._last_stage(change)
        if change.is_closed:
            self._require_end_to_undo(change)
            if self.journal.holder_of(change.ref.name) == hours_id(change.ref.name):
                return self._keep_for_morning(change, by, now)
            self._require_standing(change)
        note = Entry(now, JournalEvent.ASK_BACK, "noted", by)
        asked = replace(change, asked_back_by=by, next_due=now, journal=(*change.journal, note))
        if change.is_closed or (change.course is Course.CLOSE and change.ending in STANDING):
            back = replace(asked, state=ChangeState.RETURNING, course=Course.BACK, ending=None, remaining=())
            asked = replace(back, back_for=FailureClass.ASKED)
        if asked.course is Course.BACK:
            asked = replace(asked, reason=Reason(Code.ROLLED_BACK, f"{decider_name(by)} asked for the rollback"))
        return self.journal.reopen(replace(asked, lease_until=None)) if change.is_closed else self.journal.save(asked)

    def _last_stage(self, change: Change) -> Change:
        """The last stage of its plan that stands or is under way: it goes back before those before it."""
        stage = proven_stage(change)
        following = self.journal.load(change_id_of_next(stage)) if stage is not None else None
        return change if following is None or following.state in UNDONE else self._last_stage(following)

    def _keep_for_morning(self, change: Change, by: str, now: datetime) -> Change:
        """Record the order on the proposal: `apply` takes it once office hours are done with the endpoint.

        Where it stands there already, as for `apply` itself, it stays: ConflictError.
        """
        if self.stop is None:
            name = change.ref.name
            raise ConflictError(f"rolling back: office hours have stopped {name}, or start it; it goes back after that")
        self.stop(change.proposal_id, by, now)
        return change

    def _require_end_to_undo(self, change: Change) -> None:
        """Raises InputError where the closed change left nothing to undo."""
        if change.state not in STANDING:
            raise InputError(f"rolling back: change {change.id} is {change.state.value}; there is nothing to undo")

    def _require_standing(self, change: Change) -> None:
        """Raises InputError unless the endpoint still runs what the closed change made."""
        if self.look is None:
            return
        endpoint, name = self.look(change.ref.name), change.ref.name
        if isinstance(endpoint, Gone):
            raise InputError(f"rolling back: endpoint {name} does not exist any more; there is nothing to undo")
        made = change.plan.new_config or (change.before.config_name if change.before else "")
        other = next((c for c in (endpoint.pending_config, endpoint.config_name) if c and c != made), "")
        if other:
            raise InputError(
                f"rolling back: {name} runs configuration {other}, and change {change.id} left it with {made}; "
                "somebody deployed since, so going back would undo their work"
            )

    def freeze(self, by: str, now: datetime, *, hard: bool = False) -> tuple[Change, ...]:
        """Stop new changes and forward steps; returns the open changes with the autoscaling due now."""
        self.journal.set_switch(Switch(True, hard, by, now))
        return tuple(change_due_now(change, now).change for change in self.journal.open_changes())

    def thaw(self, by: str, now: datetime) -> None:
        """Let changes go on."""
        self.journal.set_switch(Switch(False, False, by, now))


class ProposalStore(Protocol):
    """Keeps proposals that a person ordered."""

    def order(self, proposal: Proposal) -> bool:
        """Open it as the endpoint's only open proposal; False when it was there, or another is being carried out."""
        ...


@dataclass(frozen=True, slots=True)
class _OrderedTarget:
    """The target that a person ordered, and what it risks."""

    kind: OptionKind
    target: Target
    risks: dict[RiskResource, Risk]


@dataclass(frozen=True, slots=True)
class ComponentOrders:
    """Drafts and puts the proposals that a person asks for."""

    fleet: FleetReader
    prices: PriceBook
    orders: ProposalStore
    components: Callable[[str], Mapping[str, ComponentSight]]
    """The inference components of an endpoint, by name."""

    def scale_in(self, name: str, variant: str, scale_in: ScaleIn, by: str, now: datetime) -> Proposal:
        """Ask for another scale-in policy; `variant` may be empty where there is one.

        Raises InputError where the endpoint cannot have it, with what to do instead; ConflictError where another
        proposal is in the way; ReadError.
        """
        endpoint = self._endpoint(name)
        mine = _variant(endpoint, variant)
        target = Target(mine.instance_type, mine.current_count, scale_in=replace(scale_in, variant=mine.name))
        risks = {RiskResource.LATENCY: Risk.MEDIUM, RiskResource.CAPACITY: Risk.LOW}
        return self._open_proposal(endpoint, mine, _OrderedTarget(OptionKind.SCALE_IN, target, risks), by, now)

    def placement(
        self, name: str, strategy: Literal["SPREAD", "BINPACK"], wanted: Sequence[str], by: str, now: datetime
    ) -> Proposal:
        """Ask for another placement of these components; of all that have resources of their own where none is named.

        Errors as of `scale_in`.
        """
        endpoint, known = self._endpoint(name), self.components(name)
        missing = sorted(set(wanted) - set(known))
        if missing:
            raise InputError(f"endpoint {name} has no component {missing[0]}; it has {', '.join(sorted(known))}")
        names = {*wanted} or {c.name for c in known.values() if not c.base_component and c.strategies != {strategy}}
        if not names:
            raise InputError(f"asking about {name}: every component of {name} is placed so already")
        if len(names) > MOST:
            text = f"{len(names)} components are not placed so, and one change moves at most {MOST}: name them with "
            raise InputError(f"asking about {name}: {text}--component, and ask about the others after it")
        mine = endpoint.variants[0]
        placed = tuple((component, strategy) for component in sorted(names))
        target = Target(mine.instance_type, mine.current_count, placement=placed)
        risks = {RiskResource.LATENCY: Risk.MEDIUM, RiskResource.CAPACITY: Risk.MEDIUM}
        return self._open_proposal(endpoint, mine, _OrderedTarget(OptionKind.PLACEMENT, target, risks), by, now)

    def _open_proposal(
        self, endpoint: Endpoint, variant: Variant, ordered: _OrderedTarget, by: str, now: datetime
    ) -> Proposal:
        price = self.prices.table(endpoint.ref.region, [variant.instance_type])
        found = price.find(variant.instance_type)
        if found is None:
            raise InputError(
                f"asking about {endpoint.ref.name}: {variant.instance_type} has no price, so the cost of two fleets is "
                "not known"
            )
        n, usd = variant.current_count, monthly_cost(found, variant.current_count)
        deploys = ordered.kind is OptionKind.SCALE_IN
        cost = cost_of(usd, found, n, n, 0.0, price.commitment, Policy(), new_fleet=deploys)
        money = Money(usd, Decimal(0), cost.switch_usd, 0.0)
        option = new_option(
            ordered.kind,
            ordered.target,
            found,
            money,
            0.0,
            ordered.risks,
            Effort.LOW,
            in_place=True,
            restarts=True,
            not_checked=(UNKNOWN,),
        )
        proposal = _proposal(endpoint, variant, option, found, by, now)
        _refuse_owned(endpoint, proposal.recommendation)
        if not self.orders.order(proposal):
            raise ConflictError(
                f"asking about {endpoint.ref.name}: this is asked already ({proposal.id}), or another change of the "
                f"endpoint is approved or under way; see {terminal_command('proposals', endpoint.ref.region)}"
            )
        return proposal

    def _endpoint(self, name: str) -> Endpoint:
        found = next(iter(self.fleet.observe(self.fleet.find([name]))), None)
        if found is None:
            raise InputError(f"no endpoint is named {name} in this account and Region")
        if not isinstance(found, Endpoint):
            raise ReadError(f"reading {name}: {found.reason.sentence}")
        if found.tags_unread is not None:
            raise ReadError(f"reading the tags of {name}, which say what may be changed: {found.tags_unread.sentence}")
        if found.kind is not EndpointKind.INFERENCE_COMPONENTS:
            raise InputError(f"{name} is of the kind {found.kind.value}: it has no inference components")
        if found.mode_declared and found.mode in SAID_NO:
            command = proposal.tag_command(found.ref)
            raise InputError(
                f"the tag rightsizer:mode of {name} is {found.mode.value}; its owner lets it be changed with: {command}"
            )
        return found


def _variant(endpoint: Endpoint, name: str) -> Variant:
    names = [v.name for v in endpoint.variants]
    if not name and len(names) == 1:
        return endpoint.variants[0]
    variant = next((v for v in endpoint.variants if v.name == name), None)
    if variant is None:
        raise InputError(f"name one variant of {endpoint.ref.name}: {', '.join(names)}")
    return variant


def _refuse_owned(endpoint: Endpoint, recommendation: Recommendation) -> None:
    """What a stack owns is changed in its source, by the lines that are shown."""
    if endpoint.owned_by:
        why = f"{endpoint.ref.name} is owned by {endpoint.owned_by}, whose next deployment would undo the change:"
        raise InputError(proposal.permission_instructions(endpoint, recommendation, why))


def _proposal(endpoint: Endpoint, variant: Variant, option: Option, price: Price, by: str, now: datetime) -> Proposal:
    reason = Reason(Code.NEEDS_APPROVAL, f"asked for by {decider_name(by)}; {UNKNOWN}")
    recommendation = Recommendation(
        ref=endpoint.ref,
        variant=variant.name,
        kind=endpoint.kind,
        mode=endpoint.mode,
        owner=endpoint.owner,
        fingerprint=endpoint.fingerprint,
        evaluated_at=now,
        instance_type=variant.instance_type,
        instance_count=variant.current_count,
        price=price,
        usd_per_month=option.usd_per_month,
        finding=Finding.NOT_ENOUGH_DATA,
        reason=reason,
        gate=Gate.PROPOSE,
        gate_reason=reason,
        options=(option,),
        evidence=None,
        not_checked=("its use: nothing was measured for this",),
    )
    return Proposal(
        id=proposal_id(recommendation, option),
        recommendation=recommendation,
        created_at=now,
        expires_at=now + timedelta(days=DAYS),
        state=ProposalState.PENDING,
        approvable=True,
        ordered_by=by,
    )
