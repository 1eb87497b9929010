"""`kafkaproto completion`: the line that makes a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete commands and options.

    \b
    Examples:
      eval "$(kafkaproto completion bash)"                       (in ~/.bashrc)
      eval "$(kafkaproto completion zsh)"                        (in ~/.zshrc)
      kafkaproto completion fish > ~/.config/fish/completions/kafkaproto.fish
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"this click cannot complete in {shell}")
    root = ctx.find_root().command
    click.echo(kind(root, {}, "kafkaproto", "_KAFKAPROTO_COMPLETE").source())
