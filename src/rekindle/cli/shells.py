"""`completion`: a script for the shell that asks this program what may come next."""

from __future__ import annotations

import click

from .completing import script
from .session import Session, verb


@verb(
    "completion",
    examples=(
        "rekindle completion bash > ~/.local/share/bash-completion/completions/rekindle",
        "rekindle completion zsh > ~/.zfunc/_rekindle",
        "rekindle completion fish > ~/.config/fish/completions/rekindle.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def cmd_completion(session: Session, shell: str) -> None:
    """Print a completion script: commands, options, and the store's agents, branches and tags."""
    if session.out.json:
        session.out.data({"shell": shell, "script": script(shell)})
        return
    click.echo(script(shell), nl=False)
