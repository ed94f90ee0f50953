"""The states that are saved: seeded, and the same for every peer.

Three contents, always reported apart:
- `random bytes`: `bytes` of 8 bits a byte. Nothing can compress them: the incompressible rows.
- `random text`: `str` drawn from 94 printable characters. Nothing repeats, but they hold 6.5 bits a byte.
- `real text`: `str`, every message of the 60 conversations in data/ once, in order, then the documentation
  that the running Python carries (pydoc_data/topics.py, LICENSE.txt, the standard library's docstrings). No
  piece comes twice in one run. Characters outside ASCII are left out: a piece of 1024 characters is 1 KB.
"""

from __future__ import annotations

import functools
import json
import random
import re
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEED = 20241118
KB = 1024
MB = 1024 * 1024

State = dict[str, Any]
Piece = bytes | str
Message = dict[str, Any]
Content = Callable[[int], Iterator[Any]]  # size of a piece -> pieces without end, or until the text is used up

_DATA = Path(__file__).parent / "data" / "airline-conversations.jsonl"
_PRINTABLE = bytes(33 + i % 94 for i in range(256))
_NOT_DOCS = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "pydoc_data"}


def random_bytes(size: int) -> Iterator[bytes]:
    source = random.Random(SEED)
    while True:
        yield source.randbytes(size)


def random_text(size: int) -> Iterator[str]:
    for piece in random_bytes(size):
        yield piece.translate(_PRINTABLE).decode("ascii")


def real_text(size: int) -> Iterator[str]:
    """Ends with a ValueError when the text is used up, never with a piece that was there before."""
    text = _corpus()
    for start in range(0, len(text) - size, size):
        yield text[start : start + size]
    raise ValueError(f"this Python carries only {len(text)} characters of documentation: ask for a smaller run")


CONTENTS: Mapping[str, Content] = {
    "random bytes": random_bytes,
    "random text": random_text,
    "real text": real_text,
}


@functools.cache
def conversations() -> tuple[tuple[Message, ...], ...]:
    """The 60 conversations, each a tuple of messages in OpenAI's chat format."""
    lines = _DATA.read_text(encoding="utf-8").splitlines()
    return tuple(tuple(json.loads(line)["messages"]) for line in lines)


@functools.cache
def _source_code() -> str:
    """Of the standard library, without the docstrings: they are in the messages."""
    parts = [re.sub(r'""".*?"""', "", source, flags=re.DOTALL) for source in _library_sources()]
    return "".join(parts).encode("ascii", "ignore").decode("ascii")


@functools.cache
def _corpus() -> str:
    parts = [m["content"] for c in conversations() for m in c if m["content"]]
    parts += _python_docs()
    return "\n".join(dict.fromkeys(parts)).encode("ascii", "ignore").decode("ascii")


def _python_docs() -> list[str]:
    from pydoc_data.topics import topics

    library = Path(sysconfig.get_path("stdlib"))
    parts = [topics[name] for name in sorted(topics)]
    licence = library / "LICENSE.txt"
    if licence.exists():
        parts.append(licence.read_text(encoding="utf-8"))
    for source in _library_sources():
        parts += [doc for doc in re.findall(r'"""(.*?)"""', source, re.DOTALL) if len(doc) > 80]
    return parts


def _library_sources() -> Iterator[str]:
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        if _NOT_DOCS.isdisjoint(path.relative_to(library).parts):
            yield path.read_text(encoding="utf-8", errors="replace")


def messages(content: Content, count: int) -> Iterator[Message]:
    """Messages of 1 KB, user and assistant in turn."""
    pieces = content(KB)
    for n in range(count):
        yield {"role": "assistant" if n % 2 else "user", "content": next(pieces)}


def annotated(source: Iterator[Message]) -> Iterator[Message]:
    """The same messages with what frameworks keep beside the content."""
    pick = random.Random(SEED + 2)
    for message in source:
        asked, answered = pick.randrange(4000), pick.randrange(1000)
        yield message | {
            "id": pick.randbytes(16).hex(),
            "name": None,
            "created_at": 1731967200.0 + asked,
            "tool_calls": [],
            "metadata": {
                "model": "gpt-4o-2024-08-06",
                "finish_reason": "stop",
                "usage": {"input_tokens": asked, "output_tokens": answered, "total_tokens": asked + answered},
            },
        }


@dataclass(frozen=True)
class Workload:
    """A sequence of saves. `steps` starts it anew: (thread, state) after each step.

    As in an agent, the state of a thread is one object that the next step changes in place.
    """

    what: str
    state: str
    new_bytes: int
    new: str  # what `new_bytes` counts
    steps: Callable[[], Iterator[tuple[str, State]]]


def chat(content_name: str, turns: int, *, document: int = 0) -> Workload:
    content = CONTENTS[content_name]

    def steps() -> Iterator[tuple[str, State]]:
        state: State = {"messages": []}
        if document:
            state["document"] = document_of(content_name, document)
        source = messages(content, 2 * turns)
        for _ in range(turns):
            state["messages"] += [next(source), next(source)]
            yield "chat", state

    beside = f" beside an unchanged document of {document // KB} KB" if document else ""
    return Workload(
        f"chat of {turns} turns{beside}",
        f"2 x 1 KB of {content_name} new a turn, a checkpoint a turn",
        2 * KB * turns + document,
        "new data, the document once" if document else "new data",
        steps,
    )


def document_of(content_name: str, size: int) -> Piece:
    """Like the messages, and nothing that is in them: its real text is the standard library's source."""
    if content_name == "real text":
        return _source_code()[:size]
    data = random.Random(SEED - 1).randbytes(size)
    return data if content_name == "random bytes" else data.translate(_PRINTABLE).decode("ascii")


def conversation_replay(count: int) -> Workload:
    chosen = conversations()[:count]

    def steps() -> Iterator[tuple[str, State]]:
        for n, conversation in enumerate(chosen):
            state: State = {"messages": []}
            for message in conversation:
                state["messages"].append(message)
                yield f"conversation-{n}", state

    new = sum(len(json.dumps(m)) for c in chosen for m in c)
    return Workload(
        f"{count} real conversations in one store",
        "a checkpoint a message",
        new,
        "the messages as JSON",
        steps,
    )


def changing_dict(content_name: str, *, fields: int, size: int, steps: int) -> Workload:
    """A step gives 5 % of the fields, chosen at random, new values. The first state is not counted."""
    changed = max(1, fields // 20)

    def run() -> Iterator[tuple[str, State]]:
        pick = random.Random(SEED + 1)
        values = CONTENTS[content_name](size)
        state: State = {"fields": {f"field_{n:03d}": next(values) for n in range(fields)}}
        for _ in range(steps):
            for n in pick.sample(range(fields), changed):
                state["fields"][f"field_{n:03d}"] = next(values)
            yield "dict", state

    return Workload(
        f"dict of {fields} fields x {size} B, {steps} steps",
        f"{changed} random field(s) of {content_name} changed a step",
        steps * changed * size,
        "the changed values",
        run,
    )
