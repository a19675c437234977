"""An injected refusal refuses: what was asked does not happen."""

import pytest
from botocore.exceptions import ClientError

from sandbox.account import Sandbox


def test_a_refused_write_leaves_no_trace() -> None:
    with Sandbox() as box:
        box.add_endpoint("chat", count=2)
        box.gate.fail("sagemaker", "UpdateEndpointWeightsAndCapacities", "ResourceLimitExceeded", "no more", times=1)
        rows = [{"VariantName": "AllTraffic", "DesiredInstanceCount": 1}]
        with pytest.raises(ClientError, match="no more"):
            box.client("sagemaker").update_endpoint_weights_and_capacities(
                EndpointName="chat", DesiredWeightsAndCapacities=rows
            )
        assert box.status("chat") == "InService"
        assert box.counts("chat") == {"AllTraffic": 2}
