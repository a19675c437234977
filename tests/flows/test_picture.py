"""The picture: its hours and limits, gaps that stay gaps, and a message that loses nothing where it fails."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from rightsizer import catalog
from rightsizer.catalog import catalogue
from rightsizer.domain.message import Gathering, ProposalMessage
from rightsizer.domain.proposal import MessageRef, Proposal, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation, WeekSignals
from rightsizer.domain.usage import MetricWindow, NoMetrics, Series
from rightsizer.errors import InputError, RightsizerError, ThrottledError, WriteRefusedError
from rightsizer.flows.picture import GPU, MEMORY, P95, PicturePorts, show_picture
from rightsizer.ports.evaluation import MetricRequest
from rightsizer.render.pictures import two_weeks
from tests.samples import proposal, recommendation

HOURS = 14 * 24
NAN = float("nan")
PID = proposal().id


@dataclass
class Studio:
    """Stands for the table, CloudWatch, the painter and Slack."""

    kept: dict[str, Proposal] = field(default_factory=lambda: {PID: proposal()})
    known: dict[str, MessageRef] = field(default_factory=lambda: {PID: MessageRef(PID, "C1", "1.0", "pending|")})
    published: bool = True
    drawn: list[WeekSignals] = field(default_factory=list)
    uploads: list[str] = field(default_factory=list)
    shown: list[ProposalMessage] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    fails: list[RightsizerError] = field(default_factory=list)
    no_upload: RightsizerError | None = None
    unable: RightsizerError | None = None

    def proposal(self, proposal_id: str) -> Proposal | None:
        return self.kept.get(proposal_id)

    def message(self, proposal_id: str) -> MessageRef | None:
        return self.known.get(proposal_id)

    def remember(self, message: MessageRef) -> None:
        raise AssertionError("the picture changes nothing of what propose knows")

    def gathering(self, name: str = "") -> Gathering | None:
        raise AssertionError

    def swap_gathering(self, gathering: Gathering, version: int, name: str = "") -> None:
        raise AssertionError

    def park(self, *given: object) -> bool:
        raise AssertionError

    def keep_picture(self, proposal_id: str, ts: str, file: str) -> None:
        self.known[proposal_id] = replace(self.known[proposal_id], picture=file)

    def read(
        self, requests: Sequence[MetricRequest], start: datetime, end: datetime, period_s: int
    ) -> Iterator[MetricWindow | NoMetrics]:
        (asked,) = requests
        assert (end - start, period_s) == (timedelta(days=14), 3600)
        if not self.published:
            yield NoMetrics(asked.endpoint, asked.variant, Reason(Code.NO_DATAPOINTS, "nothing"))
            return
        gpu = array("d", [40.0] * (HOURS - 2) + [NAN, 80.0])
        series = {GPU: gpu, MEMORY: array("d", [100.0] * HOURS), P95: array("d", [NAN] * 5 + [250_000.0] * (HOURS - 5))}
        made = {signal: Series(start, period_s, values) for signal, values in series.items()}
        yield MetricWindow(asked.endpoint, asked.variant, start, end, period_s, made)

    def draw(self, found: Recommendation, seen: WeekSignals) -> bytes:
        self.drawn.append(seen)
        return b"png"

    def check(self) -> None:
        if self.unable:
            raise self.unable

    def upload(self, name: str, title: str, picture: bytes) -> str:
        if self.no_upload:
            raise self.no_upload
        self.uploads.append(name)
        return "F000000001"

    def update(self, ref: MessageRef, message: ProposalMessage) -> None:
        if self.fails:
            raise self.fails.pop(0)
        self.shown.append(message)

    def show(self) -> bool:
        title = "two weeks"
        hardware = catalogue(catalog.instances(), catalog.accelerators())
        ports = PicturePorts(
            self, self, self, hardware, self.draw, lambda _: title, self, self, self.slept.append, self.check
        )
        return show_picture(ports, PID)


def test_the_picture_is_of_one_gpu_in_units_that_people_read_and_gaps_are_gaps() -> None:
    studio = Studio()
    assert studio.show()
    (seen,) = studio.drawn
    assert seen.gpu_percent[0] == 10.0, "40 of 400: four GPUs"
    assert seen.gpu_percent[-2:] == (None, 20.0)
    assert seen.gpu_gib[0] == pytest.approx(24 / 4, abs=1.5)
    assert (seen.p95_s[0], seen.p95_s[-1]) == (None, 0.25)
    assert seen.then_gib is not None
    assert len(seen.then_percent) == HOURS
    panels = two_weeks(recommendation(), seen).panels
    assert [(p.title, p.limit, p.limit_name) for p in panels] == [
        ("GPU use", 100.0, "full"),
        ("GPU memory", seen.then_gib, f"{seen.then_gib:.0f} GiB then"),
        ("p95 latency", 0.5, "objective 500 ms"),
    ]


def test_the_message_shows_it_once_and_a_second_event_changes_nothing() -> None:
    studio = Studio()
    assert studio.show()
    assert studio.show()
    assert (len(studio.uploads), [one.picture for one in studio.shown]) == (1, ["F000000001"])


def test_slack_is_given_time_to_look_at_the_file() -> None:
    unready = WriteRefusedError("chat.update", "invalid_blocks", "")
    studio = Studio(fails=[unready, unready])
    assert studio.show()
    assert studio.slept == [1.0, 2.0]
    never = Studio(fails=[unready] * 9)
    assert not never.show()
    assert never.known[PID].picture == "", "a later edit of the message does not name a file that Slack refuses"


@pytest.mark.parametrize(
    "broken",
    [
        Studio(no_upload=WriteRefusedError("files.getUploadURLExternal", "missing_scope", "add files:write")),
        Studio(unable=InputError("no matplotlib")),
        Studio(fails=[ThrottledError("later")]),
        Studio(published=False),
        Studio(known={}),
        Studio(kept={}),
        Studio(kept={PID: proposal(recommendation=recommendation(evidence=None))}),
    ],
)
def test_whatever_fails_leaves_the_message_without_a_picture(broken: Studio) -> None:
    assert not broken.show()
    assert broken.shown == []


def test_a_proposal_that_moved_meanwhile_keeps_its_picture() -> None:
    class Moving(Studio):
        def draw(self, found: Recommendation, seen: WeekSignals) -> bytes:
            self.kept[PID] = proposal(state=ProposalState.APPROVED)
            return b"png"

    studio = Moving()
    assert studio.show()
    assert [(one.proposal.state, one.picture) for one in studio.shown] == [
        (ProposalState.PENDING, "F000000001"),
        (ProposalState.APPROVED, "F000000001"),
    ]


@pytest.mark.parametrize("late", ["draw", "keep_picture"])
def test_a_picture_of_an_option_that_nobody_asks_about_any_more_is_not_shown(
    late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio = Studio()
    done = getattr(studio, late)

    def take_another(*given: Any) -> Any:
        studio.kept[PID] = proposal(revision=1)
        return done(*given)

    monkeypatch.setattr(studio, late, take_another)
    assert not studio.show()
    assert studio.known[PID].picture == ""
    assert [one.picture for one in studio.shown][-1:] in ([], [""])
    monkeypatch.undo()
    assert studio.show(), "the drawing that propose began for it"
    assert (studio.shown[-1].proposal.revision, studio.shown[-1].picture) == (1, "F000000001")
