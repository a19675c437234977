"""Each command of docs/runbook.md is run on the simulated account, as the page has it."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from botocore import xform_name
from botocore.session import get_session
from botocore.validate import ParamValidator

from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from tests.doors.scene import APPROVER, BIG, PROPOSE, Scene, scene
from tests.runbook.test_runbook import PAGE

CODE = sorted(
    {" ".join(each.split()) for each in re.findall(r"`(rightsizer [^`]+)`", PAGE)}
    | {line.strip() for line in PAGE.splitlines() if line.strip().startswith("rightsizer ")}
)
"""Those between backquotes, and the lines of code blocks."""
NOT_SIMULATED = {"start_message_move_task"}
"""Held against the service's model only: the simulated account has no such task."""
WITHOUT_SUBJECT = {"rightsizer apply": "the page says not to use it to look"}


@pytest.fixture(scope="module")
def at() -> Iterator[Scene]:
    """A stack with one change under way."""
    with scene(Approvers=f"{APPROVER},role/operator") as found:
        found.add(BIG, tags=PROPOSE)
        found.drive(BIG)
        found.sweep()
        found.click(BIG, "Approve")
        found.stack.settle()
        yield found


def test_the_page_has_commands() -> None:
    assert {"rightsizer freeze", "rightsizer rollback CHANGE", "rightsizer history ENDPOINT"} <= set(CODE)


@pytest.mark.parametrize("line", [line for line in CODE if line not in WITHOUT_SUBJECT])
def test_a_command_of_the_page_runs(
    line: str, at: Scene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RIGHTSIZER_TABLE", raising=False)
    at.box.world.sts.arn = "arn:aws:sts::111122223333:assumed-role/operator/ada"
    change = next(one.change_id for one in at.proposals() if one.change_id)
    given = line.replace("CHANGE", change).replace("ENDPOINT", BIG).split()[1:]
    code = run(given)
    told = capsys.readouterr()
    assert code in (Exit.NOTHING_TO_DO, Exit.INCOMPLETE), told.err
    assert told.out.strip()


AWS = sorted(
    {" ".join(each.split()) for each in re.findall(r"`(aws [^`]+)`", PAGE)}
    | {line.strip() for line in PAGE.splitlines() if line.strip().startswith("aws ")}
)


def asked_of(line: str) -> tuple[str, str, dict[str, Any]]:
    """Service, operation and parameters of a command, as the AWS CLI makes them of its flags."""
    _, service, action, *rest = shlex.split(line)
    model = get_session().get_service_model(service)
    (operation,) = (name for name in model.operation_names if xform_name(name, "-") == action)
    shape = model.operation_model(operation).input_shape
    assert shape is not None
    members = {f"--{xform_name(name, '-')}": (name, member.type_name) for name, member in shape.members.items()}
    given: dict[str, Any] = {}
    for flag, value in zip(rest[::2], rest[1::2], strict=True):
        name, kind = members[flag]
        given[name] = int(value) if kind == "integer" else value.split() if kind == "list" else value
    report = ParamValidator().validate(given, shape)
    assert not report.has_errors(), report.generate_report()
    return service, xform_name(operation), given


def test_the_page_has_commands_of_aws() -> None:
    assert len(AWS) >= 7


@pytest.mark.parametrize("line", AWS)
def test_a_command_of_aws_of_the_page_is_one_and_runs(line: str, at: Scene) -> None:
    queues, sqs = at.stack.parts.queues, at.box.client("sqs")
    dead = sqs.get_queue_attributes(QueueUrl=queues["EvaluationDeadLetters"], AttributeNames=["QueueArn"])
    ours = {
        "DEAD_LETTERS_URL": queues["DeadLetters"],
        "ARN_OF_THE_DEAD_LETTERS": dead["Attributes"]["QueueArn"],
        "EVALUATE": at.stack.function("evaluate").name,
        "APPLY": at.stack.function("apply").name,
        "STACK": "rightsizer",
        "ENDPOINT": BIG,
    }
    for word, value in ours.items():
        line = re.sub(rf"\b{word}\b", value, line)
    service, operation, given = asked_of(line)
    if operation in NOT_SIMULATED:
        return
    answer = getattr(at.box.client(service), operation)(**given)
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
