"""`python -m unbag`."""

from unbag.cli import app

if __name__ == "__main__":
    app()
