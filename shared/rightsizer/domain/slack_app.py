"""What the program holds of its Slack app: what signs its clicks, what posts its messages, and which app it is."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SlackKeys:
    """The content of the Secrets Manager secret. The two secrets are never printed."""

    signing_secret: str = field(repr=False)
    bot_token: str = field(repr=False)
    team_id: str = ""
    """Workspace whose clicks count, such as ``T0123``; empty: every workspace that the app is installed in."""
    app_id: str = ""
    """App whose clicks count, such as ``A0123``; empty: the app that the signing secret belongs to."""
