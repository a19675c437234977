"""Environment to frozen settings; the only reader of os.environ. An error names the variable and what it should be."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from rightsizer.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a deployed function may be told. The names are those of the template."""

    table: str = ""
    bucket: str = ""
    queue_url: str = ""
    topic_arn: str = ""
    slack_channel: str = ""
    slack_secret: str = ""
    """ARN of the Secrets Manager secret (JSON: ``signing_secret``, ``bot_token``), never the secret itself."""
    slack_endpoint: str = "https://slack.com/api"
    approvers: frozenset[str] = frozenset()
    """Slack user ids that may decide."""
    alarm_prefix: str = "rightsizer-"
    """Alarms of ours begin with this; roll-back alarms too."""
    user_alarm_prefix: str = ""
    lookback_days: int = 14
    minimum_saving_usd: Decimal = Decimal(50)
    change_untagged: bool = False
    edit_user_alarms: bool = False
    """Whether customers' alarms may be re-pointed to the step policies that were restored with new ARNs."""
    price_region: str = "us-east-1"
    proposal_days: int = 14
    dry_run: bool = False

    @property
    def lookback(self) -> timedelta:
        """The look-back period."""
        return timedelta(days=self.lookback_days)


def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """Settings from RIGHTSIZER_* variables; SettingsError names the one that cannot be understood."""
    env = os.environ if environment is None else environment
    text = {name: env.get(f"RIGHTSIZER_{name.upper()}", "") for name in Settings.__dataclass_fields__}
    given = {name: value for name, value in text.items() if value}
    return replace(Settings(), **{name: _parse(name, value) for name, value in given.items()})


def require(settings: Settings, *names: str) -> None:
    """SettingsError when one of these settings is empty, with the variable's name."""
    for name in names:
        if not getattr(settings, name):
            raise SettingsError(f"the environment variable RIGHTSIZER_{name.upper()} is missing; the template sets it")


def _parse(name: str, value: str) -> Any:
    kind = Settings.__dataclass_fields__[name].type
    try:
        if kind is int:
            return int(value)
        if kind is Decimal:
            return Decimal(value)
        if kind is bool:
            return {"true": True, "false": False}[value.lower()]
        if kind == frozenset[str]:
            return frozenset(part.strip() for part in value.split(",") if part.strip())
    except (ValueError, KeyError, InvalidOperation):
        raise SettingsError(
            f"RIGHTSIZER_{name.upper()} is {value!r}, which is not a {getattr(kind, '__name__', kind)}"
        ) from None
    return value
