"""The graph that is saved, START -> agent -> END, and what is said in it: the same to the byte in every run."""

from __future__ import annotations

import operator
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer

from bench import payloads

CONFIG: Any = {"configurable": {"thread_id": "chat"}}
# As get_state_history asks a saver. Without the namespace theirs sorts every state of the thread: 4 x the time.
HISTORY: Any = {"configurable": {"thread_id": "chat", "checkpoint_ns": ""}}


class _WithDocument(MessagesState):
    document: bytes


class _Delta(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


class _Plain(TypedDict):
    messages: Annotated[list[dict[str, Any]], operator.add]


@dataclass(frozen=True)
class Chat:
    """A question and an answer of 1 KB a turn; a document, if any, comes with the first and is never touched again.

    Text is in LangChain's messages, under ids that nothing compresses, as they are in use. Bytes, which those
    cannot hold, are in plain dicts of role and content.
    """

    content: str
    turns: int
    document: int = 0

    @property
    def plain(self) -> bool:
        return self.content == "random bytes"

    @cached_property
    def _pieces(self) -> tuple[Any, ...]:
        return tuple(islice(payloads.CONTENTS[self.content](payloads.KB), 2 * self.turns))

    @cached_property
    def _ids(self) -> tuple[str, ...]:
        return tuple(islice(_uuids(), 2 * self.turns))

    @cached_property
    def _document(self) -> Any:
        return payloads.document_of("random bytes", self.document)

    def graph(self, saver: Any, *, delta: bool) -> Any:
        state = _Delta if delta else _Plain if self.plain else _WithDocument if self.document else MessagesState
        graph: Any = StateGraph(state)
        graph.add_node("agent", lambda state: {"messages": [self.message(len(state["messages"]))]})
        graph.add_edge(START, "agent")
        graph.add_edge("agent", END)
        return graph.compile(checkpointer=saver)

    def message(self, n: int) -> Any:
        """A new object each time: no two savers are handed the same one."""
        if self.plain:
            return {"role": "assistant" if n % 2 else "user", "content": self._pieces[n]}
        kind = AIMessage if n % 2 else HumanMessage
        return kind(content=self._pieces[n], id=self._ids[n])

    def question(self, turn: int) -> dict[str, Any]:
        document = {"document": self._document} if self.document and turn == 0 else {}
        return {"messages": [self.message(2 * turn)]} | document

    def values(self, turns: int) -> dict[str, Any]:
        """What the state holds after so many turns."""
        messages = {"messages": [self.message(n) for n in range(2 * turns)]}
        return messages | ({"document": self._document} if self.document else {})

    def new_bytes(self, turns: int) -> int:
        return 2 * payloads.KB * turns + self.document

    def __str__(self) -> str:
        where = "plain dicts under operator.add" if self.plain else "MessagesState"
        beside = f", beside an unchanged document of {self.document // payloads.KB} KB" if self.document else ""
        return f"2 x 1 KB of {self.content} new a turn ({where}){beside}"


def _uuids() -> Iterator[str]:
    source = random.Random(payloads.SEED + 3)
    while True:
        yield str(uuid.UUID(int=source.getrandbits(128), version=4))
