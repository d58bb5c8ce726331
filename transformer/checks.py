"""What a batch must hold for a model to read it; what does not is refused with one sentence."""


def outside_vocabulary(tokens, vocab_size):
    """The ValueError for a batch with a token id that no vocabulary of this size has."""
    wrong = tokens[(tokens < 0) | (tokens >= vocab_size)][0].item()
    return ValueError(f"token id {wrong} is outside the vocabulary of {vocab_size} types: "
                      "encode the text with the tokenizer saved beside this model")


def check_sides(source, target):
    """ValueError where a batch has not one target for each source sentence."""
    if len(source) != len(target):
        raise ValueError(f"source has {len(source)} sentences and target {len(target)}: "
                         "they must pair up")


def check_padding(real):
    """ValueError, naming the sentence, where one is empty or has padding before a token.

    real: (B, S), True for tokens.
    """
    lengths = real.sum(dim=1)
    if (lengths == 0).any():
        n = lengths.argmin().item() + 1
        raise ValueError(f"source sentence {n} is empty: leave it out of the batch")
    inside = (~real[:, :-1] & real[:, 1:]).any(dim=1)
    if inside.any():
        n = inside.int().argmax().item() + 1
        raise ValueError(f"source sentence {n} has padding before a token: "
                         "padding belongs at its end")
