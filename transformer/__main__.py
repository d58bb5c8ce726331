"""python -m transformer: see `transformer.cli`."""

from transformer.cli import main

if __name__ == "__main__":
    main()
