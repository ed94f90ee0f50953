"""What the demo prints, at a pace a person can follow. Colors on a terminal only."""

from __future__ import annotations

import sys
import time

_COLORS = {"title": "1", "good": "32", "bad": "1;31", "dim": "90", "seq": "33", "command": "1;36"}
_WIDTH = 78


class Screen:
    def __init__(self, *, fast: bool, color: bool) -> None:
        self._fast = fast
        self._color = color
        self._unicode = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "") == "utf8"

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{_COLORS[style]}m{text}\x1b[0m" if self._color else text

    def sign(self, fancy: str, plain: str) -> str:
        return fancy if self._unicode else plain

    def line(self, text: str = "") -> None:
        print(text, flush=True)

    def title(self, text: str) -> None:
        rule = self.sign("─", "-")
        self.line()
        self.line(self.paint(f"{rule * 2} {text} {rule * max(0, _WIDTH - len(text) - 4)}", "title"))
        self.rest(0.6)

    def told(self, text: str) -> None:
        """A sentence of the story, and time to read it."""
        self.line(self.paint(text, "dim"))
        self.rest(0.5)

    def command(self, text: str) -> None:
        self.line()
        self.line(self.paint(f"$ {text}", "command"))
        self.rest(0.3)

    def code(self, *lines: str) -> None:
        self.line()
        for line in lines:
            self.line(self.paint(f">>> {line}", "command"))
        self.rest(0.6)

    def rest(self, seconds: float) -> None:
        if not self._fast:
            time.sleep(seconds)
