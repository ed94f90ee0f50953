"""Completion: the scripts for shells, and what agents, branches and tags may stand at the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, FishComplete, ShellComplete, ZshComplete, shell_complete

from ..errors import RekindleError
from ..quoting import escape
from ..refs import quote_agent

if TYPE_CHECKING:
    from ..store import Store

# bash splits words at @ and : too; the words are read from the line itself, and what stands before the last
# such sign is taken off again
BASH = r"""_rekindle_completion() {
    local line="${COMP_LINE:0:COMP_POINT}" words cut found type value IFS=$' \t\n'
    read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    local cur="${words[${#words[@]}-1]}"
    cut="${cur%"${cur##*["$COMP_WORDBREAKS"]}"}"
    found="$(COMP_WORDS="$line" COMP_CWORD=$((${#words[@]}-1)) \
        _REKINDLE_COMPLETE=bash_complete "$1" 2>/dev/null)"
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case "$type" in
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
            plain) COMPREPLY+=("${value#"$cut"}") ;;
        esac
    done <<< "$found"
    [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *@ ]] && compopt -o nospace
    return 0
}
complete -o nosort -F _rekindle_completion rekindle
"""


def script(shell: str) -> str:
    if shell == "bash":
        return BASH
    kind: type[ShellComplete] = ZshComplete if shell == "zsh" else FishComplete
    return kind(click.Command("rekindle"), {}, "rekindle", "_REKINDLE_COMPLETE").source()


def complete(instruction: str) -> int:
    """Answer a script of ours: what may come next. The line is in the environment."""
    from .app import root

    return shell_complete(root, {}, "rekindle", "_REKINDLE_COMPLETE", instruction)


def complete_agent(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[Any]:
    return _answered(ctx, lambda store: _starting([quote_agent(name) for name in store.agents()], incomplete))


def complete_ref(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[Any]:
    """Agents; after `agent@` its branches and tags; after `..` the same for the second."""
    return _answered(ctx, lambda store: _refs(store, incomplete))


def complete_branch(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[Any]:
    """Branches of the agent that is named, of all agents where none is yet."""

    def ask(store: Store) -> list[Any]:
        agent = ctx.params.get("agent")
        agents = [agent] if agent else store.agents()
        names = dict.fromkeys(name for each in agents for name in store.branches(each))
        return _starting(list(names), incomplete)

    return _answered(ctx, ask)


def _refs(store: Store, incomplete: str) -> list[Any]:
    before, dots, last = incomplete.rpartition("..")
    agent, at, name = last.partition("@")
    if not at:
        found = _starting([quote_agent(each) for each in store.agents()], last)
    else:
        owner = agent or before.partition("@")[0]
        names = [*store.branches(owner), *store.tags(owner)]
        found = [CompletionItem(f"{agent}@{item.value}") for item in _starting([quote_agent(n) for n in names], name)]
    return [CompletionItem(before + dots + item.value) for item in found]


def _starting(names: list[str], incomplete: str) -> list[Any]:
    return [CompletionItem(escape(name)) for name in names if name.startswith(incomplete)]


def _answered(ctx: click.Context, ask: Any) -> list[Any]:
    """At the press of a key nothing is told of what is wrong: there is nothing to complete then."""
    from .app import Settings
    from .session import Session

    session = Session(ctx.find_root().ensure_object(Settings))
    try:
        return list(ask(session.store))
    except (RekindleError, OSError):
        return []
    finally:
        session.close()
