"""Each example of the two pages on extensions is registered as a newcomer does it, and works in a deployed stack."""

import importlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from rightsizer import wire
from rightsizer.domain.option import OptionKind
from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.domain.reason import Code
from rightsizer.intake.registry import INVOKING, QUEUED
from rightsizer.render.report_formats import REPORT_FORMATS
from tests.doors import scene as doors
from tests.doors.scene import BIG, PROPOSE, START, Scene, scene

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "shared" / "rightsizer"
PAGES = (ROOT / "docs" / "extending-dimensions.md", ROOT / "docs" / "extending.md")
BLOCK = re.compile(r"^```(python|diff|yaml)\n# (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MOST_LINES = 60


@dataclass(frozen=True)
class Block:
    """A block of code on the page, and the file of the library that it is or changes."""

    language: str
    path: str
    text: str

    @property
    def module(self) -> str:
        """Name of the module of that file."""
        return "rightsizer." + self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def blocks() -> list[Block]:
    """The blocks of the pages that name a file in their first line."""
    return [Block(*found) for page in PAGES for found in BLOCK.findall(page.read_text())]


def block(language: str, path: str) -> Block:
    """The one block about a file."""
    (found,) = [one for one in blocks() if (one.language, one.path) == (language, path)]
    return found


def patched(source: str, diff: str) -> str:
    """The source with each hunk of the diff applied; a line of context that is gone fails the test."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        after = "".join(line[1:] for line in lines if line[0] in " +")
        assert source.count(before) == 1, f"the registry has {source.count(before)} places like this one:\n{before}"
        source = source.replace(before, after)
    return source


def run(name: str, source: str) -> ModuleType:
    """A module made of the source; nobody else can import it yet."""
    made = ModuleType(name)
    made.__package__ = name if name == "rightsizer.bootstrap" else name.rpartition(".")[0]
    exec(compile(source, f"docs/extending: {name}", "exec"), made.__dict__)
    return made


class Newcomer:
    """Adds files to the library and lines to its registries, for one test."""

    def __init__(self, patch: pytest.MonkeyPatch, members: pytest.MonkeyPatch) -> None:
        self.patch, self.members = patch, members

    def writes(self, path: str) -> None:
        """Add the file of the page to the library."""
        new = block("python", path)
        parent, _, name = new.module.rpartition(".")
        package = importlib.import_module(parent)
        assert not (LIBRARY / path).exists()
        module = ModuleType(new.module)
        self.patch.setitem(sys.modules, new.module, module)
        exec(compile(new.text, f"docs/extending: {path}", "exec"), module.__dict__)
        self.patch.setattr(package, name, module, raising=False)

    def registers(self, path: str, *names: str) -> None:
        """Change the registry as the page says, and let these names of it have their new values."""
        change = block("diff", path)
        registry = importlib.import_module(change.module)
        changed = run(change.module, patched((LIBRARY / path).read_text(), change.text))
        for name in names:
            self.patch.setattr(registry, name, getattr(changed, name))

    def names(self, path: str, kinds: type[StrEnum]) -> None:
        """Add the member of the page to an enumeration, which everybody has imported already."""
        change = block("diff", path)
        assert patched((LIBRARY / path).read_text(), change.text)
        ((name, value),) = re.findall(r'^\+ +(\w+) = "(.+)"$', change.text, re.MULTILINE)
        member = str.__new__(kinds, value)
        member._name_, member._value_ = name, value
        self.patch.setattr(
            kinds, name, member, raising=False
        )  # before it is a member: then it is neither set nor undone
        self.members.setitem(kinds._member_map_, name, member)
        self.members.setitem(kinds._value2member_map_, value, member)
        self.patch.setattr(wire, "_adapters", {})  # what was read before knows the old members


@pytest.fixture
def newcomer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Newcomer]:
    with pytest.MonkeyPatch.context() as members:
        yield Newcomer(monkeypatch, members)


def test_the_pages_show_each_extension_with_its_file_and_its_line_in_a_registry() -> None:
    shown = [(one.language, one.path) for one in blocks() if one.language != "yaml"]
    assert shown == [
        ("python", "dimensions/one_for_development.py"),
        ("diff", "domain/option.py"),
        ("diff", "dimensions/__init__.py"),
        ("python", "render/markdown.py"),
        ("diff", "render/report_formats.py"),
        ("python", "intake/pipeline.py"),
        ("diff", "intake/registry.py"),
        ("python", "channels/webhook.py"),
        ("diff", "bootstrap/channels.py"),
        ("python", "aws/contract.py"),
        ("diff", "bootstrap/__init__.py"),
    ]


@pytest.mark.parametrize("one", blocks(), ids=lambda one: one.path)
def test_an_example_is_short_enough_to_be_read_at_once(one: Block) -> None:
    assert len(one.text.splitlines()) < MOST_LINES


def test_a_change_of_a_registry_that_does_not_fit_is_noticed() -> None:
    with pytest.raises(AssertionError, match="0 places"):
        patched("FORMATS = (\n    a,\n)\n", "     b,\n+    c,\n")


def test_a_way_to_change_an_endpoint_is_recommended_approved_and_carried_out(newcomer: Newcomer) -> None:
    newcomer.names("domain/option.py", OptionKind)
    newcomer.writes("dimensions/one_for_development.py")
    newcomer.registers("dimensions/__init__.py", "DIMENSIONS")
    busy, kind = "search-rerank", OptionKind("one-for-development")
    with scene() as at:
        at.add(busy, tags={**PROPOSE, "tier": "development", "rightsizer:p95-ms": "100"})
        at.add(BIG, tags=PROPOSE)
        at.drive(busy)
        at.sweep()
        (why,) = [out.reason.code for out in at.recommendations()[BIG].excluded if out.dimension is kind]
        assert why is Code.NOT_OPTED_IN
        found = at.recommendations()[busy].chosen_option
        assert found is not None
        assert (found.kind, found.target.instance_count) == (kind, 1)
        message = at.message(busy).plain()
        assert "run on one ml.g6.2xlarge, as an endpoint for development" in message
        at.click(busy, "Details", why=None)
        assert "can be rolled back: rightsizer sets the old count again" in at.slack.modals[-1].plain()
        at.click(busy, "Approve")
        at.pass_time(minutes=10)
        (change,) = at.writes("sagemaker")
        assert change.operation == "UpdateEndpointWeightsAndCapacities", change
        (row,) = change.params["DesiredWeightsAndCapacities"]
        assert row["DesiredInstanceCount"] == 1
        assert at.stack.dead_letters() == []


def reported() -> tuple[dict[str, str], str]:
    """The files of the weekly report of a small account by their suffix, and the e-mail about them."""
    with scene(now=START - timedelta(days=1)) as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.until_report()
        assert at.stack.dead_letters() == []
        (mail,) = [str(call.params) for call in at.box.calls.of("sns", "Publish") if "reports/" in str(call.params)]
        return files(at), mail


def files(at: Scene) -> dict[str, str]:
    """What is stored of reports in the bucket, by suffix."""
    with at.box.gate.unrecorded():
        s3, bucket = at.box.client("s3"), at.stack.parts.names["Bucket"]
        keys = [row["Key"] for row in s3.list_objects_v2(Bucket=bucket, Prefix="reports/")["Contents"]]
        return {key.rpartition(".")[2]: s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode() for key in keys}


def test_a_report_format_is_stored_and_named_in_the_email(newcomer: Newcomer) -> None:
    newcomer.writes("render/markdown.py")
    newcomer.registers("render/report_formats.py", "REPORT_FORMATS")
    stored, mail = reported()
    assert set(stored) == {"html", "json", "csv", "md"}
    assert stored["md"].startswith("| endpoint | cost |\n|---|---|\n| search-embeddings | ")
    assert re.search(r"Table for the wiki: s3://\S+\.md", mail)


def test_an_event_source_has_its_endpoint_evaluated(
    newcomer: Newcomer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newcomer.writes("intake/pipeline.py")
    newcomer.registers("intake/registry.py", "QUEUED")
    rule, beside = block("yaml", "template.yaml").text, "  ServingRule:\n"
    template = (ROOT / "template.yaml").read_text()
    assert template.count(beside) == 1
    (tmp_path / "template.yaml").write_text(template.replace(beside, rule + beside))
    monkeypatch.setattr(doors, "ROOT", tmp_path)
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        event = {"source": "example.pipeline", "detail-type": "Model Deployed", "id": "1", "time": f"{START:%FT%TZ}"}
        at.stack.route(event | {"detail": {"endpoint": BIG}})
        assert BIG not in at.recommendations()
        at.stack.settle()
        assert BIG in at.recommendations()
        assert at.stack.dead_letters() == []


class Chat:
    """Stands for the chat behind the webhook: it remembers what it was sent, and answers in turn."""

    def __init__(self, *answers: int) -> None:
        self.answers, self.asked, self.texts = list(answers), list[str](), list[str]()

    def request(self, method: str, url: str, *, body: str, headers: dict[str, str]) -> SimpleNamespace:
        self.asked.append(f"{method} {url}")
        status = self.answers.pop(0) if self.answers else 200
        if status == 200:
            self.texts.append(json.loads(body)["text"])
        return SimpleNamespace(status=status, data=b"no")


def chat(newcomer: Newcomer, *answers: int) -> Chat:
    """The chat, with the channel of the page registered to write to it."""
    newcomer.writes("channels/webhook.py")
    newcomer.registers("bootstrap/channels.py", "channels")
    made = Chat(*answers)
    newcomer.patch.setattr("rightsizer.channels.webhook.POOL", made)
    return made


def test_a_notification_channel_is_told_of_a_proposal_and_of_a_report(newcomer: Newcomer) -> None:
    room = chat(newcomer)
    with scene(now=START - timedelta(days=1)) as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        (asked,) = at.proposals()
        (text,) = room.texts
        assert text.startswith(f"rightsizer: {BIG}")
        assert f"rightsizer approve {asked.id}" in text
        at.until_report()
        reports = [one for one in room.texts if "GPU endpoints of" in one]
        mails = [call.params["Message"] for call in at.box.calls.of("sns", "Publish")]
        assert len(reports) == 1
        assert [one.partition("\n\n")[2] for one in room.texts] == mails, "what the topic gets"
        assert at.stack.dead_letters() == []
    assert set(room.asked) == {"POST https://chat.example.com/hooks/ml-costs"}


def test_a_notification_channel_that_is_busy_gets_the_proposal_the_next_time(newcomer: Newcomer) -> None:
    room = chat(newcomer, 503)
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        assert room.texts == []
        at.pass_time(hours=1)
        assert len(room.texts) == 1
        assert at.stack.dead_letters() == []


def test_a_price_source_prices_what_it_knows_and_leaves_the_rest_to_the_next_one(newcomer: Newcomer) -> None:
    newcomer.writes("aws/contract.py")
    newcomer.registers("bootstrap/__init__.py", "price_sources")
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        (asked,) = at.proposals()
        found = asked.recommendation
        assert (found.instance_type, found.price and found.price.source) == ("ml.g5.8xlarge", "contract")
        assert found.usd_per_month == Decimal("2.90") * HOURS_PER_MONTH * found.instance_count
        assert found.chosen_option is not None
        assert found.chosen_option.price is not None
        assert found.chosen_option.price.source == "price-list-api"


def test_no_two_report_formats_have_one_suffix_or_title() -> None:
    """The second would be written over the first."""
    assert len({form.suffix for form in REPORT_FORMATS}) == len(REPORT_FORMATS)
    titles = [form.title for form in REPORT_FORMATS if form.title]
    assert len(set(titles)) == len(titles)


def test_no_event_is_read_by_two_sources() -> None:
    """The second parser would never be asked."""
    read = [event for parsers in (*QUEUED, *INVOKING) for event in parsers]
    assert len(set(read)) == len(read)
