<<<<<<< HEAD
"""A refused request changes nothing."""
=======
"""An injected refusal refuses: what was asked does not happen."""
>>>>>>> change

import pytest
from botocore.exceptions import ClientError

from sandbox.account import Sandbox
<<<<<<< HEAD
from sandbox.spot import add_spot


def test_a_refused_write_is_not_carried_out_by_the_sandbox() -> None:
    with Sandbox() as box:
        spot = add_spot(box)
        group = spot.group("gpu", desired=2)
        before = list(group.instances)
        box.deny("autoscaling:DetachInstances")
        with pytest.raises(ClientError, match="AccessDenied"):
            box.client("autoscaling").detach_instances(
                AutoScalingGroupName="gpu", InstanceIds=[before[0].id], ShouldDecrementDesiredCapacity=False
            )
        assert group.instances == before


def test_a_refused_write_is_not_carried_out_by_moto() -> None:
    with Sandbox() as box:
        box.fail("sqs", "CreateQueue", "InternalFailure", times=9)
        with pytest.raises(ClientError, match="InternalFailure"):
            box.client("sqs").create_queue(QueueName="q")
        box.gate.heal()
        assert "QueueUrls" not in box.client("sqs").list_queues()
=======


def test_a_refused_write_leaves_no_trace() -> None:
    with Sandbox() as box:
        box.add_endpoint("chat", count=2)
        box.fail("sagemaker", "UpdateEndpointWeightsAndCapacities", "ResourceLimitExceeded", "no more", times=1)
        rows = [{"VariantName": "AllTraffic", "DesiredInstanceCount": 1}]
        with pytest.raises(ClientError, match="no more"):
            box.client("sagemaker").update_endpoint_weights_and_capacities(
                EndpointName="chat", DesiredWeightsAndCapacities=rows
            )
        assert box.status("chat") == "InService"
        assert box.counts("chat") == {"AllTraffic": 2}
>>>>>>> change
