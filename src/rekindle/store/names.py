"""Branches, tags and labels: each a decision on the newest operation log, each undoable."""

from __future__ import annotations

from ..errors import ConflictError, NotFoundError
from ..model import MAIN, check_name
from ..refs import quote_agent
from ..storage.record import Head
from .engine import Engine
from .resolve import Resolver
from .view import Edit, View


def _must_be_here(view: View, head: Head) -> None:
    """A name for a checkpoint that was pruned since it was looked up would lead nowhere."""
    if head.seq in view.agent(head.key.agent).dropped:
        raise NotFoundError(
            "checkpoint-not-found", f"checkpoint {head.seq} of agent {head.key.agent!r} was pruned",
            hint="undo the prune, or name another",
        )  # fmt: skip


def fork(engine: Engine, refs: Resolver, head: Head, branch: str) -> None:
    agent, name = head.key.agent, check_name(branch, "a branch")

    def decide(view: View) -> list[Edit]:
        _must_be_here(view, head)
        if name in refs.branches(agent):
            raise ConflictError(
                "branch-exists", f"agent {agent!r} has a branch {name!r}",
                hint="choose another name" + ("" if name == MAIN else ", or delete it"),
            )  # fmt: skip
        if name in view.agent(agent).tags:
            raise ConflictError("name-taken", f"agent {agent!r} has a tag {name!r}", hint="choose another name")
        return [("branch", agent, name, None, head.seq)]

    engine.log.operate(head.key.user, "fork", f"{quote_agent(agent)}@{head.seq} as {name}", decide)


def delete_branch(engine: Engine, refs: Resolver, user: str, agent: str, branch: str) -> None:
    def decide(view: View) -> list[Edit]:
        heads = refs.branches(agent)
        if branch not in heads:
            raise NotFoundError(
                "branch-not-found", f"agent {agent!r} has no branch {branch!r}",
                hint=f"list its branches with `rekindle branches {quote_agent(agent)}`",
            )  # fmt: skip
        if branch == MAIN:
            raise ConflictError("main-stays", "the branch 'main' cannot be deleted", hint="delete the agent instead")
        return [("branch", agent, branch, heads[branch], None)]

    engine.log.operate(user, "delete-branch", f"{quote_agent(agent)} {branch}", decide)


def tag(engine: Engine, refs: Resolver, head: Head, name: str, *, move: bool) -> None:
    agent = head.key.agent
    check_name(name, "a tag")

    def decide(view: View) -> list[Edit] | None:
        _must_be_here(view, head)
        old = view.agent(agent).tags.get(name)
        if old == head.seq:
            return None
        if (old is not None and not move) or name in refs.branches(agent):
            raise ConflictError(
                "name-taken", f"agent {agent!r} has {'a tag' if old else 'a branch'} {name!r}",
                hint="choose another name" + (", or move the tag (`--move`)" if old else ""),
            )  # fmt: skip
        return [("tag", agent, name, old, head.seq)]

    engine.log.operate(head.key.user, "tag", f"{quote_agent(agent)}@{head.seq} {name}", decide)


def untag(engine: Engine, user: str, agent: str, name: str) -> None:
    def decide(view: View) -> list[Edit]:
        old = view.agent(agent).tags.get(name)
        if old is None:
            raise NotFoundError(
                "tag-not-found", f"agent {agent!r} has no tag {name!r}",
                hint=f"list what it has with `rekindle tags {quote_agent(agent)}`",
            )  # fmt: skip
        return [("tag", agent, name, old, None)]

    engine.log.operate(user, "untag", f"{quote_agent(agent)} {name}", decide)


def label(engine: Engine, head: Head, text: str | None) -> None:
    agent = head.key.agent

    def decide(view: View) -> list[Edit] | None:
        _must_be_here(view, head)
        old = view.agent(agent).labels.get(head.seq, head.label)
        return None if old == text else [("label", agent, head.seq, old, text)]

    engine.log.operate(head.key.user, "label", f"{quote_agent(agent)}@{head.seq} {text!r}", decide)
