"""Methods of dataclasses from bytecode that the build made: the classes are as they are without it."""

import builtins
import dataclasses
import marshal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from compile_dataclasses import without_lines
from rightsizer import BUILT_METHODS, source_digest, use_built_methods


def price_class() -> Any:
    """A class of its own at each call, whose methods are generated anew."""

    @dataclass(frozen=True, slots=True, order=True)
    class Price:
        """A price."""

        usd: float
        region: str = "eu-west-1"
        notes: tuple[str, ...] = field(default_factory=tuple, kw_only=True)

    return Price


@pytest.fixture
def untouched() -> Iterator[dict[str, Any]]:
    """What `dataclasses` holds; its `exec` is as it was after the test."""
    held = vars(dataclasses)
    before = held.pop("exec", None)
    yield held
    held.pop("exec", None)
    if before is not None:
        held["exec"] = before


def written(folder: Path, held: dict[str, Any]) -> tuple[Path, list[str]]:
    """The file that the build would write for `price_class`, and the source that it holds."""
    sources: list[str] = []

    def note(source: str, *namespaces: Any) -> None:
        sources.append(source)
        exec(source, *namespaces)

    held["exec"] = note
    price_class()
    del held["exec"]
    file = folder / "methods.bin"
    codes = {source_digest(text): marshal.dumps(without_lines(compile(text, "<x>", "exec"))) for text in sources}
    file.write_bytes(marshal.dumps(codes))
    return file, sources


def test_a_class_from_bytecode_behaves_as_one_that_is_compiled(
    tmp_path: Path, untouched: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, sources = written(tmp_path, untouched)
    use_built_methods(file)
    run, ran = builtins.exec, []

    def note(code: Any, *namespaces: Any) -> None:
        ran.append(type(code))
        run(code, *namespaces)

    monkeypatch.setattr(builtins, "exec", note)
    built = price_class()
    assert len(sources) == 1
    assert ran == [CodeType]
    one, dear = built(1.5, notes=("a",)), built(2.0, "us-east-1")
    assert (one.usd, one.region, one.notes, dear.region, dear.notes) == (1.5, "eu-west-1", ("a",), "us-east-1", ())
    assert one == built(1.5, notes=("a",)) != dear
    assert one < dear
    assert hash(one) == hash(built(1.5, notes=("a",)))
    assert repr(one).endswith("Price(usd=1.5, region='eu-west-1', notes=('a',))")
    assert replace(one, usd=3.0).usd == 3.0
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'usd'"):
        one.usd = 4.0
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'usd'"):
        built()


def test_methods_that_the_file_does_not_have_are_compiled(tmp_path: Path, untouched: dict[str, Any]) -> None:
    (file := tmp_path / "methods.bin").write_bytes(marshal.dumps({}))
    use_built_methods(file)
    assert price_class()(1.0).usd == 1.0


def test_without_the_file_nothing_is_replaced(tmp_path: Path, untouched: dict[str, Any]) -> None:
    use_built_methods(tmp_path / "absent.bin")
    assert "exec" not in untouched


def test_the_file_is_of_one_version_of_python_and_not_in_the_source() -> None:
    assert sys.implementation.cache_tag in BUILT_METHODS.name
    assert not BUILT_METHODS.exists()
