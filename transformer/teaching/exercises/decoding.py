"""The exercise of notebook 15: the tokens that would repeat a run."""

from transformer.teaching.exercises import Exercise


def forbidden(tokens: list[int], n: int) -> set[int]:
    """The tokens that would complete a run of n tokens which is there already."""
    end = tokens[len(tokens) - n + 1 :]
    return {
        tokens[start + n - 1]
        for start in range(len(tokens) - n + 1)
        if tokens[start : start + n - 1] == end
    }


check_forbidden = Exercise(
    forbidden,
    lambda: [
        ([5, 6, 7, 8, 5, 6], 3),
        ([5, 6, 7, 8, 5, 6, 9, 5, 6], 3),
        ([5, 6, 7, 8], 3),
        ([4, 4], 2),
        ([4, 5, 4], 1),
        ([4], 3),
    ],
    "compare the last n - 1 tokens with every n - 1 tokens before; where they agree, the "
    "next one is forbidden",
)
