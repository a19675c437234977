"""The Slack app's keys from Secrets Manager, kept for five minutes. Bare client calls: `respond` uses it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from rightsizer.aws.errors import DENIED, code_of, reading, text_of
from rightsizer.domain.slack_app import SlackKeys
from rightsizer.errors import PermissionMissingError, RightsizerError, SettingsError

if TYPE_CHECKING:
    from types_boto3_secretsmanager import SecretsManagerClient

FRESH = timedelta(minutes=5)
"""A secret is read again after this long, without a call for each click."""
PAUSE = timedelta(seconds=10)
"""No second reading so soon after one that failed, or for a key that does not fit: forged requests cost no calls."""


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
        if self._failure and self._since(self._asked_at) <= PAUSE:
            raise self._failure.with_traceback(None)
        if self._keys is None or self._since(self._read_at) > FRESH:
            return self._read()
        return self._keys

    def renewed(self) -> SlackKeys | None:
        """The keys read anew, for one that does not fit: it may have been rotated. None where they were asked for just
        now, or cannot be read; then the known ones hold.
        """
        if self._since(self._asked_at) <= PAUSE:
            return None
        try:
            return self._read()
        except RightsizerError:
            self._failure = None
            return None

    def _since(self, then: datetime | None) -> timedelta:
        return self._clock() - then if then else timedelta.max

    def _read(self) -> SlackKeys:
        self._asked_at = self._clock()
        try:
            with _reading(self._arn):
                text = self._client.get_secret_value(SecretId=self._arn).get("SecretString", "")
            self._keys = _parsed(text, self._arn)
        except RightsizerError as error:
            self._failure = error
            raise
        self._read_at, self._failure = self._asked_at, None
        return self._keys


@contextmanager
def _reading(arn: str) -> Iterator[None]:
    """As `reading`; a key of the customer's that the role may not use is named as such.

    Source: AWS Knowledge Center, "Secrets Manager cross-account key": where kms:Decrypt is missing, GetSecretValue
    answers "Access to KMS is not allowed".
    """
    doing = f"reading the Slack secret {arn}"
    with reading("secretsmanager:GetSecretValue", doing):
        try:
            yield
        except ClientError as error:
            if code_of(error) in DENIED and "KMS" in text_of(error):
                remedy = f"{text_of(error)}; the stack gives it for keys of its account: let the key's policy allow it"
                raise PermissionMissingError("kms:Decrypt", doing, remedy) from error
            raise


def _parsed(text: str, arn: str) -> SlackKeys:
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
