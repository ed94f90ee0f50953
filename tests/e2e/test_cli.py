"""The command `rekindle` on real stores: every command for people and as JSON, every exit code, hostile text."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import rekindle
from rekindle.cli.app import root
from rekindle.cli.table import ENTRIES
from rekindle.storage.sqlite.file import OPEN_FILES

HOSTILE = "\x1b[31mEVIL\x1b]0;pwned\x07 \u202eabc \x9b2J"
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX system")


@dataclass
class Plan:
    steps: list[str]
    done: int = 0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two branches, tags, labels, a user's type, and an agent that means harm."""
    folder = tmp_path_factory.mktemp("made")
    rekindle.register(Plan, name="e2e-plan")
    with rekindle.open_store(folder / "store.db") as store:
        messages: list[Any] = []
        for n in range(6):
            messages.append({"role": "user", "content": f"turn {n} lorem ipsum"})
            state = {"messages": messages, "status": "RUNNING", "plan": Plan(["a", "b"], n), "pair": (1, 2)}
            store.save("planner", state, kind="step", label=f"turn {n}" if n % 2 else None, metadata={"cost": n})
        store.fork("planner@3", "exp")
        bad = {"messages": [*messages[:3], {"role": "tool", "content": HOSTILE}], "status": "FAILED"}
        store.save("planner", bad, branch="exp", label=HOSTILE, metadata={HOSTILE: HOSTILE})
        store.save("planner", {"messages": messages, "status": "DONE"})
        store.tag("planner@2", "v1")
        store.save("writer", "a text\nwith \x1b[1m lines")
        store.save("odd@name \u00e9", [1, 2, 3])
    return folder


@dataclass
class Cli:
    folder: Path

    @property
    def db(self) -> str:
        return str(self.folder / "store.db")

    def __call__(self, *args: str, code: int = 0, stdin: str | None = None) -> Result:
        done = CliRunner().invoke(root, ["--store", self.db, *args], input=stdin)
        assert done.exit_code == code, f"{args}: {done.exit_code}\n{done.stdout}\n{done.stderr}"
        assert "\x1b" not in done.output
        assert "Traceback" not in done.output
        assert not (os.path.exists(self.db) and OPEN_FILES.holds(os.stat(self.db))), f"{args} left the store open"
        return done

    def json(self, *args: str, code: int = 0) -> Any:
        done = self("--json", *args, code=code)
        assert done.stdout.replace("\n", "").isprintable()
        return json.loads(done.stdout)

    def refused(self, *args: str, code: int) -> dict[str, Any]:
        """The error, which is told to people and to programs alike."""
        said = self(*args, code=code).stderr
        error: dict[str, Any] = json.loads(self("--json", *args, code=code).stderr)["error"]
        assert error.keys() == {"code", "message", "hint"}
        assert error["message"].splitlines()[0][:20] in said
        assert error["hint"] is None or "\n  -> " in said
        return error


@pytest.fixture
def cli(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    shutil.copytree(made, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.delenv("REKINDLE_STORE", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Cli(tmp_path / "work")


def program(*args: str, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """The real program, in a process of its own."""
    command = [sys.executable, "-m", "rekindle", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False, **more)


# -- beginning --------------------------------------------------------------------------------------------------------


def test_the_first_minutes_of_a_user(tmp_path: Path) -> None:
    missing = program("log", cwd=tmp_path)
    assert missing.returncode == 4
    assert "rekindle init" in missing.stderr
    assert missing.stdout == ""
    assert not (tmp_path / ".rekindle").exists()

    first = program("init", cwd=tmp_path)
    assert first.returncode == 0
    assert ".rekindle/store.db" in first.stdout
    assert "open_store()" in first.stderr
    again = program("init", cwd=tmp_path)
    assert again.returncode == 0
    assert "already" in again.stdout

    with rekindle.open_store(tmp_path / ".rekindle" / "store.db") as store:
        store.save("my-agent", {"messages": []})
    shown = program("log", cwd=tmp_path)
    assert "my-agent@1" in shown.stdout
    assert "(main)" in shown.stdout


def test_init_names_the_store_it_made(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "new")
    assert cli.json("init") == {"url": f"sqlite:///{cli.db}", "made": True, "agents": 0}
    assert cli.json("init")["made"] is False
    assert "no agents yet" in cli("agents").stderr
    assert "no checkpoints" in cli("log").stderr
    assert cli.json("log") == {"checkpoints": [], "more": False}
    assert cli.refused("show", code=4)["code"] == "no-agents"


def test_the_store_comes_from_the_environment_the_option_wins(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REKINDLE_STORE", cli.db)
    assert "planner" in CliRunner().invoke(root, ["agents"]).stdout
    elsewhere = CliRunner().invoke(root, ["agents", "--store", "nowhere.db"])
    assert elsewhere.exit_code == 4
    assert "nowhere.db" in elsewhere.stderr


def test_global_options_stand_before_or_after_the_command(cli: Cli) -> None:
    before = CliRunner().invoke(root, ["--store", cli.db, "--json", "agents"])
    after = CliRunner().invoke(root, ["agents", "--json", "--store", cli.db])
    assert json.loads(before.stdout) == json.loads(after.stdout)
    assert cli.json("agents", "--user", "somebody-else") == {"agents": []}


# -- looking ----------------------------------------------------------------------------------------------------------


def test_agents(cli: Cli) -> None:
    shown = cli("agents").stdout
    assert shown.splitlines()[0].split() == ["AGENT", "NEWEST", "SAVED", "KIND", "SIZE", "BRANCHES"]
    assert "@8" in shown
    assert "main, exp" in shown
    assert '"odd@name \u00e9"' in shown
    agents = cli.json("agents")["agents"]
    assert [each["agent_id"] for each in agents] == ["planner", "writer", "odd@name \u00e9"]
    assert agents[0]["newest"]["seq"] == 8
    assert agents[0]["branches"] == ["main", "exp"]


def test_log_of_all_of_one_agent_of_one_branch_of_one_kind(cli: Cli) -> None:
    assert len(cli.json("log", "--all")["checkpoints"]) == 10
    assert [c["seq"] for c in cli.json("log", "planner")["checkpoints"]] == [8, 7, 6, 5, 4, 3, 2, 1]
    history = [c["seq"] for c in cli.json("log", "planner@exp")["checkpoints"]]
    assert history == [7, 3, 2, 1]
    assert [c["seq"] for c in cli.json("log", "planner", "--branch", "exp")["checkpoints"]] == history
    assert [c["seq"] for c in cli.json("log", "planner", "--kind", "manual")["checkpoints"]] == [8, 7]
    assert [c["seq"] for c in cli.json("log", "planner@6", "--kind", "step", "-n", "2")["checkpoints"]] == [6, 5]
    head = cli.json("log", "planner", "-n", "1")["checkpoints"][0]
    assert (head["heads"], head["tags"], head["ref"], head["kind"]) == (["main"], [], "planner@8", "manual")
    shown = cli("log", "planner").stdout
    assert "(main)" in shown
    assert "(tag: v1) turn 1" in shown


def test_log_says_when_there_is_more(cli: Cli) -> None:
    assert "--all" in cli("log", "planner", "--limit", "3").stderr
    assert cli.json("log", "planner", "--limit", "3")["more"] is True
    assert cli("log", "planner", "--limit", "8").stderr == ""


def test_log_draws_the_branches(cli: Cli) -> None:
    lines = cli("log", "planner", "--graph").stdout.splitlines()
    lanes = [line.partition("planner")[0].strip() for line in lines]
    assert lanes in (
        ["●", "│ ●", "● │", "● │", "● │", "├─╯", "●", "●", "●"],
        ["*", "| *", "* |", "* |", "* |", "|/", "*", "*", "*"],
    )  # fmt: skip
    assert "(exp)" in lines[1]


def test_a_graph_steps_over_what_was_pruned(cli: Cli) -> None:
    cli("prune", "keep-last=2", "--agent", "planner")
    shown = cli("log", "planner", "--graph").stdout
    assert [word for word in shown.split() if "@" in word] == ["planner@8", "planner@7", "planner@2"]
    assert len(shown.splitlines()) == 4  # and the line on which both join


def test_a_row_has_no_room_for_a_novel(cli: Cli) -> None:
    long = "word " * 400
    with rekindle.open_store(cli.db) as store:
        store.save("planner", {long: 1, "short": 2}, label=long)
        store.label("planner@1", long)
        store.tag("planner@1", "novel")
    for line in (["branches", "planner"], ["tags"], ["undo", "--list"], ["log"], ["log", "planner", "--graph"]):
        assert max(map(len, cli(*line).stdout.splitlines())) < 160
    shown = cli("show", "planner").stdout
    assert max(map(len, shown.partition("\nstate ")[2].splitlines())) < 160
    assert long.strip() in shown
    assert long in cli("show", "planner", "--full").stdout


def test_what_would_say_nothing_is_refused(cli: Cli) -> None:
    cli.refused("log", "--limit", "0", code=2)
    assert "--every" in cli.refused("policy", "--every", "5", code=2)["message"]
    assert "\\t" not in cli("completion", code=2).stderr


def test_a_graph_is_of_one_agent(cli: Cli) -> None:
    assert cli.refused("log", "--graph", code=2)["code"] == "which-agent"
    assert cli.refused("log", "planner", "--graph", "--kind", "step", code=2)["code"] == "usage"


def test_show_tells_what_a_checkpoint_is_and_holds(cli: Cli) -> None:
    shown = cli("show", "planner@6").stdout
    for word in ("planner@6", "chk_6-", "turn 5", "step", "messages", "list of 6", "e2e-plan", "tuple of 2"):
        assert word in shown
    made = cli.json("show", "planner@2")
    assert made["names"] == {"heads": [], "tags": ["v1"]}
    assert made["checkpoint"]["metadata"] == {"cost": 1}
    assert made["value"]["plan"] == {"$type": "e2e-plan", "version": 1, "data": {"steps": ["a", "b"], "done": 1}}
    assert cli.json("show", "planner@v1")["checkpoint"]["id"] == made["checkpoint"]["id"]
    assert cli.json("show", made["checkpoint"]["id"][:-2])["checkpoint"]["seq"] == 2


def test_show_a_place_in_a_state(cli: Cli) -> None:
    assert "turn 5 lorem ipsum" in cli("show", "planner@6:messages[-1].content").stdout
    assert cli.json("show", "planner@6:plan.done")["value"] == 5
    assert "a text" in cli("show", "writer").stdout
    error = cli.refused("show", "planner@6:plan.nope", code=4)
    assert error["code"] == "path-not-found"


def test_a_callers_own_id_is_a_reference(cli: Cli) -> None:
    with rekindle.open_store(cli.db) as store:
        store.save("writer", {"n": 7}, id="run 42/turn-7")
    assert cli.json("show", '"run 42/turn-7":n')["value"] == 7
    assert "writer@2" in cli("log", '"run 42/turn-7"').stdout
    assert cli.refused("show", "writer@0", code=4)["code"] == "checkpoint-not-found"


def test_show_cuts_long_values_unless_told_not_to(cli: Cli) -> None:
    with rekindle.open_store(cli.db) as store:
        store.save("long", {"items": list(range(500)), "text": "x" * 1000})
    assert "--full" in cli("show", "long:items").stderr
    full = cli("show", "long:items", "--full")
    assert "499" in full.stdout
    assert full.stderr == ""
    assert cli.json("show", "long:text")["value"]["size"] == 1000
    assert cli.json("show", "long:text", "--full")["value"] == "x" * 1000


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system's zone cannot be set")
def test_people_read_local_time_and_programs_utc(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert "+05:30" in cli("log").stdout
        assert "+05:30" in cli("show", "writer").stdout
        assert all(c["timestamp"].endswith("Z") for c in cli.json("log")["checkpoints"])
    finally:
        monkeypatch.undo()
        time.tzset()


def test_what_agents_wrote_never_reaches_the_terminal_as_it_is(cli: Cli) -> None:
    cli("tag", "planner@7", "evil\u202etag")
    for command in (
        ["log"], ["log", "planner", "--graph"], ["show", "planner@7"], ["show", "planner@7", "--full"],
        ["show", "planner@7:messages[-1].content"], ["diff", "planner@7"], ["blame", "planner@7:messages[3]"],
        ["grep", "EVIL"], ["branches", "planner"], ["tags"], ["undo", "--list"], ["restore", "planner@7"], ["stats"],
    ):  # fmt: skip
        done = cli(*command)
        assert done.stdout.replace("\n", "").isprintable(), command
        cli.json(*command)
    said = CliRunner().invoke(root, ["--store", cli.db, "show", f"x{HOSTILE}"]).output
    assert said.replace("\n", "").isprintable()


# -- comparing --------------------------------------------------------------------------------------------------------


def test_diff_of_two_of_one_and_of_a_place(cli: Cli) -> None:
    shown = cli("diff", "planner@3..@5").stdout
    assert "planner@3 -> planner@5" in shown
    assert "+ messages[3]" in shown
    made = cli.json("diff", "planner@3", "@5")
    assert made["total"] == len(made["changes"]) == 3
    assert {"op": "replace", "path": "plan.done", "old": 2, "new": 4} in made["changes"]
    assert (made["a"]["seq"], made["b"]["seq"]) == (3, 5)
    assert cli.json("diff", "planner@7")["a"]["seq"] == 3
    only = cli.json("diff", "planner@3:messages..@5:messages")["changes"]
    assert [change["path"] for change in only] == ["messages[3]", "messages[4]"]


def test_diff_has_a_summary_and_pages(cli: Cli) -> None:
    stat = cli("diff", "planner@3..@5", "--stat").stdout
    assert len(stat.splitlines()) == 1
    assert "changes" not in cli.json("diff", "planner@3..@5", "--stat")
    first = cli("diff", "planner@3..@5", "--limit", "2")
    assert "--page 2" in first.stderr
    second = cli.json("diff", "planner@3..@5", "--limit", "2", "--page", "2")
    assert (second["page"], second["pages"], len(second["changes"])) == (2, 2, 1)
    assert cli.refused("diff", "planner@3..@5", "--limit", "2", "--page", "3", code=4)["code"] == "no-page"
    assert len(cli.json("diff", "planner@3..@5", "--limit", "1", "--full")["changes"]) == 3


def test_diff_of_what_has_no_parent_or_is_too_much(cli: Cli) -> None:
    assert cli.refused("diff", "planner@1", code=4)["code"] == "no-parent"
    assert cli.refused("diff", "planner@1..@2", "@3", code=2)["code"] == "usage"


def test_blame_tells_who_changed_a_place(cli: Cli) -> None:
    made = cli.json("blame", "planner:status")
    assert [(c["seq"], c["value"]) for c in made["checkpoints"]] == [(8, "DONE"), (1, "RUNNING")]
    with rekindle.open_store(cli.db) as store:
        for state in ({"mood": "good"}, {}, {"mood": "bad"}):
            store.save("moody", state)
    back = cli.json("blame", "moody:mood", "--limit", "2")
    assert [(c["seq"], c["present"]) for c in back["checkpoints"]] == [(3, True), (2, False)]
    assert back["total"] == 3
    shown = cli("blame", "moody:mood", "--limit", "2")
    assert "(nothing there)" in shown.stdout
    assert "more" in shown.stderr
    assert cli.refused("blame", "planner@8:plan.done", code=4)["code"] == "path-not-found"
    assert cli.refused("blame", "planner", code=2)["code"] == "no-path"


def test_grep_finds_texts_where_they_came(cli: Cli) -> None:
    made = cli.json("grep", "turn [45] ", "planner@main")
    assert [(m["ref"], m["path"]) for m in made["matches"]] == [
        ("planner@6", "messages[5].content"), ("planner@5", "messages[4].content"),
    ]  # fmt: skip
    assert "planner@5:messages[4].content" in cli("grep", "-i", "TURN 4").stdout
    assert cli.json("grep", "TURN 4")["matches"] == []
    assert "nothing matches" in cli("grep", "TURN 4").stderr
    assert cli.json("grep", "lorem", "--limit", "2")["more"] is True
    assert cli.refused("grep", "(", code=2)["code"] == "bad-pattern"


@POSIX
def test_bisect_finds_the_first_that_a_command_calls_bad(cli: Cli) -> None:
    script = 'grep -q "\\"done\\": [012]" "$REKINDLE_STATE" && grep -q lorem'
    made = cli.json("bisect", "planner@1", "planner@6", "--", "sh", "-c", script)
    assert made["first_bad"]["seq"] == 4
    assert 2 < made["tried"] < 6
    done = cli("bisect", "planner@1", "planner@6", "--", "sh", "-c", script)
    assert "planner@4" in done.stdout
    assert "bad (exit status 1)" in done.stderr


@POSIX
def test_bisect_stops_where_nothing_can_be_judged(cli: Cli) -> None:
    ends = ["planner@1", "planner@6", "--"]
    assert cli.refused("bisect", *ends, "sh", "-c", "exit 125", code=5)["code"] == "bisect-skip"
    assert cli.refused("bisect", *ends, "sh", "-c", "exit 200", code=5)["code"] == "bisect-aborted"
    assert cli.refused("bisect", *ends, "sh", "-c", "kill -9 $$", code=5)["code"] == "bisect-aborted"
    assert cli.refused("bisect", *ends, "no-such-command", code=4)["code"] == "no-command"
    assert cli.refused("bisect", *ends, "true", code=2)["code"] == "bad-is-good"
    assert cli.refused("bisect", *ends, "false", code=2)["code"] == "good-is-bad"
    assert cli.refused("bisect", "planner@6", "planner@1", "--", "true", code=2)["code"] == "not-an-ancestor"


# -- names ------------------------------------------------------------------------------------------------------------


def test_a_delete_is_tried_first_done_and_undone(cli: Cli) -> None:
    before = cli.json("log", "writer")
    tried = cli.json("delete", "writer", "--dry-run")
    assert (tried["dropped"], tried["dry_run"], tried["operation"]) == (1, True, None)
    assert "would delete writer: 1 checkpoint" in cli("delete", "writer", "--dry-run").stdout
    assert cli.json("log", "writer") == before
    assert cli.json("delete", "writer")["dropped"] == 1
    assert cli.refused("log", "writer", code=4)
    cli("undo")
    assert cli.json("log", "writer") == before
    for words in (["delete", "nobody", "--dry-run"], ["delete", "nobody"]):
        assert cli.refused(*words, code=4)["code"] == "agent-not-found"


def test_a_branch_is_made_listed_and_deleted(cli: Cli) -> None:
    assert "planner@4" in cli("fork", "planner@4", "retry").stdout
    assert cli.refused("fork", "planner@4", "retry", code=5)["code"] == "branch-exists"
    assert list(cli.json("branches", "planner")["branches"]) == ["main", "exp", "retry"]
    assert "retry" in cli("branches", "planner").stdout
    deleted = cli("branches", "planner", "--delete", "retry")
    assert "rekindle undo" in deleted.stderr
    assert cli.refused("branches", "planner", "--delete", "retry", code=4)["code"] == "branch-not-found"
    assert cli.refused("branches", "planner", "--delete", "main", code=5)["code"] == "main-stays"
    cli("undo")
    assert "retry" in cli.json("branches", "planner")["branches"]


def test_a_tag_is_made_moved_listed_and_deleted(cli: Cli) -> None:
    assert "planner@6" in cli("tag", "planner@6", "v2").stdout
    assert cli.refused("tag", "planner@5", "v2", code=5)["code"] == "name-taken"
    assert cli.json("tag", "planner@5", "v2", "--move")["checkpoint"]["seq"] == 5
    assert [(t["tag"], t["checkpoint"]["seq"]) for t in cli.json("tags")["tags"]] == [("v1", 2), ("v2", 5)]
    assert "v2" in cli("tags", "planner").stdout
    assert cli.json("tag", "planner", "v2", "--delete")["deleted"] == "v2"
    assert cli.refused("tag", "planner", "v2", "--delete", code=4)["code"] == "tag-not-found"
    assert cli.refused("tag", "planner", "v1", "--delete", "--move", code=2)["code"] == "usage"
    assert "no tags" in cli("tags", "writer").stderr


def test_a_label_is_written_and_taken_off(cli: Cli) -> None:
    assert "before the fix" in cli("label", "planner@3", "before the fix").stdout
    assert cli.json("label", "planner@3", "")["checkpoint"]["label"] is None


# -- restoring and moving ---------------------------------------------------------------------------------------------


def test_restore_gives_a_state_back_as_json_that_loses_nothing(cli: Cli) -> None:
    from rekindle.state.shown.plain import from_plain

    state = from_plain(json.loads(cli("restore", "planner@6").stdout))
    assert state["plan"] == Plan(["a", "b"], 5)
    assert state["pair"] == (1, 2)
    assert json.loads(cli("restore", "planner@6:messages[0]").stdout) == {
        "role": "user", "content": "turn 0 lorem ipsum",
    }  # fmt: skip


def test_restore_gives_plain_values_where_that_is_wanted(cli: Cli) -> None:
    assert cli("restore", "planner:status", "--format", "plain").stdout == "DONE"
    assert json.loads(cli("restore", "planner@6:pair", "--format", "plain").stdout) == [1, 2]
    assert json.loads(cli("restore", "planner@6:plan", "--format", "plain").stdout) == {"steps": ["a", "b"], "done": 5}
    with rekindle.open_store(cli.db) as store:
        store.save("raw", {"data": b"\x00\xff\x1b", "$odd": {1: {2, 3}}, "wild": "\ud800\U000e0001"})
    raw = CliRunner().invoke(root, ["--store", cli.db, "restore", "raw:data", "--format", "plain"])
    assert raw.stdout_bytes == b"\x00\xff\x1b"
    plain = json.loads(cli("restore", "raw", "--format", "plain").stdout)
    assert plain == {"data": "AP8b", "$odd": [[1, [2, 3]]], "wild": "\ud800\U000e0001"}


def test_restore_writes_a_file_whole_and_over_none(cli: Cli) -> None:
    target = cli.folder / "state.json"
    done = cli("restore", "planner@6", "--output", str(target))
    assert done.stdout == ""
    assert "wrote planner@6" in done.stderr
    before = target.read_bytes()
    assert json.loads(before)["status"] == "RUNNING"
    assert cli.refused("restore", "planner", "-o", str(target), code=5)["code"] == "file-exists"
    assert target.read_bytes() == before
    made = cli.json("restore", "planner", "-o", str(target), "--force")
    assert made["bytes"] == target.stat().st_size
    assert json.loads(target.read_bytes())["status"] == "DONE"
    assert cli.refused("restore", "planner", "-o", str(cli.folder), code=2)["code"]
    missing = cli.refused("restore", "planner", "-o", "no/such/file.json", code=4)
    assert (missing["code"], missing["message"]) == ("no-file", "there is no folder no/such")
    assert "file.json: Not a dir" in cli.refused("export", "planner", f"{target}/file.json", code=1)["message"]
    assert not list(cli.folder.glob(".tmp*"))


def test_an_agent_goes_into_a_file_and_comes_out_elsewhere(cli: Cli, tmp_path: Path) -> None:
    file = cli.folder / "planner.rekindle"
    assert "8 checkpoints" in cli("export", "planner", str(file)).stdout
    assert cli.refused("export", "planner", str(file), code=5)["code"] == "file-exists"
    assert cli.json("export", "planner", str(file), "--force")["bytes"] == file.stat().st_size
    there = Cli(tmp_path / "there")
    assert "imported 8 checkpoints of planner" in there("import", str(file)).stdout
    assert "nothing new" in there("import", str(file)).stdout
    assert there("restore", "planner@7").stdout == cli("restore", "planner@7").stdout
    assert [c["id"] for c in there.json("log", "planner@exp")["checkpoints"]]
    copy = there.json("import", str(file), "--agent", "copy")
    assert {c["agent_id"] for c in copy["checkpoints"]} == {"copy"}
    there("undo", str(copy["operation"]))
    assert [a["agent_id"] for a in there.json("agents")["agents"]] == ["planner"]


def test_an_export_goes_through_a_pipe(cli: Cli, tmp_path: Path) -> None:
    written = CliRunner().invoke(root, ["--store", cli.db, "export", "planner@exp", "-", "--branch-only"])
    assert written.exit_code == 0
    there = str(tmp_path / "there.db")
    read = CliRunner().invoke(root, ["--store", there, "import", "-"], input=written.stdout_bytes)
    assert read.exit_code == 0, read.output
    assert "imported 4 checkpoints" in read.stdout


def test_an_import_of_what_is_none(cli: Cli) -> None:
    (cli.folder / "notes.txt").write_text("not an export")
    assert cli.refused("import", "notes.txt", code=2)["code"]
    assert cli.refused("import", "missing.rekindle", code=4)["code"] == "no-file"
    assert cli.refused("import", str(cli.folder), code=2)["code"]
    assert cli.refused("import", "x", "--from", "elsewhere", code=8)["code"] == "no-such-import"


# -- space, and undoing -----------------------------------------------------------------------------------------------


def test_a_prune_is_planned_with_reasons_done_and_undone(cli: Cli) -> None:
    before = cli.json("log", "planner", "--all")["checkpoints"]
    plan = cli("prune", "keep-last=2", "--agent", "planner", "--dry-run").stdout
    assert "head of main" in plan
    assert "tag v1" in plan
    assert "kept by none of keep-last=2" in plan
    told = cli.json("prune", "keep-last=2", "--agent", "planner", "--dry-run")
    assert (told["dry_run"], told["operation"], len(told["drop"])) == (True, None, 5)
    assert cli.json("log", "planner", "--all")["checkpoints"] == before

    done = cli.json("prune", "keep-last=2", "--agent", "planner")
    assert [d["seq"] for d in done["drop"]] == [d["seq"] for d in told["drop"]]
    assert {d["agent_id"] for d in done["drop"]} == {"planner"}
    assert len(cli.json("log", "planner", "--all")["checkpoints"]) == 3
    assert cli.json("undo")["undone"] == done["operation"]
    assert cli.json("log", "planner", "--all")["checkpoints"] == before
    said = cli("prune", "keep-last=1")
    assert "dropped" in said.stdout
    assert "rekindle undo" in said.stderr
    assert cli.refused("prune", "keep-best=3", code=2)["code"] == "policy-invalid"


def test_a_policy_is_set_told_and_taken_away(cli: Cli) -> None:
    assert "none" in cli("policy").stdout
    assert cli.json("policy", "keep-last=5", "--every", "10") == {"policy": "keep-last=5", "every": 10}
    assert "after every 10 saves" in cli("policy").stdout
    assert cli.json("policy", "--none") == {"policy": None, "every": None}
    assert cli.refused("policy", "keep-last=5", "--none", code=2)["code"] == "usage"


def test_an_agent_is_deleted_and_comes_back(cli: Cli) -> None:
    assert cli.refused("delete", "planner@3", code=2)["code"] == "usage"
    assert cli.json("delete", "writer")["dropped"] == 1
    assert [a["agent_id"] for a in cli.json("agents")["agents"]] == ["planner", "odd@name \u00e9"]
    cli("undo")
    assert "a text" in cli("show", "writer").stdout
    assert cli.refused("delete", "nobody", code=4)["code"] == "agent-not-found"
    assert "rekindle undo" in cli("delete", '"odd@name \u00e9"').stderr


def test_what_was_collected_cannot_be_undone(cli: Cli) -> None:
    operation = cli.json("prune", "keep-last=1", "--agent", "planner")["operation"]
    dry = cli.json("collect", "--dry-run")
    assert dry["dropped"] == 5
    assert operation in dry["operations"]
    assert str(operation) in cli("collect", "--dry-run").stderr
    assert cli.json("collect")["freed"] >= 0
    assert cli.json("collect", "--dry-run")["dropped"] == 0
    assert "freed" in cli("collect").stdout
    assert cli.refused("undo", str(operation), code=5)["code"] == "collected"
    told = next(each for each in cli.json("undo", "--list")["operations"] if each["operation"] == operation)
    assert not told["undoable"]
    assert "collected" in cli("undo", "--list").stdout


def test_undo_lists_what_was_done(cli: Cli) -> None:
    cli("label", "planner@3", "x")
    cli("undo")
    listed = cli("undo", "--list").stdout
    assert "can be undone" in listed
    assert "undone by" in listed
    assert cli.json("undo", "--list")["operations"][0]["verb"] == "undo"
    assert cli.refused("undo", "999", code=4)["code"] == "no-operation"
    done, undoing = (each["operation"] for each in cli.json("undo", "--list")["operations"][1::-1])
    told = cli.refused("undo", str(done), code=5)["message"]
    assert told == f"operation {done} (label) cannot be undone: operation {undoing} undid it already"
    assert cli.refused("undo", str(undoing), code=5)["message"] == f"operation {undoing} (undo) cannot be undone"


def test_du_says_where_the_bytes_are(cli: Cli) -> None:
    made = cli.json("du")
    planner = next(each for each in made["agents"] if each["agent_id"] == "planner")
    assert planner["checkpoints"] == 8
    assert planner["written"] > 0
    assert planner["states"] == sum(c["size"] for c in cli.json("log", "planner", "--all")["checkpoints"])
    assert made["total"] == sum(made["files"].values())
    assert "ON DISK" in cli("du").stdout
    assert "writer" not in cli("du", "planner").stdout


def test_stats_counts(cli: Cli) -> None:
    made = cli.json("stats")
    assert (made["agents"], made["checkpoints"], made["branches"], made["tags"]) == (3, 10, 4, 1)
    assert made["kinds"] == {"step": 6, "manual": 4}
    assert "4 manual" in cli("stats").stdout


# -- sound ------------------------------------------------------------------------------------------------------------


def test_verify_says_that_all_is_well(cli: Cli) -> None:
    assert "all of it is what was written" in cli("verify").stdout
    assert cli.json("verify")["checkpoints"] == 10


def test_verify_restores_and_says_what_would_not_come_back(cli: Cli) -> None:
    told = cli.json("verify", "--restore", code=3)
    assert told["restored"] == 4
    assert {p["code"] for p in told["problems"]} == {"not-restored"}
    (cli.folder / "my_types.py").write_text(
        "import rekindle\nprint('loaded')\n@rekindle.register(name='e2e-plan')\nclass Plan:\n    pass\n"
    )
    assert "restored 10 checkpoints" in cli("verify", "--restore", "--import", "my_types").stdout
    refused = cli.refused("verify", "--restore", "--import", "no_such_module", code=2)
    assert refused["message"].startswith("the module 'no_such_module' cannot be imported: ModuleNotFoundError")
    assert "--restore" in cli.refused("verify", "--import", "my_types", code=2)["message"]


@POSIX
def test_an_interrupted_verify_shows_no_traceback_of_its_helper(cli: Cli) -> None:
    (cli.folder / "slow.py").write_text("import os, signal, time\nos.killpg(0, signal.SIGINT)\ntime.sleep(5)\n")
    args = ["--store", cli.db, "verify", "--restore", "--import", "slow"]
    done = program(*args, cwd=cli.folder, start_new_session=True)
    assert done.returncode == 130
    assert done.stderr.startswith("interrupted")
    assert "Traceback" not in done.stderr


def test_what_modules_print_is_no_answer_and_one_that_is_missing_is_named(cli: Cli) -> None:
    (cli.folder / "chatty.py").write_text(
        "import rekindle\nprint('hello')\n@rekindle.register(name='e2e-plan')\nclass Plan:\n"
        "    @classmethod\n    def from_state(cls, data):\n        print('here I am')\n        return cls()\n"
    )
    assert cli.json("verify", "--restore", "--import", "chatty")["restored"] == 10
    (cli.folder / "broken.py").write_text("import there_is_no_such_module\n")
    for module in ("nosuch", "broken"):
        error = cli.refused("verify", "--restore", "--import", module, code=2)
        assert error["code"] == "bad-import"
        assert module in error["message"]


@pytest.mark.parametrize(
    "words", ["policy --every 5", "verify --import my_types", "undo 1 --list", "policy keep-last=1 --none"]
)
def test_an_option_that_would_do_nothing_is_refused(cli: Cli, words: str) -> None:
    assert cli.refused(*words.split(), code=2)["code"] == "usage"


def test_damage_is_found_and_never_shown_as_data(cli: Cli) -> None:
    db = sqlite3.connect(cli.db)
    with db:
        key, body = db.execute("SELECT key, body FROM records WHERE length(body) > 60 ORDER BY key LIMIT 1").fetchone()
        db.execute("UPDATE records SET body = ? WHERE key = ?", (body[:-1] + bytes([body[-1] ^ 1]), key))
    db.close()
    told = cli("verify", code=13).stdout
    assert "problem" in told
    assert cli.json("verify", code=13)["ok"] is False
    assert cli.refused("restore", "planner@1", code=13)["code"]


def test_doctor_looks_at_everything(cli: Cli) -> None:
    found = {each["what"]: each for each in cli.json("doctor")["findings"]}
    for what in ("python", "sqlite", "blake3", "store", "format", "durability", "lock", "writing", "free space"):
        assert found[what]["verdict"] in ("ok", "warn"), found[what]
    assert "holds" in cli("doctor").stdout


def test_doctor_helps_where_there_is_no_store_and_where_it_is_none(cli: Cli) -> None:
    elsewhere = Cli(cli.folder / "new")
    told = elsewhere.json("doctor")
    assert next(f for f in told["findings"] if f["what"] == "store")["verdict"] == "warn"
    assert not elsewhere.folder.exists()
    (cli.folder / "store.db").write_text("this is no store, it is a text")
    assert cli.json("doctor", code=1)["ok"] is False


# -- failing ----------------------------------------------------------------------------------------------------------


def test_every_failure_has_its_code(cli: Cli) -> None:
    assert cli.refused("show", "nobody", code=4)["code"] == "nothing-named"
    assert cli.refused("show", "planner@99", code=4)["hint"]
    assert cli.refused("show", "planner@@", code=2)["code"] == "bad-ref"
    assert cli.refused("log", "--limit", "x", code=2)["code"] == "usage"
    assert cli.refused("tag", code=2)["code"] == "usage"
    assert "did you mean `rekindle log`" in cli.refused("lgo", code=2)["hint"]
    assert cli.refused("agents", "--store", "postgres://x/y", code=8)["code"] == "no-such-storage"
    (cli.folder / "plain.txt").write_text("text")
    assert cli.refused("agents", "--store", "plain.txt", code=2)["code"] == "not-a-store"
    assert cli.refused("init", "--store", "plain.txt/store.db", code=75)["code"]


def test_a_failure_nobody_expected_is_one_line_and_tells_how_to_see_more(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("rekindle.cli.words.ref", broken)
    assert "ZeroDivisionError" in cli("log", code=1).stderr
    assert cli.refused("log", code=1)["code"] == "unexpected"
    monkeypatch.setenv("REKINDLE_TRACEBACK", "1")
    told = CliRunner().invoke(root, ["--store", cli.db, "log"])
    assert "Traceback" in told.stderr
    assert told.exit_code == 1


@POSIX
def test_a_reader_that_goes_away_is_no_failure_to_talk_about(cli: Cli) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "rekindle", "--store", cli.db, "log", "--all"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
    reader, writer = os.pipe()
    os.close(reader)
    command[5:] = ["export", "planner", "-"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@POSIX
def test_a_closed_stdout_is_as_none(cli: Cli) -> None:
    line = f"{sys.executable} -m rekindle --store {cli.db} log >&-"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert cli.json("verify")["ok"]


@POSIX
def test_an_interrupt_ends_quietly(cli: Cli) -> None:
    interrupt = f"sleep 0.3; kill -{int(signal.SIGINT)} $PPID; exec sleep 5"
    args = ["bisect", "planner@1", "planner@6", "--", "sh", "-c", interrupt]
    done = program("--store", cli.db, *args, cwd=cli.folder)
    assert done.returncode == 130
    assert "interrupted" in done.stderr
    assert "Traceback" not in done.stderr


# -- help, completion, terminals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENTRIES)
def test_every_command_has_help_with_an_example(name: str) -> None:
    done = CliRunner().invoke(root, [name, "--help"])
    assert done.exit_code == 0
    assert f"$ rekindle {name}" in done.stdout
    assert "--store" in done.stdout


def test_help_loads_no_command_and_no_store() -> None:
    code = (
        "import sys; sys.argv = ['rekindle', '--help']\n"
        "from rekindle.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*(m for m in sys.modules if m.startswith(('rekindle.', 'click', 'rich', 'sqlite3'))), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert all(f"  {name}" in done.stdout for name in ENTRIES)
    assert "Exit codes" in done.stdout
    assert set(done.stderr.split()) == {"rekindle.cli", "rekindle.cli.table"}


def test_version_and_no_command() -> None:
    assert CliRunner().invoke(root, ["--version"]).stdout == f"rekindle {rekindle.__version__}\n"
    assert CliRunner().invoke(root, ["log", "--version"]).stdout == f"rekindle {rekindle.__version__}\n"
    assert CliRunner().invoke(root, ["--help"]).stdout.startswith("Usage: rekindle")
    nothing = CliRunner().invoke(root, [])
    assert nothing.exit_code == 2
    assert "Usage:" in nothing.output


@pytest.fixture
def shim(cli: Cli, tmp_path: Path) -> dict[str, str]:
    """An environment in which `rekindle` is this program."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "rekindle"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rekindle "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "REKINDLE_STORE": cli.db}


@POSIX
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_agents_branches_and_tags(shim: dict[str, str]) -> None:
    lines = {
        "rekindle bis": "bisect",
        "rekindle show pl": "planner",
        "rekindle show planner@": "main exp v1",
        "rekindle diff planner@3..@e": "exp",
        "rekindle branches planner --delete e": "exp",
        "rekindle log --gr": "--graph",
        "rekindle completion f": "fish",
        "rekindle --store nowhere.db show p": "",
    }
    script = "source <(rekindle completion bash)\n" + "".join(
        f"COMP_LINE='{line}'; COMP_POINT={len(line)}; COMPREPLY=()\n"
        '_rekindle_completion rekindle 2>/dev/null; echo "${COMPREPLY[*]}"\n'
        for line in lines
    )
    done = subprocess.run(["bash", "-c", script], env=shim, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == list(lines.values()), done.stderr


def test_completion_scripts_for_other_shells(cli: Cli) -> None:
    assert "#compdef rekindle" in cli("completion", "zsh").stdout
    assert "complete --no-files --command rekindle" in cli("completion", "fish").stdout
    assert cli.json("completion", "bash")["shell"] == "bash"
    if shutil.which("bash"):
        script = cli("completion", "bash").stdout
        subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=60)


def on_a_terminal(cli: Cli, *args: str, columns: int = 100, **env: str) -> str:
    """What the real program shows on a terminal."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    command = [sys.executable, "-m", "rekindle", "--store", cli.db, *args]
    environment = {**os.environ, "TERM": "xterm-256color", **env}
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert child.wait(60) == 0
    return shown.decode()


@POSIX
def test_a_terminal_gets_colors_and_lines_that_fit(cli: Cli) -> None:
    with rekindle.open_store(cli.db) as store:
        store.save("planner", {}, label="a long label " * 12)
    shown = on_a_terminal(cli, "log", "planner", columns=90)
    assert "\x1b[33m" in shown
    bare = "".join(part.partition("m")[2] for part in f"\x1b[m{shown}".split("\x1b["))
    assert "\x1b[31mEVIL" not in shown
    assert "\x1b]0;" not in shown
    if "rich" in sys.modules or __import__("importlib.util").util.find_spec("rich"):
        assert max(len(line) for line in bare.splitlines()) <= 90
    assert "\x1b[" not in on_a_terminal(cli, "log", "planner", "--no-color")
    assert "\x1b[" not in on_a_terminal(cli, "show", "planner@6", NO_COLOR="1")


@POSIX
@pytest.mark.parametrize("columns", [90, 50, 30])
def test_a_narrow_terminal_loses_no_column(cli: Cli, columns: int) -> None:
    with rekindle.open_store(cli.db) as store:
        store.save("planner", {}, label="a long label " * 12)
        for n in range(5):
            store.fork("planner@1", f"an-experiment-with-a-long-name-{n}")
    shown = on_a_terminal(cli, "log", "planner", "--no-color", columns=columns)
    for word in ("CHECKPOINT", "SAVED", "KIND", "BRANCH", "SIZE", "planner@9", "step", "manual", "(main", "(an-e"):
        assert word in shown
    listed = on_a_terminal(cli, "branches", "planner", "--no-color", columns=columns)
    for word in ("BRANCH", "HEAD", "SAVED", "KIND", "LABEL", "planner@9", "a lo"):
        assert word in listed
    assert "AGENT" in on_a_terminal(cli, "agents", "--no-color", columns=columns)


@POSIX
def test_a_text_on_a_terminal_is_shown_safely_and_an_export_is_refused(cli: Cli) -> None:
    shown = on_a_terminal(cli, "restore", "planner@7:messages[-1].content", "--format", "plain")
    assert "EVIL" in shown
    assert "\x1b[31m" not in shown
