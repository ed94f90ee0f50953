"""A chat agent that is killed in the middle of a turn, and answers as if nothing had happened.

    python examples/chat_agent.py

It starts itself as a second process, kills that with SIGKILL, and goes on in a third.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import rekindle

QUESTIONS = ["What is a checkpoint?", "What is a branch?", "What is a tag?", "What is a plan?"]
GLOSSARY = {
    "checkpoint": "one immutable record of a state",
    "branch": "a named pointer that moves with each save",
    "tag": "a unique name that no retention takes away",
    "plan": "what a prune would do, with a reason for every checkpoint",
}


def model(question: str) -> str:
    """Stands for a language model: no network, the same answer each time."""
    word = question.rstrip("?").split()[-1]
    return f"{word}: {GLOSSARY[word]}."


def chat(path: str, die_at: int | None) -> None:
    """Answer what has not been answered yet, and save after every turn."""
    with rekindle.open_store(path) as store:
        state = store.restore("chat") if "chat" in store.agents() else {"messages": []}
        print(f"begins with {len(state['messages'])} messages", flush=True)
        for turn, question in enumerate(QUESTIONS):
            if turn < len(state["messages"]) // 2:
                continue  # answered before the crash
            state["messages"].append({"role": "user", "content": question})
            if turn == die_at:
                print(f"turn {turn} begins", flush=True)
                sys.stdin.read()  # a slow model: here the kill comes
            state["messages"].append({"role": "assistant", "content": model(question)})
            store.save("chat", state, kind="step", label=question)
            print(f"turn {turn} saved: {state['messages'][-1]['content']}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "store.db")
        command = [sys.executable, __file__, path, "2"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                print("  1st process:", line, end="")
                if line == "turn 2 begins\n":
                    process.kill()
        print(f"killed: exit status {process.returncode}")
        done = subprocess.run([sys.executable, __file__, path], stdout=subprocess.PIPE, text=True, check=True)
        for line in done.stdout.splitlines():
            print("  2nd process:", line)
        with rekindle.open_store(path) as store:
            messages = store.restore("chat")["messages"]
            print(f"{len(messages)} messages in {len(store.list('chat'))} checkpoints; {bool(store.verify())=}")
            assert [m["content"] for m in messages if m["role"] == "user"] == QUESTIONS


if __name__ == "__main__":
    if len(sys.argv) > 1:
        chat(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
    else:
        main()
