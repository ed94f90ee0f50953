"""A LangGraph chat that is killed while it answers, and goes on in another process without asking its tool again.

    python examples/langgraph_chat.py

It starts itself as a second process, kills that with SIGKILL, and goes on in a third. It needs `rekindle[langgraph]`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph

from rekindle.adapters.langgraph import RekindleSaver

THREAD = {"configurable": {"thread_id": "ada"}}
QUESTION = "What is the weather in Lisbon?"


def plan(state: MessagesState) -> dict:
    """Stands for a language model that calls a tool: no network, the same answer each time."""
    call = {"name": "weather", "args": {"city": "Lisbon"}, "id": "call-1"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


def weather(state: MessagesState) -> dict:
    print("the tool is asked", flush=True)
    return {"messages": [ToolMessage("sunny", tool_call_id="call-1")]}


def answer(state: MessagesState) -> dict:
    print("the answer begins", flush=True)
    sys.stdin.read()  # a slow model: here the kill comes
    return {"messages": [AIMessage(f"It is {state['messages'][-1].content} there.")]}


def chat(path: str) -> None:
    """Begin the chat, or go on where it stands: the same program for both."""
    with RekindleSaver.from_conn_string(path) as saver:
        builder = StateGraph(MessagesState)
        for node in (plan, weather, answer):
            builder.add_node(node)
        builder.add_edge(START, "plan")
        builder.add_edge("plan", "weather")
        builder.add_edge("weather", "answer")
        graph = builder.compile(checkpointer=saver)
        state = graph.get_state(THREAD)
        print(f"begins with {len(state.values.get('messages', []))} messages", flush=True)
        given = None if state.tasks else {"messages": [HumanMessage(QUESTION)]}
        done = graph.invoke(given, THREAD, durability="sync")
        print(f"{len(done['messages'])} messages, the last: {done['messages'][-1].content}", flush=True)
        print(f"{len(saver.store.list('ada'))} checkpoints; {bool(saver.store.verify())=}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, str(Path(folder) / "chat.db")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                print("  1st process:", line, end="")
                if line == "the answer begins\n":
                    process.kill()
        print(f"killed: exit status {process.returncode}")
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
        for line in done.stdout.splitlines():
            print("  2nd process:", line)
        assert "the tool is asked" not in done.stdout, "what it had said was there"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        chat(sys.argv[1])
    else:
        main()
