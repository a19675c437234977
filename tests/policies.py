"""Policy documents for tests."""

import json
from typing import Any

from rightsizer.domain.policy_document import PolicyDocument
from rightsizer.policy_reader import read_policy


def document(said: dict[str, Any], problems: int = 0) -> PolicyDocument:
    """The document as it is read, with so many problems."""
    found = read_policy(json.dumps(said))
    assert len(found.problems) == problems, found.problems
    return found
