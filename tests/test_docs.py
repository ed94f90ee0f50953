"""Every fenced block of README.md and docs/ does what it says.

python    runs; the blocks of one file share one namespace and one new folder
console   `$ ` lines run in bash in that folder, `> ` lines go on; what follows is their output,
          where `...` stands for anything
json, jsonl, yaml, toml   parse
text, mermaid, or any block tagged no-run   are only read

Beside the language: `needs=numpy` skips a block where numpy is missing; `fails` lets its commands fail
(without it a command may only fail when the next one is `echo $?`).
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TIMEOUT = 120
ONLY_READ = {"text", "mermaid"}
PARSERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "jsonl": lambda text: [json.loads(line) for line in text.splitlines()],
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "toml": tomllib.loads,
}

# Runs blocks as they come in, as one `__main__`; what they print goes to stderr, the answers to stdout.
DRIVER = """
import json, os, signal, sys, traceback, types
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
main = sys.modules["__main__"] = types.ModuleType("__main__")
sys.path.insert(0, "")
for request in map(json.loads, sys.stdin):
    trouble = None
    signal.alarm(TIMEOUT)  # a block that hangs takes the interpreter with it
    try:
        exec(compile("\\n" * request["line"] + request["body"], request["page"], "exec"), main.__dict__)
    except BaseException:
        trouble = traceback.format_exc()
    sys.stdout.flush()
    print(json.dumps(trouble), file=answers, flush=True)
""".replace("TIMEOUT", str(TIMEOUT))


@dataclass(frozen=True)
class Block:
    page: Path
    line: int  # of the opening fence
    language: str
    tags: tuple[str, ...]
    body: str

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def missing(self) -> list[str]:
        needs = [name for tag in self.tags if tag.startswith("needs=") for name in tag[6:].split(",")]
        return [name for name in needs if importlib.util.find_spec(name) is None]


def blocks(page: Path) -> Iterator[Block]:
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))
    for number, line in lines:
        opening = re.match(r"( *)(`{3,}|~{3,})\s*([^`]*)$", line)
        if opening is None:
            continue
        indent, fence, info = opening.groups()
        body: list[str] = []
        for _, inner in lines:
            if inner.strip().startswith(fence) and not inner.strip().strip(fence[0]):
                break
            body.append(inner.removeprefix(indent))
        else:
            raise AssertionError(f"{page}:{number}: this block is never closed")
        language, *tags = info.split() or [""]
        yield Block(page, number, language, tuple(tags), "".join(f"{each}\n" for each in body))


class Python:
    """One interpreter, started at its first block, for the python blocks of one page."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.said = folder.with_name("said.txt")
        with self.said.open("w") as said:
            command = [sys.executable, "-c", DRIVER]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, cwd=folder, env=env, stdin=pipe, stdout=pipe, stderr=said)

    def run(self, block: Block) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"body": block.body, "line": block.line, "page": str(block.page)}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        trouble = json.loads(answer) if answer else "the interpreter went away"
        assert trouble is None, f"{block.where}\n{trouble}\n{self.said.read_text()}"

    def close(self) -> None:
        self.process.communicate(timeout=TIMEOUT)


@dataclass(frozen=True)
class Command:
    text: str
    expected: str


def commands(body: str) -> list[Command]:
    found: list[tuple[list[str], list[str]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0].append(line[2:])
        else:
            assert found, f"a console block starts with `$ `, not with {line!r}"
            found[-1][1].append(line)
    return [Command("\n".join(text), "\n".join(expected)) for text, expected in found]


def run_console(block: Block, folder: Path, env: dict[str, str]) -> None:
    steps = commands(block.body)
    mark = "--8<-- status"
    script = "".join(f"{step.text}\n(s=$?; printf '\\n{mark} %s\\n' $s; exit $s)\n" for step in steps)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder, env=env, timeout=TIMEOUT, check=False, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    parts = re.split(rf"\n{mark} (\d+)\n", done.stdout)
    for number, step in enumerate(steps):
        told = f"{block.where}\n$ {step.text}\n"
        assert len(parts) > 2 * number + 1, f"{told}bash ended here:\n{parts[-1]}"
        output, status = parts[2 * number], int(parts[2 * number + 1])
        assert matches(step.expected, output), f"{told}--- expected\n{step.expected}\n--- got\n{output}"
        asked = steps[number + 1 : number + 2] and steps[number + 1].text == "echo $?"
        assert status == 0 or asked or "fails" in block.tags, f"{told}exit status {status}\n{output}"


CLOCK = r"\d\d:\d\d(:\d\d(\.\d+)?)?"
UNIT = r"(ns|us|µs|ms|s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)"
NORMAL = (
    (re.compile(r"\bchk_[0-9a-z-]+"), "chk_ID"),
    (re.compile(rf"\d{{4}}-\d\d-\d\d([T ]{CLOCK}( ?(Z|UTC|[+-]\d\d:?\d\d))?)?|\b{CLOCK}\b"), "TIME"),
    (re.compile(rf"\b\d+(\.\d+)? ?{UNIT}\b( ago)?|\bjust now\b"), "DURATION"),
    (re.compile(r"DURATION( DURATION)+"), "DURATION"),
    (re.compile(r"[ \t]+"), " "),
)


def normal(text: str) -> list[str]:
    for pattern, name in NORMAL:
        text = pattern.sub(name, text)
    return [line.strip() for line in text.strip("\n").splitlines()]


def matches(expected: str, output: str) -> bool:
    pattern = ""
    for line in normal(expected):
        pattern += r"(.*\n)*?" if line == "..." else ".*?".join(map(re.escape, line.split("..."))) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in normal(output))) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_of_the_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    bin_folder = str(Path(sys.executable).parent)
    env = {"PATH": os.pathsep.join([bin_folder, os.environ["PATH"]]), "HOME": str(folder), "TZ": "UTC"}
    env |= {"LC_ALL": "C.UTF-8", "NO_COLOR": "1", "COLUMNS": "110", "PYTHONUNBUFFERED": "1"}
    skipped: list[str] = []
    python: Python | None = None
    try:
        for block in blocks(page):
            if block.language in ONLY_READ or "no-run" in block.tags:
                continue
            if block.missing:
                skipped.append(f"{block.where} needs {', '.join(block.missing)}")
            elif block.language == "python":
                python = python or Python(folder, env)
                python.run(block)
            elif block.language == "console":
                run_console(block, folder, env)
            else:
                parse(block)
    finally:
        if python is not None:
            python.close()
    if skipped:
        pytest.skip("; ".join(skipped))


def parse(block: Block) -> None:
    known = ["python", "console", *PARSERS, *sorted(ONLY_READ)]
    assert block.language in PARSERS, f"{block.where}: tag this block with one of {', '.join(known)}"
    try:
        PARSERS[block.language](block.body)
    except (ValueError, yaml.YAMLError) as e:
        raise AssertionError(f"{block.where}: this is no {block.language}: {e}") from e


def test_ids_times_and_durations_do_not_matter() -> None:
    shown = "chk_01jd-3f  2026-01-02 03:04:05  saved in 3.2 ms, 2 min ago"
    assert matches(shown, "chk_99zz  2031-11-12 13:14  saved in 12 ms,  1h 5m ago\n")
    assert not matches(shown, "chk_99zz  2031-11-12 13:14  saved in 12 ms, 5 files ago\n")


def test_three_dots_stand_for_anything_and_the_rest_counts() -> None:
    assert matches("first\n...\nlast ... word", "first\na\nb\nlast of all the word\n")
    assert matches("...\nlast", "last\n")
    assert not matches("first\nlast", "first\nsecond\nlast\n")
    assert not matches("", "a surprise\n")


def test_a_block_that_lies_is_caught(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"]}
    here = ROOT / "README.md"
    run_console(Block(here, 1, "console", (), "$ cat <<E\n> one\n> E\none\n$ false\n$ echo $?\n1\n"), tmp_path, env)
    for lie in ("$ echo one\ntwo\n", "$ false\n", "$ exit 3\n$ echo on\non\n"):
        with pytest.raises(AssertionError, match=r"README\.md:1"):
            run_console(Block(here, 1, "console", (), lie), tmp_path, env)
