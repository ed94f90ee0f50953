"""What the command line draws: branches beside a log, a bar beside long work."""

import random

import pytest

from rekindle.cli import words
from rekindle.cli.graph import draw
from rekindle.cli.progress import SHOW_AFTER, Bar, drawn


def picture(pairs: list[tuple[int, int | None]], *, unicode: bool = False) -> list[str]:
    return [f"{row.lanes} {row.seq or ''}".rstrip() for row in draw(pairs, unicode=unicode)]


def test_one_line_is_drawn_straight_down() -> None:
    assert picture([(3, 2), (2, 1), (1, None)]) == ["* 3", "* 2", "* 1"]


def test_a_branch_joins_where_it_began() -> None:
    assert picture([(4, 2), (3, 2), (2, 1), (1, None)]) == ["* 4", "| * 3", "|/", "* 2", "* 1"]
    assert picture([(4, 2), (3, 2), (2, None)], unicode=True) == ["● 4", "│ ● 3", "├─╯", "● 2"]


def test_three_branches_join_at_once() -> None:
    shown = picture([(4, 1), (3, 1), (2, 1), (1, None)], unicode=True)
    assert shown == ["● 4", "│ ● 3", "│ │ ● 2", "├─┴─╯", "● 1"]


def test_a_lane_between_two_that_join_goes_on() -> None:
    shown = picture([(6, 3), (5, 2), (4, 3), (3, 2), (2, None)], unicode=True)
    assert shown == ["● 6", "│ ● 5", "│ │ ● 4", "├─┼─╯", "● │ 3", "├─╯", "● 2"]
    assert picture([(6, 3), (5, 2), (4, 3), (3, None)])[3] == "|-|-'"


def test_a_free_lane_is_used_again() -> None:
    pairs = [(7, 6), (6, None), (5, 2), (4, 3), (3, None), (2, None)]
    assert picture(pairs) == ["* 7", "* 6", "* 5", "| * 4", "| * 3", "* 2"]


@pytest.mark.parametrize("seed", range(30))
def test_every_checkpoint_is_drawn_once_and_lanes_end_at_its_parent(seed: int) -> None:
    chance = random.Random(seed)
    parents = {seq: chance.choice([None, *range(max(1, seq - 6), seq)]) if seq > 1 else None for seq in range(1, 60)}
    rows = draw(sorted(parents.items(), reverse=True), unicode=True)
    assert [row.seq for row in rows if row.seq] == sorted(parents, reverse=True)
    above = ""
    for row in rows:
        if row.seq is not None:
            place = row.lanes.index("●")
            has_child = row.seq in parents.values()
            assert (above[place : place + 1] in ("●", "│", "├", "┼")) == has_child or not has_child
        assert row.lanes == row.lanes.rstrip()
        above = row.lanes


def test_the_bar_waits_then_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    bar = Bar("verifying", clock=lambda: now)
    bar(1, 100)
    assert capsys.readouterr().err == ""
    now = SHOW_AFTER + 0.01
    bar(50, 100)
    shown = capsys.readouterr().err
    assert "verifying" in shown
    assert "50%" in shown
    bar(51, 100)  # too soon for another
    assert capsys.readouterr().err == ""
    bar.clear()
    assert capsys.readouterr().err.endswith("\x1b[K")


def test_a_bar_for_quick_work_is_never_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Bar("collecting", clock=lambda: 0.0)
    bar(1, 1)
    bar.clear()
    assert capsys.readouterr().err == ""


def test_a_bar_without_a_total_counts_bytes() -> None:
    assert drawn("exporting", 12_300_000, 0, 4.2) == "exporting 12.3 MB, 4 s"
    assert "100%" in drawn("verifying", 7, 7, 1.0)


def test_json_holds_no_character_that_a_terminal_obeys_and_reads_back() -> None:
    import json

    odd = "é 漢 \x1b[2J \x7f \x9b1m \u202e \U000e0001 \ud800 end"
    text = words.as_json({odd: [odd]})
    assert text.replace("\n", "").isprintable()
    assert "é 漢" in text
    assert json.loads(text) == {odd: [odd]}


def test_wide_letters_count_as_two_columns() -> None:
    assert words.width("漢字") == 4
    assert words.width("e\u0301") == 1
