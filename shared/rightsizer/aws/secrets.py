"""Slack's two secrets from Secrets Manager, kept for five minutes. Bare client calls: `respond` uses it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from rightsizer.aws.errors import reading
from rightsizer.errors import SettingsError

if TYPE_CHECKING:
    from types_boto3_secretsmanager import SecretsManagerClient

FRESH = timedelta(minutes=5)
"""A rotated secret counts after this long, without a call for each click."""


@dataclass(frozen=True, slots=True)
class SlackKeys:
    """What Slack gave us. Never printed."""

    signing_secret: str = field(repr=False)
    bot_token: str = field(repr=False)


class SlackSecret:
    """Reads the secret whose ARN the stack was given."""

    def __init__(self, client: "SecretsManagerClient", arn: str, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._arn = arn
        self._clock = clock
        self._keys: SlackKeys | None = None
        self._read_at: datetime | None = None

    def keys(self) -> SlackKeys:
        """Both secrets. PermissionMissingError, VanishedError or, when its text is not as documented, SettingsError."""
        now = self._clock()
        if self._keys is None or self._read_at is None or now - self._read_at > FRESH:
            with reading("secretsmanager:GetSecretValue", f"reading the Slack secret {self._arn}"):
                text = self._client.get_secret_value(SecretId=self._arn).get("SecretString", "")
            self._keys, self._read_at = _parsed(text, self._arn), now
        return self._keys


def _parsed(text: str, arn: str) -> SlackKeys:
    expected = 'it must be JSON with "signing_secret" and "bot_token"'
    try:
        found = json.loads(text)
    except ValueError:
        raise SettingsError(f"the secret {arn} holds no JSON; {expected}") from None
    if not isinstance(found, dict) or not isinstance(found.get("signing_secret"), str) or not found["signing_secret"]:
        raise SettingsError(f"the secret {arn} has no signing_secret; {expected}")
    token = found.get("bot_token", "")
    return SlackKeys(found["signing_secret"], token if isinstance(token, str) else "")
