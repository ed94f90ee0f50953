"""docs/format.md says what the code does: tables, extension types, kinds of nodes, edits, fields of a head."""

import re
from dataclasses import fields
from importlib.resources import files
from pathlib import Path

from rekindle.state.tree.nodes import Kind
from rekindle.state.values import codec
from rekindle.storage import record
from rekindle.storage.sqlite import database
from rekindle.storage.sqlite import file as sqlite_file
from rekindle.store import view

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")


def test_every_column_of_the_schema() -> None:
    schema = files("rekindle.storage.sqlite").joinpath("schema.sql").read_text(encoding="utf-8")
    schema = re.sub(r"--.*", "", schema).replace(" NOT NULL", "")
    for table, columns in re.findall(r"CREATE TABLE (\w+) \((.*?)\)\s*(?:WITHOUT ROWID)?;", schema, re.DOTALL):
        shown = re.search(rf"^{table}\s+\((.*)\)( WITHOUT ROWID)?$", PAGE, re.MULTILINE)
        assert shown is not None, table
        assert shown[1].split() == columns.split(), table


def test_every_extension_type() -> None:
    section = PAGE[PAGE.index("### Values") : PAGE.index("## Operations")]
    told = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", section, re.MULTILINE) for code in row.split(",")}
    assert told == {*codec._READERS, *codec._RAW_READERS, codec.OBJECT}


def test_every_kind_of_node() -> None:
    section = PAGE[PAGE.index("## States") : PAGE.index("### What is hashed")]
    told = [row.split(",") for row in re.findall(r"^\| ([\d, ]+) \| ", section, re.MULTILINE)]
    assert {int(kind) for row in told for kind in row} == set(map(int, Kind))


def test_every_edit_of_an_operation() -> None:
    told = set(re.findall(r'`\["(\w+)", ', PAGE))
    assert told == set(re.findall(r'\("(\w+)", ', view.__doc__ + _doc_of_edit()))


def _doc_of_edit() -> str:
    source = Path(view.__file__).read_text(encoding="utf-8")
    return source[source.index("Edit = ") : source.index("class Pointer")]


def test_every_field_of_a_head() -> None:
    outside = {"key", "seq", "link", "body_check", "reaches"}
    for field in fields(record.Head):
        assert field.name in outside or re.search(rf"\b{field.name}\b", PAGE), field.name


def test_the_numbers_of_this_version() -> None:
    assert f"0x{sqlite_file.APPLICATION_ID:08X}" in PAGE
    assert (record.FORMAT, record.CODEC, record.NO_KEY, database.FORMAT) == (1, 1, 0, 1)
    assert "Format 1." in PAGE
