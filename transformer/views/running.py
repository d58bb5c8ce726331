"""A run of training: its curves, and what becomes of some sentences, also while it goes on."""

from transformer.views import plotting


def curves(log):
    """Both losses and the BLEU of greedy translations over the updates of a run's log."""
    left, right = plotting.new_axes(4.5, 3, columns=2)
    updates = [row["update"] for row in log]
    losses = {
        "training": [row["loss"] for row in log],
        "validation": [row["validation_loss"] for row in log],
    }
    plotting.lines(
        updates, losses, "update", "nats a target token", "loss", ax=left, markers=True
    )
    greedy = {"BLEU": [row["bleu"] for row in log]}
    title = "greedy translations of validation sentences"
    plotting.lines(updates, greedy, "update", "BLEU", title, ax=right, markers=True)
    return left.figure


def growth(log, sentences, most=8, width=76) -> str:
    """For each sentence its translations, a line an update: `most` rows of the log, evenly spread,
    the last among them. A row has them under "translations"."""
    step = -(-len(log) // most)
    rows, lines = log[::-1][::step][::-1], []
    for number, sentence in enumerate(sentences):
        lines.append(sentence)
        lines += [
            f"{row['update']:>8,}  {row['translations'][number][:width]}"
            for row in rows
        ]
    return "\n".join(lines)


class Live:
    """A callback of a run: draws `curves` and `growth` in a notebook, each time in their place."""

    def __init__(self, sentences):
        from IPython.display import display

        waiting = {"text/plain": "the curves come with the first validation"}
        self.sentences = sentences
        self.places = [display(waiting, raw=True, display_id=True) for _ in range(2)]

    def __call__(self, progress) -> None:
        if progress.validated:
            self.draw(progress.log)

    def draw(self, log) -> None:
        """Both, of the rows of a log."""
        import matplotlib.pyplot as plt

        figure = curves(log)
        self.places[0].update(figure)
        plt.close(figure)
        self.places[1].update({"text/plain": growth(log, self.sentences)}, raw=True)
