"""What `respond` needs to answer Slack within three seconds: bare botocore clients, Slack keys, links to pages.

boto3 adds a quarter of its start-up. The Slack app's keys come from Secrets Manager and are kept for five minutes. A
link to one page of the bucket is signed when somebody asks for it. Source: S3 API reference, "Authenticating requests:
using query parameters (Signature Version 4)"; S3 user guide, "Methods for accessing a bucket" (the host of the bucket's
own Region, by virtual host).
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from rightsizer.aws.errors import DENIED, code_of, text_of, translate_read_errors
from rightsizer.domain.approvers import SlackKeys
from rightsizer.errors import PermissionMissingError, ReadError, RightsizerError, SettingsError

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_secretsmanager import SecretsManagerClient
    from types_boto3_ssm import SSMClient

FRESH = timedelta(minutes=5)
"""A secret is read again after this long, without a call for each click."""
PAUSE = timedelta(seconds=10)
"""No second reading so soon after one that failed, or for a key that does not fit: forged requests cost no calls."""
LASTS = timedelta(minutes=15)
"""Long enough to click; a link that was passed on opens nothing the next day. Signature Version 4 allows a week."""


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

    def ssm(self) -> "SSMClient":
        """The Systems Manager client."""
        client: SSMClient = self._client("ssm")
        return client

    def s3(self) -> "S3Client":
        """The S3 client."""
        client: S3Client = self._client("s3")
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


class SlackSecret:
    """Reads the secret whose ARN the stack was given."""

    def __init__(self, client: "SecretsManagerClient", arn: str, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._arn = arn
        self._clock = clock
        self._keys: SlackKeys | None = None
        self._read_at: datetime | None = None
        self._asked_at: datetime | None = None
        self._failure: RightsizerError | None = None

    def keys(self) -> SlackKeys:
        """The keys, at most five minutes old.

        PermissionMissingError, VanishedError, ReadError or, when the text is not as documented, SettingsError. A
        failure is raised again for `PAUSE` without another call.
        """
        if self._failure and self._time_since(self._asked_at) <= PAUSE:
            raise self._failure.with_traceback(None)
        if self._keys is None or self._time_since(self._read_at) > FRESH:
            return self._read()
        return self._keys

    def renew(self) -> SlackKeys | None:
        """The keys read anew, for one that does not fit: it may have been rotated. None where they were asked for just
        now, or cannot be read; then the known ones hold.
        """
        if self._time_since(self._asked_at) <= PAUSE:
            return None
        try:
            return self._read()
        except RightsizerError:
            self._failure = None
            return None

    def _time_since(self, then: datetime | None) -> timedelta:
        return self._clock() - then if then else timedelta.max

    def _read(self) -> SlackKeys:
        self._asked_at = self._clock()
        try:
            with _translate_errors(self._arn):
                text = self._client.get_secret_value(SecretId=self._arn).get("SecretString", "")
            self._keys = _parse_keys(text, self._arn)
        except RightsizerError as error:
            self._failure = error
            raise
        self._read_at, self._failure = self._asked_at, None
        return self._keys


@contextmanager
def _translate_errors(arn: str) -> Iterator[None]:
    """As `translate_read_errors`; a key of the customer's that the role may not use is named as such.

    Source: AWS Knowledge Center, "Secrets Manager cross-account key": where kms:Decrypt is missing, GetSecretValue
    answers "Access to KMS is not allowed".
    """
    doing = f"reading the Slack secret {arn}"
    with translate_read_errors("secretsmanager:GetSecretValue", doing):
        try:
            yield
        except ClientError as error:
            if code_of(error) in DENIED and "KMS" in text_of(error):
                remedy = f"{text_of(error)}; the stack gives it for keys of its account: let the key's policy allow it"
                raise PermissionMissingError("kms:Decrypt", doing, remedy) from error
            raise


def _parse_keys(text: str, arn: str) -> SlackKeys:
    expected = 'it must be JSON with the texts "signing_secret" and "bot_token", and may have "team_id" and "app_id"'
    try:
        found = json.loads(text)
    except ValueError:
        raise SettingsError(f"the secret {arn} holds no JSON; {expected}") from None
    if not isinstance(found, dict) or not found.get("signing_secret"):
        raise SettingsError(f"the secret {arn} has no signing_secret; {expected}")
    return SlackKeys(**{key: _text(found, key, f"the secret {arn}", expected) for key in SlackKeys.__slots__})


def _text(found: dict[str, Any], key: str, where: str, expected: str) -> str:
    value = found.get(key, "")
    if not isinstance(value, str):
        raise SettingsError(f"{where} has a {key} that is no text; {expected}")
    return value.strip()


class PageLinks:
    """Signs links with the role of the function: a link opens what the role may read, and nothing else."""

    def __init__(self, session: "LightSession", bucket: str) -> None:
        self._session = session
        self._bucket = bucket

    def link(self, key: str) -> str:
        """Link to `key`, good for `LASTS` at most.

        No call to AWS: a missing page shows when it is opened.

        It ends with the session that signs it, where that is sooner. Lambda does not say when its role's session ends.
        """
        from botocore.auth import S3SigV4QueryAuth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import NoCredentialsError

        request = AWSRequest("GET", _address(self._bucket, self._session.region, key))
        try:
            lasts = int(LASTS.total_seconds())
            S3SigV4QueryAuth(self._session.credentials(), "s3", self._session.region, lasts).add_auth(request)
        except NoCredentialsError as error:
            raise ReadError(f"signing a link to {key}: {error}; the function has no role") from None
        return str(request.url)


def stored_page(session: "LightSession", bucket: str, key: str) -> bytes:
    """An object below pages/; ReadError or a subclass where it is not there, or may not be read."""
    with translate_read_errors("s3:GetObject", f"reading {key} from the bucket {bucket}"):
        answer = session.s3().get_object(Bucket=bucket, Key=key)
        return answer["Body"].read()


def _address(bucket: str, region: str, key: str) -> str:
    """Virtual host of the bucket in its Region; the path holds a name with dots, which no certificate covers."""
    from urllib.parse import quote

    host = f"s3.{region}.amazonaws.com" + (".cn" if region.startswith("cn-") else "")
    path = quote(key, safe="/-._~")
    return f"https://{host}/{bucket}/{path}" if "." in bucket else f"https://{bucket}.{host}/{path}"
