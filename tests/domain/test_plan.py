"""What a step of a plan is called in the journal."""

from rightsizer.domain.plan import created_config, key_of_try


def test_the_configuration_that_a_step_creates_is_known_from_its_key_in_an_earlier_try_too() -> None:
    key = "CreateEndpointConfig chat-config-rs-1"
    assert created_config(key) == created_config(key_of_try(1, key)) == "chat-config-rs-1"
    assert created_config(key_of_try(2, "UpdateEndpoint chat")) == ""
