"""Quotas are believed for an hour, and for a minute before a fleet is started. The figures are those of the promise."""

from datetime import timedelta

from rightsizer.aws.account import BEFORE_A_WRITE, FOR_A_DECISION, EndpointQuotas
from rightsizer.aws.session import Session
from sandbox.account import Sandbox


def test_a_raised_quota_is_seen_by_a_function_that_stays_warm(box: Sandbox, account: Session) -> None:
    box.set_quota("ml.g5.xlarge", 0)
    quotas = EndpointQuotas(account, lambda: box.clock.now, FOR_A_DECISION)
    assert quotas.endpoint_quotas()["ml.g5.xlarge"] == 0
    box.set_quota("ml.g5.xlarge", 10)
    box.clock.advance(timedelta(minutes=59, seconds=59))
    assert quotas.endpoint_quotas()["ml.g5.xlarge"] == 0
    box.clock.advance(timedelta(seconds=1))
    assert quotas.endpoint_quotas()["ml.g5.xlarge"] == 10


def test_quotas_are_kept_no_longer_than_one_look_before_a_write(box: Sandbox, account: Session) -> None:
    quotas = EndpointQuotas(account, lambda: box.clock.now, BEFORE_A_WRITE)
    box.set_quota("ml.g5.xlarge", 0)
    assert quotas.endpoint_quotas()["ml.g5.xlarge"] == 0
    box.set_quota("ml.g5.xlarge", 3)
    box.clock.advance(timedelta(seconds=59))
    assert quotas.endpoint_quotas()["ml.g5.xlarge"] == 0
    box.clock.advance(timedelta(seconds=1))
    assert quotas.endpoint_quotas()["ml.g5.xlarge"] == 3
