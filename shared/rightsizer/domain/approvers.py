"""People who may decide: the stack's list `Approvers`, AWS identities, and the Slack app of clicks.

Sources: IAM User Guide, "IAM identifiers" and "IAM and AWS STS quotas" (characters of names and paths); STS API
Reference, GetCallerIdentity and AssumeRole (``assumed-role/NAME/SESSION``: the role's path is not in it, and whoever
assumes the role chooses the name of the session).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_PARTITION = "aws[a-z-]*"
_NAME = "[A-Za-z0-9_+=.@-]{1,64}"
_LIKE = "[A-Za-z0-9_+=.@*-]{1,64}"
"""A name with wildcards. A comma, which IAM allows in a name, ends an entry: ``*`` stands for it."""
_PATH = "(?:[A-Za-z0-9_+=.@-]+/)"
_PATH_LIKE = "(?:[A-Za-z0-9_+=.@*-]+/)"

SLACK = re.compile("[A-Z0-9]+")
"""A Slack user id."""
SHORT = re.compile(f"(?:role|user)/{_LIKE}")
WHOLE = re.compile(
    f"arn:(?P<partition>{_PARTITION}):(?:iam::(?P<account>[0-9]{{12}}):"
    f"(?P<what>root|role/{_LIKE}|role/{_PATH}+{_NAME}|user/{_PATH_LIKE}*{_LIKE})"
    f"|sts::(?P<other>[0-9]{{12}}):(?P<federated>federated-user/{_LIKE}))"
)
"""A wildcard stands behind the account only. A role with a path is named whole: the path of a caller's role is not
known, so that a wildcard behind a path would let roles of every other path in."""

_ARN = f"arn:(?P<partition>{_PARTITION}):"
_ACCOUNT = "::(?P<account>[0-9]{12}):"
_CALLERS: Mapping[str, re.Pattern[str]] = {
    "role": re.compile(
        f"{_ARN}sts{_ACCOUNT}assumed-role/(?P<name>[A-Za-z0-9_+=,.@-]{{1,64}})/[A-Za-z0-9_+=,.@-]{{2,64}}"
    ),
    "user": re.compile(f"{_ARN}iam{_ACCOUNT}user/(?P<path>(?:[!-.0-~]+/)*)(?P<name>[A-Za-z0-9_+=,.@-]{{1,64}})"),
    "root": re.compile(f"{_ARN}iam{_ACCOUNT}(?P<name>root)"),
    "federated-user": re.compile(f"{_ARN}sts{_ACCOUNT}federated-user/(?P<name>[A-Za-z0-9_+=,.@-]{{2,32}})"),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """An AWS identity as STS names it."""

    home: str
    """Partition and account, ``aws:111122223333``."""
    what: str
    """``role/NAME``, ``user/PATH/NAME``, ``federated-user/NAME`` or ``root``; of a role neither path nor session."""
    short: str
    """``role/NAME`` or ``user/NAME``; empty for an identity that has no short form."""

    @classmethod
    def from_arn(cls, arn: str) -> "Caller | None":
        """The identity behind the ARN of GetCallerIdentity; None where the ARN has none of the forms of STS and IAM."""
        for kind, form in _CALLERS.items():
            found = form.fullmatch(arn)
            if found is None:
                continue
            home = f"{found['partition']}:{found['account']}"
            if kind == "root":
                return cls(home, "root", "")
            path = found["path"] if kind == "user" else ""
            return cls(
                home, f"{kind}/{path}{found['name']}", f"{kind}/{found['name']}" if kind in ("role", "user") else ""
            )
        return None

    def entry(self, home: str) -> str:
        """The entry of `Approvers` that names this identity on the list of a stack in `home`."""
        if self.short and self.home == home:
            return self.short.replace(",", "*")
        partition, _, account = self.home.partition(":")
        service = "sts" if self.what.startswith("federated-user/") else "iam"
        return f"arn:{partition}:{service}::{account}:{self.what}".replace(",", "*")


def caller_name(arn: str) -> str:
    """An AWS identity for people: ``ada@example.com (role ml-oncall)``, ``user ada``, as Caller has them.

    Whoever assumes a role chooses the name of the session. What has no form of STS or IAM stays as it is.
    """
    caller = Caller.from_arn(arn)
    if caller is None:
        return arn
    kind, _, name = caller.what.partition("/")
    return f"{arn.rpartition('/')[2]} (role {name})" if kind == "role" else f"{kind} {name}".strip()


@dataclass(frozen=True, slots=True)
class Approvers:
    """The list as it was deployed. An entry of no known form names nobody."""

    entries: frozenset[str] = frozenset()
    """Empty: there is no list. Nobody decides in Slack, and IAM alone says who decides elsewhere (`may_decide`)."""
    home: str = ""
    """Partition and account of the stack, ``aws:111122223333``: where short forms count."""
    place: str = ""
    """Where the list stands in the policy document; empty: it is the stack's parameter `Approvers`."""
    unreadable: str = ""
    """Why the list cannot be understood, so that nobody decides until it is put right; empty where it can be."""
    four_eyes: bool = False
    """Whether owners, and whoever asked for a test or an order, need somebody else to approve."""
    owners: frozenset[str] = frozenset()
    """Entries of the persons who own what is decided on."""

    @classmethod
    def parse(cls, text: str, home: str) -> "Approvers":
        """The list from the parameter's text, entries separated by commas."""
        return cls(frozenset(part.strip() for part in text.split(",") if part.strip()), home)

    @property
    def slack_users(self) -> frozenset[str]:
        """Ids of the Slack users that may decide in Slack."""
        return frozenset(one for one in self.entries if SLACK.fullmatch(one))

    @property
    def terminal_entries(self) -> tuple[str, ...]:
        """Entries that name AWS identities, which may decide at a terminal, in order."""
        return tuple(sorted(one for one in self.entries if SHORT.fullmatch(one) or WHOLE.fullmatch(one)))

    @property
    def unknown_entries(self) -> tuple[str, ...]:
        """Entries of no known form, in order."""
        return tuple(sorted(self.entries - self.slack_users - frozenset(self.terminal_entries)))

    def has_entry_for(self, caller: Caller) -> bool:
        """Whether an entry names the identity."""
        return any(self._is_match(entry, caller) for entry in self.terminal_entries)

    def is_owner(self, person: str) -> bool:
        """Whether the Slack user or the ARN of an AWS identity is one of the owners."""
        caller = Caller.from_arn(person)
        if caller is None:
            return person in self.owners
        return Approvers(self.owners, self.home).has_entry_for(caller)

    @property
    def title(self) -> str:
        """The list, as sentences name it."""
        return f"the list {self.place} of the policy document" if self.place else "the list Approvers"

    def _is_match(self, entry: str, caller: Caller) -> bool:
        whole = WHOLE.fullmatch(entry)
        if whole is None:
            return bool(self.home) and caller.home == self.home and is_match(entry, caller.short)
        home = f"{whole['partition']}:{whole['account'] or whole['other']}"
        wanted = whole["what"] or whole["federated"]
        if wanted.startswith("role/"):
            wanted = f"role/{wanted.rpartition('/')[2]}"  # names of roles are unique in an account, whatever their path
        return caller.home == home and is_match(wanted, caller.what)


def may_decide(*, is_listed: bool, has_list: bool, is_behind_iam: bool) -> bool:
    """Whether a person may decide: one on the list, or anybody whom IAM let through where there is no list.

    `has_list`: the list has an entry. What an empty list means depends on the door, and is meant to (decision 55).
    In Slack: everybody in the workspace can click, the signature says no more than that Slack sent the click, and
    nothing but the list says who may decide. So without a list nobody decides. At a terminal: IAM says who may write
    to the table. So without a list IAM alone decides, and a stack without Slack needs no list. `apply` asks the same of
    what was recorded, by its door: who empties the list takes the waiting approvals of Slack along.
    """
    return is_listed or (is_behind_iam and not has_list)


def is_match(pattern: str, text: str) -> bool:
    """Whether the text is the pattern with something, or nothing, in place of each ``*``; no other sign is special."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    if not text.startswith(first):
        return False
    at = len(first)
    for part in middle:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return text.endswith(last) and len(text) - len(last) >= at


@dataclass(frozen=True, slots=True)
class SlackKeys:
    """The content of the Secrets Manager secret. The two secrets are never printed."""

    signing_secret: str = field(repr=False)
    bot_token: str = field(repr=False)
    team_id: str = ""
    """Workspace whose clicks count, such as ``T0123``; empty: every workspace that the app is installed in."""
    app_id: str = ""
    """App whose clicks count, such as ``A0123``; empty: the app that the signing secret belongs to."""
