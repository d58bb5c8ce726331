"""python -m transformer, and the command `transformer`: see `transformer.cli`."""

import sys


def main() -> None:
    """Say the version, or run a command."""
    if sys.argv[1:] == ["--version"]:
        from transformer import __version__

        print(f"transformer {__version__}")
        return
    from transformer.cli import main as run

    run()


if __name__ == "__main__":
    main()
