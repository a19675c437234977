"""What lets a change be made is said in the owner's own language."""

from rightsizer.model.observation import EndpointRef
from rightsizer.model.option import Target
from rightsizer.rules.enable import property_diff, tag_command

TARGET = Target("ml.g5.xlarge", 1)


def test_the_tag_command_names_the_endpoint_by_its_lower_case_arn() -> None:
    line = tag_command(EndpointRef("111122223333", "eu-west-1", "Chat"))
    assert "endpoint/chat" in line
    assert "Key=rightsizer:mode,Value=propose" in line


def test_cloudformation_gets_its_property_and_only_what_changes_differs() -> None:
    text = property_diff("CloudFormation stack web", "AllTraffic", "ml.g5.4xlarge", 1, TARGET)
    assert text.splitlines() == [
        "  VariantName: AllTraffic",
        "- InstanceType: ml.g5.4xlarge",
        "+ InstanceType: ml.g5.xlarge",
        "  InitialInstanceCount: 1",
    ]


def test_terraform_gets_hcl() -> None:
    text = property_diff("Terraform", "AllTraffic", "ml.g5.xlarge", 3, TARGET)
    assert "- initial_instance_count = 3" in text
    assert '  instance_type = "ml.g5.xlarge"' in text
