"""Call the command line as a user would."""

from typer.testing import CliRunner

from unbag.cli import app


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def good(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result
