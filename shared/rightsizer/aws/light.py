"""Clients of bare botocore for the door that must answer within three seconds: boto3 adds a quarter of its start-up."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_secretsmanager import SecretsManagerClient


class LightSession:
    """DynamoDB and Secrets Manager clients, made on first use, with time-outs that fit Slack's three seconds."""

    def __init__(self, region: str | None = None, endpoint_url: str | None = None) -> None:
        import botocore.session
        from botocore.config import Config

        self._session = botocore.session.get_session()
        self.region: str = region or str(self._session.get_config_variable("region") or "")
        self._endpoint_url = endpoint_url
        self._config = Config(
            connect_timeout=0.5,
            read_timeout=1.0,
            retries={"mode": "standard", "total_max_attempts": 2},
            user_agent_extra="rightsizer",
        )
        self._clients: dict[str, Any] = {}

    def dynamodb(self) -> "DynamoDBClient":
        """The DynamoDB client."""
        client: DynamoDBClient = self._client("dynamodb")
        return client

    def secrets(self) -> "SecretsManagerClient":
        """The Secrets Manager client."""
        client: SecretsManagerClient = self._client("secretsmanager")
        return client

    def credentials(self) -> Any:
        """The credentials of the role, None where there are none. They are replaced by botocore before they end."""
        found = self._session.get_credentials()
        return found.get_frozen_credentials() if found else None

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self._session.create_client(
                service, region_name=self.region or None, endpoint_url=self._endpoint_url, config=self._config
            )
        return self._clients[service]
