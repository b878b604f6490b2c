"""Running the command line inside a test, on a terminal of a chosen width."""

from typer.testing import CliRunner, Result

from bigfleet.cli import output
from bigfleet.cli.main import app


def run(*words: str, columns: int = 120) -> Result:
    """What a command printed and its exit code."""
    # A console may have taken its width from the shell the tests run in.
    output.out.width = output.err.width = columns
    return CliRunner(env={"NO_COLOR": "1"}).invoke(app, list(words))
