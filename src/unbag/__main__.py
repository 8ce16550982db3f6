"""`python -m unbag`."""

from unbag.cli import main

if __name__ == "__main__":
    main()
