"""The root command: the options all commands share, and the one place where failures end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from .table import ENTRIES, MOST_COLUMNS, columns, help_text

OK, PIPE_CLOSED, USAGE = 0, 141, 2  # the others are in exits.py, which loads when something went wrong


class Settings:
    """What the global options say, wherever on the line they stand."""

    def __init__(self) -> None:
        self.store: str | None = None
        self.user = "local"
        self.json = False
        self.color = not os.environ.get("NO_COLOR")


def _set(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value not in (None, False):
            setattr(ctx.find_root().ensure_object(Settings), name, value if name != "color" else False)

    return callback


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from .. import __version__

        click.echo(f"rekindle {__version__}")
        ctx.exit()


def shared_options(*, root: bool) -> list[click.Parameter]:
    """The global options; below the root they are understood too, and told of in one line."""
    more: dict[str, Any] = {"expose_value": False, "hidden": not root}
    env = "REKINDLE_STORE" if root else None
    return [
        click.Option(["--store"], metavar="URL", envvar=env, callback=_set("store"), **more),
        click.Option(["--user"], metavar="NAME", callback=_set("user"), **more),
        click.Option(["--json"], is_flag=True, callback=_set("json"), **more),
        click.Option(["--no-color"], is_flag=True, callback=_set("color"), **more),
        click.Option(["--version"], is_flag=True, is_eager=True, callback=_version, **more),
    ]


class Verb(click.Command):
    """A command that takes the global options too, and whose help ends with examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.params += shared_options(root=False)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.epilog:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(self.epilog)
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"  $ {example}\n")
        formatter.write_paragraph()
        formatter.write("Everywhere: --store, --user, --json, --no-color (see `rekindle --help`).\n")


class Root(click.Group):
    """Knows its commands by a table; the module of one loads when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        entry = ENTRIES.get(name)
        if entry is None:
            return None
        command: click.Command = getattr(import_module(f".{entry.module}", __package__), f"cmd_{name}")
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in ENTRIES and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], ENTRIES, n=1)
            maybe = f"did you mean `rekindle {close[0]}`?" if close else "see `rekindle --help`"
            error = click.UsageError(f"there is no command {args[0]!r}", ctx)
            error.hint = maybe  # type: ignore[attr-defined]
            raise error
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        return help_text(columns())

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        found = [CompletionItem(e.name, help=e.help) for e in ENTRIES.values() if e.name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> NoReturn:
        sys.exit(run(self, sys.argv[1:] if args is None else list(args)))


root = Root(
    "rekindle",
    params=shared_options(root=True),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": MOST_COLUMNS},
)


def run(command: click.Group, args: list[str]) -> int:
    """Run a command line; what goes wrong is told on stderr. Answers the exit code."""
    asked = "--json" in args[: args.index("--")] if "--" in args else "--json" in args
    try:
        with command.make_context("rekindle", args) as ctx:
            answer = command.invoke(ctx)
        sys.stdout.flush()
        return answer if type(answer) is int else OK
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.UsageError as e:
        return _usage(e, as_json=asked)
    except (KeyboardInterrupt, click.Abort):
        return _fail(KeyboardInterrupt(), as_json=asked)
    except BrokenPipeError:
        # whoever reads has gone: nothing may be written any more, not even by the interpreter as it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except Exception as e:  # noqa: BLE001 - the edge of the program: told in one line, with a way to see more
        return _fail(e, as_json=asked)


def _usage(error: click.UsageError, *, as_json: bool) -> int:
    from ..errors import InvalidInputError

    path = error.ctx.command_path if error.ctx is not None else "rekindle"
    hint = getattr(error, "hint", None) or f"see `{path} --help`"
    if type(error).__name__ == "NoArgsIsHelpError":
        click.echo(error.message)
        return USAGE
    return _fail(InvalidInputError("usage", error.format_message(), hint=hint), as_json=as_json)


def _fail(error: BaseException, *, as_json: bool) -> int:
    from . import exits

    known = exits.as_rekindle(error)
    if known is None:
        from ..errors import RekindleError

        if os.environ.get("REKINDLE_TRACEBACK"):
            import traceback

            traceback.print_exception(error)
        known = RekindleError(
            "unexpected", f"rekindle failed and should not have: {type(error).__name__}: {error}",
            hint="run it again with REKINDLE_TRACEBACK=1 to see where, and please report it",
        )  # fmt: skip
    click.echo(exits.told(known, as_json=as_json), err=True)
    return exits.code_of(error)
