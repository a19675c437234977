"""Quotas are believed for a while, and read anew before a fleet is started."""

from rightsizer.aws.account import BEFORE_A_WRITE, FOR_A_DECISION, EndpointQuotas
from rightsizer.aws.session import Session
from sandbox.account import Sandbox


def test_a_raised_quota_is_seen_by_a_function_that_stays_warm(box: Sandbox, account: Session) -> None:
    box.set_quota("ml.g5.xlarge", 0)
    quotas = EndpointQuotas(account, lambda: box.clock.now, FOR_A_DECISION)
    assert quotas.endpoint_quotas()["ml.g5.xlarge"] == 0
    box.set_quota("ml.g5.xlarge", 10)
    assert quotas.endpoint_quotas()["ml.g5.xlarge"] == 0
    box.clock.advance(FOR_A_DECISION)
    assert quotas.endpoint_quotas()["ml.g5.xlarge"] == 10


def test_quotas_are_kept_no_longer_than_one_look_before_a_write(box: Sandbox, account: Session) -> None:
    quotas = EndpointQuotas(account, lambda: box.clock.now, BEFORE_A_WRITE)
    quotas.endpoint_quotas()
    box.set_quota("ml.g5.xlarge", 3)
    box.clock.advance(BEFORE_A_WRITE)
    assert quotas.endpoint_quotas()["ml.g5.xlarge"] == 3
