"""What is handed over are lines that a person can run as they stand, in a shell, one after the other."""

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from rightsizer.changes.reconcile import undo_commands
from rightsizer.domain.change import ChangeState
from rightsizer.domain.option import OptionKind
from rightsizer.domain.plan import command
from rightsizer.flows.orders import Orders
from tests.changing import scenarios
from tests.changing.scenarios import Scenario
from tests.changing.world import NAME, an_option, world

ARN = "arn:aws:autoscaling:eu-west-1:111122223333:scalingPolicy:1:resource/sagemaker/x:policyName/burst"
STUB = f"""#!/bin/sh
if [ "$2" = describe-scaling-policies ]; then echo "$@" >> "$ASKED"; echo '{ARN}'; exit; fi
for last; do :; done
printf '%s' "$last" > "$GIVEN"
"""


def handed_over(scenario: Scenario = scenarios.AUTOSCALED) -> tuple[str, ...]:
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        w.start()
        while w.box.status(NAME) != "Updating":
            w.box.clock.advance(timedelta(minutes=1))
            w.apply.tick(w.now)
        w.box.deny("application-autoscaling:Register*", "application-autoscaling:Put*", "cloudwatch:Put*")
        change = w.run(12)
    assert change.state is ChangeState.HANDED_OVER
    return change.remaining


def frozen_hard(scenario: Scenario = scenarios.AUTOSCALED) -> tuple[str, ...]:
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        w.start()
        w.run(0.2)
        (change,) = Orders(w.journal).freeze("U1", w.now, hard=True)
    return undo_commands(change)


def restore_file(scenario: Scenario = scenarios.AUTOSCALED) -> tuple[str, ...]:
    option = an_option(kind=OptionKind.DELETE)
    with world(option, seed=scenario.seed, **scenario.endpoint) as w:
        w.start()
        lines = w.change.plan.restore_file
    return tuple(line for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("made", [handed_over, frozen_hard, restore_file])
def test_no_line_names_what_a_person_would_have_to_look_up(made: Callable[[], tuple[str, ...]]) -> None:
    lines = made()
    alarms = [line for line in lines if "put-metric-alarm" in line and '"burst-now"' in line]
    assert len(alarms) == 1
    for line in lines:
        assert "policy:" not in line
        words = shlex.split(line)
        assert "aws" in words
        asked = (
            line.count("aws cloudwatch ") + line.count("aws sagemaker ") + line.count("aws application-autoscaling ")
        )
        assert line.count(" --region eu-west-1 --") == asked, "in a fresh shell too"
        if "--cli-input-json" in words:
            json.loads(words[words.index("--cli-input-json") + 1])


def test_words_of_an_owner_that_look_like_a_place_are_left_as_they_are() -> None:
    said = {"AlarmDescription": "policy: page | the | owner's team @POLICY_1@"}
    words = shlex.split(command("cloudwatch", "PutMetricAlarm", said, ""))
    assert json.loads(words[-1]) == said


@pytest.mark.parametrize("made", [handed_over, frozen_hard, restore_file])
def test_the_line_of_an_alarm_asks_for_the_arn_and_uses_it(made: Callable[[], tuple[str, ...]], tmp_path: Path) -> None:
    lines = made()
    (line,) = (each for each in lines if "put-metric-alarm" in each and '"burst-now"' in each)
    stub = tmp_path / "aws"
    stub.write_text(STUB)
    stub.chmod(0o755)
    asked, given = tmp_path / "asked", tmp_path / "given"
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "ASKED": str(asked), "GIVEN": str(given)}
    subprocess.run(["/bin/sh", "-c", line], env=env, check=True)
    body = json.loads(given.read_text())
    assert body["AlarmActions"] == [ARN, "arn:aws:sns:eu-west-1:111122223333:pager"]
    assert body["Threshold"] == 100_000.0
    words = asked.read_text().split()
    assert words[words.index("--resource-id") + 1] == f"endpoint/{NAME}/variant/AllTraffic"
    assert words[words.index("--policy-names") + 1] == "burst"
