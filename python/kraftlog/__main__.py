"""``python -m kraftlog`` is the command line."""

from kraftlog.cli import main

if __name__ == "__main__":
    main()
