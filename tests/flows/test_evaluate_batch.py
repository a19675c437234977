"""A batch of the evaluation queue: one bad message or endpoint never stops the others."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from rightsizer.domain.endpoint import EndpointRef, Unobserved
from rightsizer.domain.outcome import LedgerEntry, Occurrence, UnreadRow
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.trigger import (
    EndpointMoved,
    EvaluationReason,
    JobMoved,
    ListedEndpoint,
    LookAt,
    LookAtAlarm,
    NoTrigger,
    Received,
)
from rightsizer.errors import ReadError, RightsizerError, ThrottledError, WriteRefusedError
from rightsizer.flows.evaluate import NotDone
from rightsizer.flows.evaluate_batch import BatchPorts, evaluate_batch

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SEEN = ListedEndpoint("a", NOW, NOW)


class Alarms:
    def endpoints_in_alarm(self, alarm: str) -> tuple[str, ...]:
        if alarm == "unreadable":
            raise ReadError("describing the alarm unreadable: AccessDenied")
        return ("from-alarm",)


class Notes:
    def __init__(self, faulty: str = "") -> None:
        self.faulty = faulty
        self.noted: list[Occurrence] = []

    def note(self, occurrence: Occurrence) -> bool:
        if occurrence.subject == self.faulty:
            raise OverflowError("date value out of range")
        self.noted.append(occurrence)
        return True

    def is_noted(self, key: str) -> bool:
        raise AssertionError("an evaluation tells nobody")

    def book(self, entry: LedgerEntry) -> None:
        raise AssertionError("no money is booked by an evaluation")

    def entries(self, start: datetime, end: datetime, unread: list[UnreadRow] | None = None) -> Iterator[LedgerEntry]:
        return iter(())

    def occurrences(
        self, start: datetime, end: datetime, unread: list[UnreadRow] | None = None
    ) -> Iterator[Occurrence]:
        return iter(self.noted)


class Evaluations:
    """Records what was asked; `throttled` names answer so, and `broken` raises as an unreadable fleet does.

    With `faulty` among the names it raises an error that is none of ours, before anything is evaluated.
    """

    def __init__(self, throttled: str = "", broken: bool = False, faulty: str = "", unsaved: str = "") -> None:
        self.throttled, self.broken, self.faulty, self.unsaved = throttled, broken, faulty, unsaved
        self.asked: list[tuple[tuple[str, ...], str]] = []

    def __call__(
        self, names: Sequence[str], because: str, now: datetime, fleet: int
    ) -> Iterable[Recommendation | Unobserved | NotDone]:
        self.asked.append((tuple(names), because))
        if self.broken:
            raise ReadError("listing endpoints: AccessDenied")
        if self.faulty in names:
            raise OverflowError("date value out of range")
        for name in names:
            if name == self.unsaved:
                yield NotDone(name, Reason(Code.READ_FAILED, "the item is too large"))
                continue
            code = Code.THROTTLED if name == self.throttled else Code.VANISHED
            yield Unobserved(EndpointRef("111122223333", "eu-west-1", name), Reason(code, "gone"))


def look(name: str, because: EvaluationReason = EvaluationReason.ALARM) -> LookAt:
    return LookAt((name,), because, "a", NOW, name)


def run(evaluations: Evaluations, *batch: Received, notes: Notes | None = None) -> list[str]:
    return evaluate_batch(BatchPorts(evaluations, Alarms(), notes or Notes()), batch, NOW)


def test_a_poisoned_message_fails_alone() -> None:
    evaluations = Evaluations()
    failed = run(evaluations, Received("1", None, "detail.state: missing"), Received("2", look("bert")))
    assert failed == ["1"]
    assert evaluations.asked == [(("bert",), "alarm")]


def test_messages_about_one_endpoint_are_evaluated_once() -> None:
    evaluations = Evaluations()
    run(evaluations, Received("1", look("bert")), Received("2", look("bert")))
    assert evaluations.asked == [(("bert",), "alarm")]


def test_a_throttled_endpoint_brings_back_every_message_that_names_it_and_no_other() -> None:
    batch = (
        Received("1", look("bert")),
        Received("2", look("llama")),
        Received("3", look("bert", EvaluationReason.FULL_SWEEP)),
    )
    assert run(Evaluations(throttled="bert"), *batch) == ["1", "3"]


def test_a_fleet_that_cannot_be_read_brings_back_all_messages_that_need_it() -> None:
    no = Received("2", NoTrigger(Reason(Code.UNKNOWN_EVENT, "unknown")))
    assert run(Evaluations(broken=True), Received("1", look("bert")), no) == ["1"]


def test_an_alarm_without_endpoint_is_asked_for_its_contributors() -> None:
    evaluations = Evaluations()
    failed = run(
        evaluations, Received("1", LookAtAlarm("g", NOW, "k")), Received("2", LookAtAlarm("unreadable", NOW, "k"))
    )
    assert evaluations.asked == [(("from-alarm",), "alarm")]
    assert failed == ["2"]


def test_only_a_settled_endpoint_is_looked_at_after_its_event() -> None:
    evaluations = Evaluations()
    moved = [EndpointMoved("bert", status, "c", NOW, False, "k") for status in ("Updating", "InService")]
    run(evaluations, *(Received(str(i), event) for i, event in enumerate(moved)))
    assert evaluations.asked == [(("bert",), "event")]


def test_a_training_job_event_is_noted() -> None:
    notes = Notes()
    run(Evaluations(), Received("1", JobMoved("training-job", "j", "Stopped", "", NOW, "k")), notes=notes)
    assert [note.subject for note in notes.noted] == ["j"]


def test_a_direct_invocation_that_fails_raises_so_that_lambda_tries_again() -> None:
    with pytest.raises(ReadError, match="tries again"):
        run(Evaluations(throttled="bert"), Received("", look("bert")))


def test_a_fault_of_ours_at_one_endpoint_fails_its_messages_and_each_other_endpoint_is_evaluated_once() -> None:
    evaluations = Evaluations(faulty="odd")
    batch = [Received(str(n), look(name)) for n, name in enumerate(("bert", "odd", "llama", "odd"))]
    assert run(evaluations, *batch) == ["1", "3"]
    assert evaluations.asked == [
        (("bert", "odd", "llama"), "alarm"),
        *(((n,), "alarm") for n in ("bert", "odd", "llama")),
    ]


def test_a_judgement_that_cannot_be_stored_brings_back_its_own_message() -> None:
    assert run(Evaluations(unsaved="bert"), Received("1", look("bert")), Received("2", look("llama"))) == ["1"]


def test_a_fault_of_ours_at_one_job_fails_its_message_alone() -> None:
    notes = Notes(faulty="odd")
    batch = [Received(n, JobMoved("training-job", n, "Stopped", "", NOW, n)) for n in ("j1", "odd", "j2")]
    assert run(Evaluations(), *batch, notes=notes) == ["odd"]
    assert [note.subject for note in notes.noted] == ["j1", "j2"]


def test_what_there_is_no_time_for_is_asked_for_anew_and_no_message_fails() -> None:
    later = list[tuple[Sequence[str], str]]()

    def evaluations(names: Sequence[str], because: str, now: datetime, fleet: int) -> Iterable[Unobserved]:
        for name in names[1:]:
            yield Unobserved(EndpointRef("111122223333", "eu-west-1", name), Reason(Code.NO_TIME, "no time"))

    batch = [
        Received("1", LookAt(("a", "b", "c"), EvaluationReason.FULL_SWEEP, "a", NOW, "k")),
        Received("2", look("d")),
    ]

    def ask(names: Sequence[str], because: str, now: datetime, fleet: int) -> Sequence[str]:
        later.append((tuple(names), because))
        return ()

    assert evaluate_batch(BatchPorts(evaluations, Alarms(), Notes(), later=ask), batch, NOW) == []
    assert later == [(("b", "c"), "full-sweep")]

    for error in (WriteRefusedError("sending", "InternalError", "no"), ThrottledError("slow down")):

        def refuse(
            names: Sequence[str], because: str, now: datetime, fleet: int, error: RightsizerError = error
        ) -> Sequence[str]:
            raise error

        assert evaluate_batch(BatchPorts(evaluations, Alarms(), Notes(), later=refuse), batch, NOW) == ["1"]
    assert evaluate_batch(BatchPorts(evaluations, Alarms(), Notes()), batch, NOW) == ["1"]


def test_of_what_is_left_over_only_messages_come_again_that_name_what_the_queue_did_not_take() -> None:
    def evaluations(names: Sequence[str], because: str, now: datetime, fleet: int) -> Iterable[Unobserved]:
        for name in names:
            yield Unobserved(EndpointRef("111122223333", "eu-west-1", name), Reason(Code.NO_TIME, "no time"))

    def half(names: Sequence[str], because: str, now: datetime, fleet: int) -> Sequence[str]:
        return [name for name in names if name == "b"]

    batch = [Received(str(n), look(name)) for n, name in enumerate("abc")]
    assert evaluate_batch(BatchPorts(evaluations, Alarms(), Notes(), later=half), batch, NOW) == ["1"]


@pytest.mark.parametrize(
    ("triggers", "recalled"),
    [
        ([LookAt(("a", "b"), EvaluationReason.FULL_SWEEP, "", NOW, "k", 2, (SEEN,))], [SEEN]),
        ([LookAt(("a",), EvaluationReason.FULL_SWEEP, "", NOW - timedelta(hours=1), "k", 2, (SEEN,))], []),
        (
            [
                LookAt(("a",), EvaluationReason.FULL_SWEEP, "", NOW, "k", 2, (SEEN,)),
                EndpointMoved("a", "InService", "cfg", NOW, False, "m"),
            ],
            [],
        ),
        (
            [
                EndpointMoved("a", "InService", "cfg", NOW, False, "m"),
                LookAt(("a",), EvaluationReason.FULL_SWEEP, "", NOW, "k", 2, (SEEN,)),
            ],
            [],
        ),
        ([LookAt(("a",), EvaluationReason.FULL_SWEEP, "", NOW, "k")], []),
    ],
    ids=["listed", "an hour ago", "moved since", "moved before", "of an older release"],
)
def test_endpoints_are_recalled_as_a_sweep_listed_them_lately_and_nothing_else_asks_for_them(
    triggers: list[LookAt | EndpointMoved], recalled: list[ListedEndpoint]
) -> None:
    taken: list[ListedEndpoint] = []
    ports = BatchPorts(Evaluations(), Alarms(), Notes(), recall=taken.extend)
    evaluate_batch(ports, [Received(f"m{i}", trigger) for i, trigger in enumerate(triggers)], NOW)
    assert taken == recalled
