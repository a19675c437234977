"""Ports of the flows, as Protocols; adapters in `rightsizer.aws` keep these promises.

Every method may raise the errors of `rightsizer.errors`: a read ReadError or a subclass, a write WriteRefusedError
or ConflictError. Times are aware UTC; money is US dollars.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # a door loads the nouns that it uses itself
    from rightsizer.domain.component import DescribedComponent
    from rightsizer.domain.endpoint import EndpointRef, Observation
    from rightsizer.domain.history import History, OpenQuestion
    from rightsizer.domain.message import CapacityChangeMessage, Gathering, Message, ProposalMessage
    from rightsizer.domain.outcome import UnreadRow
    from rightsizer.domain.price import KnownPrices, PriceTable
    from rightsizer.domain.proposal import MessageRef, Proposal, ProposalState
    from rightsizer.domain.recommendation import Recommendation
    from rightsizer.domain.report import Report
    from rightsizer.domain.trigger import ListedEndpoint, LookAt
    from rightsizer.domain.usage import KeptUsage, MetricStatistic, MetricWindow, NoMetrics
    from rightsizer.errors import RightsizerError


@dataclass(frozen=True, slots=True)
class EndpointSummary:
    """One row of ListEndpoints."""

    ref: EndpointRef
    status: str
    created_at: datetime
    modified_at: datetime


class FleetReader(Protocol):
    """Reads endpoints. One bad endpoint never stops the others."""

    def list_endpoints(self) -> Iterator[EndpointSummary]:
        """Every endpoint of the account and Region, in pages of 100."""
        ...

    def recall(self, listed: Sequence[ListedEndpoint]) -> None:
        """Take what is remembered of endpoints as they were listed lately, until the next call."""
        ...

    def find(self, names: Iterable[str]) -> list[EndpointSummary]:
        """The summaries of these endpoints; names that do not exist are left out."""
        ...

    def observe(self, summaries: Sequence[EndpointSummary]) -> Iterator[Observation]:
        """Each endpoint with configuration, tags, autoscaling and models; Unobserved where that failed."""
        ...


class AlarmReader(Protocol):
    """Asks CloudWatch which endpoints an alarm means."""

    def endpoints_in_alarm(self, alarm: str) -> tuple[str, ...]:
        """Endpoint names of the contributors in ALARM, or in the dimensions of the alarm and its children."""
        ...


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """Signals to read of one variant."""

    endpoint: str
    variant: str
    signals: tuple[MetricStatistic, ...]
    each_gpu: bool = False
    """Whether to read single GPUs too, of a few of the instances that run: published with enhanced metrics only."""
    kv_cache: bool = False
    """Whether to read how full the KV cache is too: published with detailed observability only."""
    of_component: bool = False
    """Whether `variant` names an inference component, whose metrics carry its name alone."""
    by_day: frozenset[MetricStatistic] = frozenset()
    """Signals that are read as one datapoint a day; only for a window from midnight to midnight, UTC."""


class MetricReader(Protocol):
    """Reads CloudWatch in batches."""

    def read(
        self, requests: Sequence[MetricRequest], start: datetime, end: datetime, period_s: int
    ) -> Iterator[MetricWindow | NoMetrics]:
        """One answer for each request, in their order; the window is aligned to the period outwards."""
        ...


class ComponentReader(Protocol):
    """Describes inference components."""

    def describe(self, endpoint: str) -> Sequence[DescribedComponent]:
        """Each component of an endpoint, read or not. ReadError where they cannot be listed."""
        ...


class DailyUsageStore(Protocol):
    """Keeps digests of complete days, many endpoints to an object. A cache: what is lost is read again."""

    def load(self, page: str) -> Sequence[KeptUsage]:
        """Usage stored under `page`; nothing for a missing or corrupt page, never a wrong day."""
        ...

    def save(self, page: str, kept: Sequence[KeptUsage]) -> None:
        """Merge these into the page. Two writers at once both win; a refused write is logged and costs a full read."""
        ...


class PriceBook(Protocol):
    """Knows what an instance hour costs."""

    def table(self, region: str, instance_types: Iterable[str]) -> PriceTable:
        """Prices of these types, each of the first source that knows one; NoPrice where none does."""
        ...


class PriceSource(Protocol):
    """One place that prices come from. `rightsizer.bootstrap.price_sources` lists them in the order of asking.

    Example:
        >>> class Contract:
        ...     name = "the contract"
        ...
        ...     def known(self, region, instance_types):
        ...         return KnownPrices({name: NoPrice(name, region, NONE_AGREED) for name in instance_types})
        >>> NONE_AGREED = Reason(Code.NO_PRICE, "the contract names no price for the type")
        >>> source: PriceSource = Contract()
        >>> source.known("eu-west-1", ["ml.g5.xlarge"]).prices["ml.g5.xlarge"].reason.sentence
        'the contract names no price for the type'
    """

    name: str
    """With its article, such as ``the price list``: a sentence says that it has no price."""

    def known(self, region: str, instance_types: Collection[str]) -> KnownPrices:
        """Prices that the source knows of these types. ReadError when it cannot be read: the next one is asked."""
        ...


class QuotaReader(Protocol):
    """Knows how many instances of a type the account may run for endpoints."""

    def endpoint_quotas(self) -> Mapping[str, int]:
        """Applied quota by instance type; a type that is absent is unknown, not zero."""
        ...


class PageQueue(Protocol):
    """The evaluation queue."""

    def send_pages(self, pages: Sequence[LookAt]) -> Sequence[tuple[LookAt, RightsizerError]]:
        """Ask for the evaluation of these pages of endpoints; returns those that were refused, each with its error."""
        ...


class EvaluationLog(Protocol):
    """Knows of all endpoints together when each was last evaluated, and what they cost, in one bulk read."""

    def last_evaluations(self) -> Mapping[str, datetime]:
        """Time of the last evaluation by endpoint name."""
        ...

    def note_spending(self, at: datetime) -> None:
        """Keep what all evaluated endpoints cost a month together; the budget of shadow tests is a share of it."""
        ...


class ProposalCloser(Protocol):
    """Closes proposals whose time is over."""

    def expire(self, now: datetime, *, everything: bool) -> tuple[Proposal, ...]:
        """Close the pending proposals that expired by `now`, or of late only; returns those that this call closed."""
        ...

    def tell_again(self, now: datetime, *, everything: bool) -> int:
        """Bring proposals whose message was never posted, or lags (`everything`), to `propose` again; how many."""
        ...


class EventSink(Protocol):
    """The event bus, for machines that follow proposals."""

    def proposal_moved(self, proposal: Proposal) -> None:
        """Send events about the states of the proposal and its change; a state may be sent more than once."""
        ...


class RecommendationStore(Protocol):
    """Keeps the latest recommendation of each endpoint and the proposals."""

    def recommendation(self, endpoint: str) -> Recommendation | None:
        """The latest recommendation of the endpoint, or None. InputError where what is stored cannot be read."""
        ...

    def created_at(self) -> datetime:
        """When the table that holds it was made: a restore and a copy make a new one. ReadError where nobody knows."""
        ...

    def last_evaluated(self, endpoints: Collection[str]) -> Mapping[str, datetime]:
        """When each of these endpoints was last evaluated; one of which that is not known is left out."""
        ...

    def open_questions(self, endpoints: Collection[str]) -> Mapping[str, OpenQuestion]:
        """Pending options, and approved ones that did not begin, by endpoint; one without is left out."""
        ...

    def save(self, recommendation: Recommendation, proposal: Proposal | None) -> bool:
        """Store the recommendation and, in the same write, the proposal; False when that proposal already existed.

        An older pending proposal of the same endpoint with another id is withdrawn.
        """
        ...

    def save_all(self, found: Sequence[tuple[Recommendation, Proposal | None]]) -> None:
        """Store these of different endpoints in few writes; an error leaves some stored, and all may be saved again."""
        ...

    def recommendations(self, unread: list[UnreadRow] | None = None) -> Iterator[Recommendation]:
        """The latest recommendation of every endpoint; rows that cannot be read are passed over, into `unread`."""
        ...

    def history(self, endpoint: str, modified_at: datetime | None = None) -> History:
        """Past changes, tests and failures; `modified_at` spares a read where that is long ago and none is listed."""
        ...

    def proposal(self, proposal_id: str) -> Proposal | None:
        """The proposal as it stands, or None."""
        ...

    def proposals(
        self,
        states: Iterable[ProposalState] = (),
        unread: list[UnreadRow] | None = None,
        ended_since: datetime | None = None,
    ) -> Iterator[Proposal]:
        """Proposals in these states, newest first; all when none is named.

        Without those asked before `ended_since` whose change ended; unreadable rows are put into `unread`.
        """
        ...

    def follow(
        self, proposal_id: str, state: ProposalState, change_id: str, outcome: str, *, measured: Decimal | None = None
    ) -> None:
        """Let the proposal follow its change. Where its row is gone, nothing is written and the change goes on.

        `measured`: what the change saved at the hours that ran, US dollars a month; None where nothing was measured.
        """
        ...

    def rollback_requests(
        self, *, everything: bool = False, unread: list[UnreadRow] | None = None
    ) -> Iterator[Proposal]:
        """Proposals with an order to go back that is not settled; `everything`: those of the first release too.

        Rows that cannot be read are passed over and put into `unread`.
        """
        ...

    def park(self, proposal_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> bool:
        """Leave a proposal that cannot be read, count it, and tell of it once; whether people know.

        `tell` says whether the message was taken.
        """
        ...

    def rollback_request(self, proposal_id: str) -> Proposal | None:
        """The proposal with an unsettled rollback request on its row; None without one."""
        ...

    def settle_rollback_request(self, proposal_id: str, *, is_over: bool = False) -> None:
        """The order to go back was taken or refused: it is not looked for any more.

        With `is_over` it is carried out or refused already, so that what stands may be asked to go back anew.
        """
        ...


class Notifier(Protocol):
    """Sends messages to people; each channel words a message itself, by `rightsizer.render.messages`.

    Example:
        >>> from rightsizer.domain.message import Notice
        >>> class Screen:
        ...     def post(self, message):
        ...         print(message.subject)
        ...
        ...     def update(self, ref, message):
        ...         print(message.subject, "again")
        >>> channel: Notifier = Screen()
        >>> channel.post(Notice("rank: approval expired", "It is asked again."))
        rank: approval expired
    """

    def post(self, message: Message) -> MessageRef | None:
        """Send the message, and return where it is kept; None where it cannot be changed later (SNS, a webhook).

        WriteRefusedError where the channel will not take it the next time either, ThrottledError where it may.
        """
        ...

    def update(self, ref: MessageRef, message: Message) -> None:
        """Let a message that was posted show what it says now; nothing where messages cannot be changed."""
        ...


class Conversation(Protocol):
    """A channel whose messages have threads, and which knows people."""

    def reply(self, ref: MessageRef, message: ProposalMessage) -> None:
        """Say in the thread of the message where its proposal stands."""
        ...

    def person(self, owner: str) -> str:
        """The channel's id of the person that an owner's tag names; empty where it names none.

        WriteRefusedError where the channel may not look people up.
        """
        ...


class DetailsPages(Protocol):
    """Keeps the page with every figure of what a person is asked about."""

    def keep(self, message: ProposalMessage | CapacityChangeMessage) -> str:
        """Make the page as it is now and store it; returns where it is."""
        ...


class MessageBook(Protocol):
    """Remembers where proposals were posted."""

    def message(self, proposal_id: str) -> MessageRef | None:
        """Where the proposal was posted, or None."""
        ...

    def remember(self, message: MessageRef) -> None:
        """Store where it was posted and what it shows; its picture is kept apart (`keep_picture`)."""
        ...

    def keep_picture(self, proposal_id: str, ts: str, file: str) -> None:
        """Store the uploaded picture of the message that was posted at `ts`."""
        ...

    def gathering(self, name: str = "") -> Gathering | None:
        """New proposals of the digest of that name; None where none were gathered."""
        ...

    def swap_gathering(self, gathering: Gathering, version: int, name: str = "") -> None:
        """Store it where the stored one has that version, 0 for none. ConflictError."""
        ...

    def park(self, proposal_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> bool:
        """Leave a proposal that cannot be read, count it, and tell of it once; whether people know.

        `tell` says whether the message was taken.
        """
        ...


class ReportStore(Protocol):
    """Keeps reports."""

    def put(self, key: str, body: bytes, content_type: str) -> str:
        """Store a file; returns where it is: a path, or an address in S3 (``s3://bucket/key``)."""
        ...

    def read(self, key: str) -> bytes | None:
        """The content of a stored file; None where there is none.

        ReadError when it cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """One kind of file that a report is stored as. `rightsizer.render.report_formats` lists all of them."""

    suffix: str
    """What the name of the file ends with, without the dot, such as ``csv``. No two formats share a suffix."""
    content_type: str
    """Content type of the stored object, such as ``text/csv; charset=utf-8``."""
    render: Callable[[Report], str]
    """Pure. When it raises, this file is missing and the e-mail says why; the other files are stored."""
    title: str = ""
    """Words in front of the address of the file in the e-mail. Empty: the e-mail does not list the file."""
