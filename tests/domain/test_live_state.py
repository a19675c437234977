"""What a configuration as AWS shows it says about role and network."""

from rightsizer.domain.live_state import ConfigSight
from tests import samples


def config(**body: object) -> ConfigSight:
    return ConfigSight("chat-1", body, samples.NOW)


def test_role_and_subnets_are_those_of_the_body() -> None:
    found = config(ExecutionRoleArn="arn:role", VpcConfig={"Subnets": ["subnet-1", "subnet-2"]})
    assert (found.role, found.subnets) == ("arn:role", ("subnet-1", "subnet-2"))


def test_a_configuration_without_either_has_an_empty_role_and_no_subnets() -> None:
    assert (config().role, config().subnets) == ("", ())
    assert config(ExecutionRoleArn=None, VpcConfig=None).role == ""
