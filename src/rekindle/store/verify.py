"""Is everything there, and is it what was written? Every record, hash, reference and chain of one user."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..agents import revive
from ..errors import CorruptDataError, InvalidInputError, RekindleError
from ..refs import quote_agent
from ..state.tree.nodes import Child, Index, Item, Kind, Node, Run
from ..storage.base import OPERATIONS, Key, agent_of, has_checkpoints, is_journal
from ..storage.record import OPERATION, Head, check_body, open_head
from .answers import SHAPE, checkpoint
from .engine import Engine
from .oplog import operation_of
from .ranges import Ranges
from .saving.drafts import about_of
from .saving.tips import branch_heads
from .view import AgentView

Progress = Callable[[int, int], None] | None
_BATCH = 256
_LOOKS = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; `where` is a reference, or the store's own part."""

    where: str
    code: str
    message: str

    def to_dict(self) -> dict[str, str]:
        return {"where": self.where, "code": self.code, "message": self.message}


@dataclass
class Report:
    """What a verification found. True when nothing is wrong."""

    agents: int = 0
    checkpoints: int = 0
    entries: int = 0
    operations: int = 0
    parts: int = 0
    bytes: int = 0
    restored: int | None = None
    problems: list[Problem] = field(default_factory=list)

    def __bool__(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        names = ("agents", "checkpoints", "entries", "operations", "parts", "bytes", "restored")
        return {
            "ok": bool(self),
            **{name: getattr(self, name) for name in names},
            "problems": [p.to_dict() for p in self.problems],
        }


def verify(
    engine: Engine, user: str, *, restore: bool = False, progress: Progress = None, imports: Sequence[str] = ()
) -> Report:
    """Everything is read and checked; nothing is changed. A problem does not end the search for others."""
    report = Report()
    _guarded(report, "the storage", lambda: _check_storage(engine, report))
    view_ok = _guarded(report, "the operation log", lambda: _check_operations(engine, user, report))
    keys: list[Key] = []
    _guarded(report, "the list of agents", lambda: keys.extend(engine.storage.keys(user)))
    agents = [key for key in keys if key.agent != OPERATIONS]  # journals too
    total = sum(newest[0].seq for key in agents if (newest := _newest(engine, key)))
    done = 0
    for key in agents:
        check = _AgentCheck(engine, key, engine.log.view(user).agent(key.agent) if view_ok else None, report)
        for n in check.run():
            done += n
            if progress is not None:
                progress(min(done, total), total)
        report.agents += has_checkpoints(key.agent)
    if restore:
        _rebuild_all(engine, user, agents, report, imports, progress)
    return report


def _newest(engine: Engine, key: Key) -> list[Any]:
    try:
        return list(engine.storage.heads(key, limit=1))
    except RekindleError:
        return []


def _guarded(report: Report, where: str, step: Callable[[], object]) -> bool:
    try:
        step()
    except RekindleError as e:
        report.problems.append(Problem(where, e.code, e.message))
        return False
    return True


def _check_storage(engine: Engine, report: Report) -> None:
    report.problems += [Problem("the storage", "bad-file", text) for text in engine.storage.check()]


def _check_operations(engine: Engine, user: str, report: Report) -> None:
    key = Key(user, OPERATIONS)
    later: Head | None = None
    for head in engine.log.heads_after(key, 0):
        if head.kind != OPERATION:
            raise CorruptDataError("bad-record", f"operation {head.seq} is a {head.kind!r}")
        if later is not None and later.parent_link != head.link:
            raise CorruptDataError("broken-chain", f"operation {later.seq} does not follow operation {head.seq}")
        operation_of(head)
        report.operations += 1
        later = head
    if later is not None and later.seq != 1:
        raise CorruptDataError("record-lost", f"the operations before {later.seq} are missing")
    engine.log.view(user, fresh=True)


class _AgentCheck:
    """`view` None: the operation log cannot be read."""

    def __init__(self, engine: Engine, key: Key, view: AgentView | None, report: Report) -> None:
        self._engine = engine
        self._key = key
        self._view = view or AgentView()
        self._follows = view is not None
        self._report = report
        self._good: set[tuple[Any, ...]] = set()
        self._links: dict[int, tuple[int, bytes]] = {}
        self._reader = engine.reader(key)

    def run(self) -> Iterator[int]:
        """Check the agent; yields how many records were looked at, as it goes."""
        storage, key = self._engine.storage, self._key
        before: int | None = None
        newest: Head | None = None
        expected: int | None = None
        while True:
            try:
                found = storage.heads(key, before=before, limit=_BATCH)
            except RekindleError as e:
                self._problem(0, e)
                return
            if not found:
                break
            opened = [head for seq, data in found if (head := self._open(seq, data)) is not None]
            newest = newest or (opened[0] if opened else None)
            for seq, _ in found:
                self._gap(seq, expected)
                expected = seq - 1
            self._check_bodies(opened)
            for head in opened:
                self._check_head(head)
            yield len(found)
            before = found[-1].seq
        self._gap(0, expected)
        if has_checkpoints(self._key.agent):
            self._check_pointers(newest)

    def _open(self, seq: int, data: bytes) -> Head | None:
        try:
            head = open_head(self._key, seq, data)
        except RekindleError as e:
            self._problem(seq, e)
            return None
        known = self._links.pop(seq, None)
        if known is not None and known[1] != head.link:
            self._say(known[0], "broken-chain", f"its parent is not the record {seq} that is there")
        if head.parent:
            self._links[head.parent] = (seq, head.parent_link)
        return head

    def _gap(self, seq: int, expected: int | None) -> None:
        if expected is None or seq == expected:
            return
        missing = Ranges([(seq + 1, expected)]) - self._view.gone
        if missing and (missing := missing - self._taken_since()):
            self._say(missing.pairs[-1][1], "record-lost", f"{len(missing)} records are missing that nothing took out")

    def _taken_since(self) -> Ranges:
        """What a collect beside this has taken out since: that it cannot be read any more is no finding."""
        if not self._follows:
            return Ranges()
        return self._engine.log.view(self._key.user, fresh=True).agent(self._key.agent).gone - self._view.gone

    def _check_bodies(self, opened: Sequence[Head]) -> None:
        if not opened:
            return
        by_seq = {head.seq: head for head in opened}
        try:
            for seq, body in self._engine.storage.bodies(self._key, [(min(by_seq), max(by_seq))]):
                if seq in by_seq:
                    try:
                        check_body(by_seq.pop(seq), body)
                        self._report.bytes += len(body)
                    except CorruptDataError as e:
                        if not self._sound_now(seq):
                            self._problem(seq, e)
        except RekindleError as e:
            self._problem(opened[0].seq, e)
            return
        for seq in by_seq:
            if not self._sound_now(seq):
                self._say(seq, "record-lost", "its body is missing")

    def _sound_now(self, seq: int) -> bool:
        """Whether a record is whole after all, or taken out: a collect may have emptied it between head and body."""
        if (
            not self._follows
            or seq not in self._engine.log.view(self._key.user, fresh=True).agent(self._key.agent).gone
        ):
            return False
        storage = self._engine.storage
        for _ in range(_LOOKS):
            data, body = storage.head(self._key, seq), dict(storage.bodies(self._key, [(seq, seq)])).get(seq)
            if data is None:
                return True
            try:
                if body is not None:
                    check_body(open_head(self._key, seq, data), body)
                    return True
            except CorruptDataError:
                continue  # emptied once more between these two, or really damaged: look again
        return False

    def _check_head(self, head: Head) -> None:
        if head.seq in self._view.gone:
            return
        if is_journal(self._key.agent):
            self._report.entries += 1
        else:
            self._report.checkpoints += 1
        try:
            if head.alias is not None:
                found = self._engine.storage.find_alias(self._key.user, head.alias)
                if found != (self._key.agent, head.seq):
                    self._say(head.seq, "bad-index", f"the index of ids does not find it as {head.alias!r}")
            if is_journal(self._key.agent):
                about_of(head)
            self._check_node(self._engine.root(head))
        except RekindleError as e:
            self._problem(head.seq, e)

    def _check_node(self, node: Node) -> None:
        """Every run and index of a state, once each: content against hash."""
        runs: list[Run] = []
        todo: list[Item] = list(node.top)
        while todo:
            item = todo.pop()
            if isinstance(item, Child):
                self._check_node(item.node)
            elif isinstance(item, Index):
                if self._new(item.digest, item.place):
                    todo += self._reader.index_items(item, self._reader.fetch([item.place])[0])
            elif self._new(item.digest, *item.places):
                runs.append(item)
        for run in runs:
            self._reader.contents([run], node.kind if node.kind in (Kind.STR, Kind.BYTES) else Kind.LIST)
            self._report.parts += 1

    def _new(self, *what: Any) -> bool:
        if what in self._good:
            return False
        self._good.add(what)
        return True

    def _check_pointers(self, newest: Head | None) -> None:
        try:
            heads = branch_heads(newest, self._view)
        except RekindleError as e:
            self._problem(0, e)
            return
        for what, names in (("branch", heads), ("tag", dict(self._view.tags))):
            for name, seq in names.items():
                if self._engine.storage.head(self._key, seq) is None:
                    self._say(seq, "dangling-name", f"the {what} {name!r} points to a checkpoint that is not there")

    def _problem(self, seq: int, error: RekindleError) -> None:
        self._say(seq, error.code, error.message)

    def _say(self, seq: int, code: str, message: str) -> None:
        if seq in self._taken_since():
            return
        where = _place(self._key.agent, seq)
        self._report.problems.append(Problem(where, code, message))


def _place(agent: str, seq: int) -> str:
    at = f"@{seq}" if seq else ""
    return f"the journal of {quote_agent(agent_of(agent))}{at}" if is_journal(agent) else quote_agent(agent) + at


# -- rebuilding every state -------------------------------------------------------------------------------------------


def _rebuild_all(
    engine: Engine, user: str, agents: Sequence[Key], report: Report, imports: Sequence[str], progress: Progress
) -> None:
    report.restored = 0
    wanted = [(key.agent, head.seq) for key in agents for head in _alive(engine, key, report)]
    if engine.storage.concurrent:
        lines: Iterator[tuple[str, int, str | None]] = _in_fresh_process(engine.storage.url, user, wanted, imports)
    else:  # nobody else can see it: this process has to do
        lines = rebuild(engine, user, wanted)
    for n, (agent, seq, failure) in enumerate(lines, 1):
        if failure is None:
            report.restored += 1
        else:
            report.problems.append(Problem(_place(agent, seq), "not-restored", failure))
        if progress is not None:
            progress(n, len(wanted))


def _alive(engine: Engine, key: Key, report: Report) -> list[Head]:
    dropped = engine.log.view(key.user).agent(key.agent).dropped
    found = []
    try:
        for head in engine.heads(key):
            if head.seq not in dropped:
                found.append(head)
    except RekindleError as e:
        report.problems.append(Problem(_place(key.agent, 0), e.code, e.message))
    return found


def rebuild(engine: Engine, user: str, wanted: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int, str | None]]:
    """(agent, seq, why it does not come back or None) of each, its live value really built."""
    for agent, seq in wanted:
        try:
            head = engine.head(Key(user, agent), seq)
            value = engine.state(head)
            if head.more.get(SHAPE) == "agent":
                revive(replace(checkpoint(engine, head, {}), **value))
        except RekindleError as e:
            yield agent, seq, str(e)
        except Exception as e:  # noqa: BLE001  a user's own class may raise anything; that is the finding
            yield agent, seq, f"{type(e).__name__}: {e}"
        else:
            yield agent, seq, None


def _in_fresh_process(
    url: str, user: str, wanted: Sequence[tuple[str, int]], imports: Sequence[str]
) -> Iterator[tuple[str, int, str | None]]:
    """The same in a new Python that has imported rekindle and `imports` alone; InvalidInputError where it could not."""
    told = json.dumps({"url": url, "user": user, "imports": list(imports)}) + "\n"
    asked = "".join(json.dumps(list(pair)) + "\n" for pair in wanted)
    run = subprocess.Popen(
        [sys.executable, "-m", "rekindle.store.rebuild"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdin is not None
    assert run.stdout is not None

    def feed() -> None:
        try:
            run.stdin.write(told + asked)  # type: ignore[union-attr]
            run.stdin.close()  # type: ignore[union-attr]
        except BrokenPipeError:
            pass  # it ended early; its exit code tells

    threading.Thread(target=feed, daemon=True).start()
    failure = json.loads(run.stdout.readline() or "null")
    if failure is not None:
        run.wait()
        run.stdout.close()
        raise InvalidInputError("bad-import", failure, hint="it is looked for in the working folder, then on sys.path")
    left = deque(wanted)
    for line in run.stdout:
        agent, seq, failure = json.loads(line)
        left.popleft()
        yield agent, seq, failure
    code = run.wait()
    run.stdout.close()
    for agent, seq in left:
        yield agent, seq, f"the process that restored it ended with {code}"
