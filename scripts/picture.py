"""Make docs/img/session.svg anew: the program's own commands, run in a terminal on a real store, drawn as SVG.

python scripts/picture.py          (Linux or macOS; needs rich)
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

import rekindle

TARGET = Path(__file__).parents[1] / "docs" / "img" / "session.svg"
COLUMNS = 98
COMMANDS = (
    "rekindle log support --graph",
    "rekindle blame support:refund.amount",
    "rekindle diff support@4",
    "rekindle fork support@3 careful",
    "rekindle verify",
)
# rich's own template, without the fonts it would fetch from elsewhere
TEMPLATE = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
  <style>
    .{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
      font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
    .{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
    {styles}
  </style>
  <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
  </defs>
  {chrome}
  <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">{matrix}</g>
  </g>
</svg>
"""


def say(state: dict[str, Any], role: str, content: str) -> None:
    state["messages"].append({"role": role, "content": content})


def make(path: str) -> None:
    """A support agent's afternoon: a refund of 20 that becomes one of 2000, found and tried again on a branch."""
    with rekindle.open_store(path) as store:
        state: dict[str, Any] = {"customer": "ada", "order": 4711, "refund": {"amount": 0}, "messages": []}
        say(state, "user", "My order came broken.")
        store.save("support", state, kind="step", label="asked for a photo")
        say(state, "assistant", "I am sorry. Could you send a photo?")
        state["refund"]["amount"] = 20
        store.save("support", state, kind="step", label="looked at the photo")
        store.save("support", state, kind="manual", label="before the refund")
        say(state, "tool", "prices are in cents")
        state["refund"]["amount"] = 2000
        store.save("support", state, kind="step", label="read the price list")
        say(state, "assistant", "We have paid 2000 back to you.")
        store.save("support", state, kind="step", label="answered")


def run(command: str, folder: str) -> str:
    """What the command prints to a terminal, colors and all."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    env.pop("NO_COLOR", None)
    words = [sys.executable, "-m", *command.split()]
    with subprocess.Popen(words, cwd=folder, env=env, stdout=theirs, stderr=theirs, stdin=theirs) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux says so that the other end is closed
                break
            if not part:
                break
            said += part
    os.close(ours)
    if process.returncode != 0:
        raise SystemExit(f"`{command}` ended with {process.returncode}:\n{said.decode()}")
    return said.decode().replace("\r\n", "\n")


def main() -> None:
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    with tempfile.TemporaryDirectory() as folder:
        make(f"{folder}/.rekindle/store.db")
        for number, command in enumerate(COMMANDS):
            if number:
                console.print()
            console.print(Text("$ ", "bright_black") + Text(command, "bold"))
            console.print(Text.from_ansi(run(command, folder).rstrip("\n")), soft_wrap=True)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    picture = console.export_svg(title="rekindle", theme=DIMMED_MONOKAI, code_format=TEMPLATE, unique_id="session")
    TARGET.write_text(picture, encoding="utf-8")
    print(f"{TARGET}: {len(picture.encode())} bytes")


if __name__ == "__main__":
    main()
