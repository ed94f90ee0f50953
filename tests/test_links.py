"""Every link of README.md, CONTRIBUTING.md and docs/ leads somewhere: to a file that is there, and a heading in it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """The page without its fenced blocks and its code spans."""
    text = re.sub(r"(?ms)^ *(`{3,}|~{3,}).*?^ *\1 *$", "", page.read_text(encoding="utf-8"))
    return re.sub(r"`[^`\n]*`", "``", text)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ +(.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path) -> Iterator[str]:
    for target in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{target}: there is no {path}"
        elif anchor and anchor not in anchors(file):
            yield f"{target}: {file.name} has no heading {anchor!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_the_page_leads_somewhere(page: Path) -> None:
    assert not list(broken(page))


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One Two\n[a](page.md#one-two) [b](https://example.org) [c](no.md) [d](#three) `[e](f)`\n")
    assert [each.partition(":")[0] for each in broken(page)] == ["no.md", "#three"]
