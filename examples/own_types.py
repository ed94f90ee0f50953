"""A type of your own in a state: registered, later changed, and old checkpoints upgraded as they are restored.

    python examples/own_types.py

Last year's program runs as a process of its own and saves; this year's restores what it saved.
"""

import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rekindle
from rekindle.state.shown.path import render


def last_year(path: str) -> None:
    @rekindle.register(name="Order")
    @dataclass
    class Order:
        customer: str
        price: float

    with rekindle.open_store(path) as store:
        store.save("shop", {"open": [Order("ada", 12.5)]}, label="last year")


def with_items(data: dict[str, Any]) -> dict[str, Any]:
    """From version 1 to 2. An upgrade gets and answers data, not objects."""
    item = {"name": "(from version 1)", "cents": round(data["price"] * 100)}
    return {"customer": data["customer"], "items": [item]}


@dataclass
class ShopOrder:
    """The class was renamed too: what records carry is the registered name."""

    customer: str
    items: list[dict[str, Any]] = field(default_factory=list)

    @property
    def cents(self) -> int:
        return sum(item["cents"] for item in self.items)


def this_year(path: str) -> None:
    rekindle.register(ShopOrder, name="Order", version=2, upgrade={1: with_items})
    with rekindle.open_store(path) as store:
        state = store.restore("shop")
        order = state["open"][0]
        print(f"restored: {order}")
        assert isinstance(order, ShopOrder)
        assert order.cents == 1250

        order.items.append({"name": "stamps", "cents": 300})
        store.save("shop", state, label="this year")
        for change in store.diff("shop@1", "shop@2"):
            print(f"changed: {change.op} {render(change.path)}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "store.db")
        subprocess.run([sys.executable, __file__, path], check=True)
        this_year(path)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        last_year(sys.argv[1])
    else:
        main()
