"""A page that holds a chat bot: one HTML file that answers what is typed, and shows where the bot
looked.

It is to `Chat` what the page of `view` is to `translate`, and made of the same parts.
"""

from collections.abc import Sequence

from transformer.core.checks import check_room
from transformer.views.pages import engine_of, halves, page_of, why_still
from transformer.views.widget import Widget


def view_chat(
    model, tokenizer, examples: Sequence[str] = (), longest: int = 60
) -> Widget:
    """`Widget` of a language model to talk with; it says what `Chat` says, the likeliest answers.

    examples: questions to click. Raises ValueError for a model that the page cannot compute.
    """
    c = model.config
    check_room(2, longest, c.max_positions)
    why = why_still(model, "language")
    if why or c.prefix:
        raise ValueError(
            f"no page can hold this bot. {why or 'Its prompts see their ends.'}"
        )
    data = {
        "examples": list(examples),
        "longest": longest,
        **engine_of(model, tokenizer),
    }
    return Widget(page_of(data, halves(model), "chat"), 900, "A chat bot")
