"""A batch of ten with one poisoned at each position: the nine others are done, exactly once."""

import json

import pytest

from bench.events import message, training
from tests.doors.scene import scene

BAD = "bad-one"


HOSTILE = training(BAD)
HOSTILE["detail"]["TrainingJobName"] = "\u202e\x1b[31m" + "x" * 200_000
LATE = training(BAD)
LATE["detail"]["LastModifiedTime"] = "9999-12-31T23:59:59-01:00"


@pytest.mark.parametrize(
    "body",
    ["{not json", json.dumps(HOSTILE), json.dumps(LATE), "[" * 9000],
    ids=["malformed", "hostile", "late", "deep"],
)
def test_one_bad_message_at_each_position_of_ten_fails_alone(body: str) -> None:
    with scene() as at:
        for place in range(10):
            names = [f"job-{place}-{n}" for n in range(9)]
            batch = [message(name, json.dumps(training(name))) for name in names]
            batch.insert(place, message(BAD, body))
            at.box.calls.clear()
            answer = at.stack.invoke("evaluate", {"Records": batch})
            assert answer == {"batchItemFailures": [{"itemIdentifier": BAD}]}
            noted = [str(call.params) for call in at.box.calls.writes() if call.error is None]
            assert [sum(f"training-job/{name}:" in one for one in noted) for name in names] == [1] * 9
