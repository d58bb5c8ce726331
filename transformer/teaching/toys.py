"""What stands in for real parts and tasks in notebooks 01 to 06 and 11.

Nothing here knows the model: what is examined is passed in.
"""

import time

import torch
import torch.nn.functional as F
from torch import distributed, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.utils.rnn import pad_sequence


def rows_to_reverse(count, low, high):
    """Random rows of low to high digits, and each backwards between the marks.

    Two id tensors (count, length), padded; ids 3 to 12 are the digits.
    """
    lengths = torch.randint(low, high + 1, (count,)).tolist()
    rows = [torch.randint(3, 13, (length,)) for length in lengths]
    start, end = torch.tensor([1]), torch.tensor([2])
    backwards = [torch.cat([start, row.flip(0), end]) for row in rows]
    source = pad_sequence(rows, batch_first=True)
    return source, pad_sequence(backwards, batch_first=True)


def learn_to_reverse(model, steps):
    """Train an encoder-decoder on 64 rows of two to ten digits a step, and return it.

    The learning rate falls from 0.005 to 0; afterwards the model is in eval mode.
    """
    optimizer = torch.optim.Adam(model.train().parameters())
    for step in range(steps):
        source, target = rows_to_reverse(64, 2, 10)
        logits = model(source, target[:, :-1])
        gold = target[:, 1:]
        loss = F.cross_entropy(logits.flatten(0, 1), gold.flatten(), ignore_index=0)
        optimizer.param_groups[0]["lr"] = 0.005 * (1 - step / steps)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


@torch.no_grad()
def share_reversed(model, length, count=300):
    """The share of count new rows of a length that the model says backwards.

    Every digit and the end mark must be right.
    """
    source, target = rows_to_reverse(count, length, length)
    written = target[:, :1]
    for _ in range(length + 1):
        token = model(source, written)[:, -1].argmax(dim=-1, keepdim=True)
        written = torch.cat([written, token], dim=1)  # goes back in
    return (written == target).all(dim=1).float().mean().item()


class LinearRecurrence(nn.Module):
    """h_t = W h_(t-1) + x_t, from h = 0: x (B, T, d) -> (B, T, d).

    W is g times a random rotation, so that W^t is g^t long.
    """

    def __init__(self, d, g):
        super().__init__()
        self.W = nn.Parameter(g * nn.init.orthogonal_(torch.empty(d, d)))

    def forward(self, x):
        states = [x[:, 0]]
        for x_t in x[:, 1:].unbind(dim=1):
            states.append(states[-1] @ self.W.T + x_t)
        return torch.stack(states, dim=1)


def fit(network, x, y, steps=600, lr=0.02):
    """Train a network to give y for x; returns its last mean squared error."""
    optimizer = torch.optim.Adam(network.parameters(), lr)
    for _ in range(steps):
        loss = (network(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


# Look-ups (notebook 04): each task stands `runs` times beside itself, a set for each network


def train_several(make, batch, steps, lr, runs=5):
    """Train several networks at once, each from its own first weights, on its own data.

    make() gives a network; batch() what it is given, and last what it should answer: tensors
    (runs, count, ...). Returns the mean squared errors (steps, runs) and the trained networks.
    """
    networks = [make() for _ in range(runs)]
    weights, buffers = stack_module_state(networks)

    def error(weights, buffers, *given):
        answer = functional_call(networks[0], (weights, buffers), given[:-1])
        return (answer - given[-1]).square().mean()

    optimizer = torch.optim.Adam(weights.values(), lr)
    errors = []
    for _ in range(steps):
        each = vmap(error)(weights, buffers, *batch())
        optimizer.zero_grad()
        each.sum().backward()
        optimizer.step()
        errors.append(each.detach())
    for i, network in enumerate(networks):
        network.load_state_dict(
            {name: value[i] for name, value in weights.items()}, strict=False
        )
    return torch.stack(errors), networks


@torch.no_grad()
def errors_of(networks, batch):
    """The mean squared error of each network on its part of a batch, as `train_several` takes it:
    (runs,)."""
    *given, right = batch
    answers = [network(*(x[i] for x in given)) for i, network in enumerate(networks)]
    return (torch.stack(answers) - right).square().flatten(1).mean(dim=1)


def names_and_numbers(names, n, runs, count):
    """Rows of n different names, each with a random number: (runs, count, n, d) and (..., n, 1)."""
    chosen = torch.rand(runs, count, len(names)).argsort(dim=-1)[..., :n]
    return names[chosen], torch.randn(runs, count, n, 1)


def look_ups(names, n=4, asked=1, runs=5, count=32):
    """n names with a number each, and `asked` of the names; right is the number beside each.

    names: all there are, (number, d). Returns the names asked for (runs, count, asked, d), the
    names (runs, count, n, d), the numbers (runs, count, n, 1), right (runs, count, asked).
    """
    keys, numbers = names_and_numbers(names, n, runs, count)
    places = torch.rand(runs, count, n).argsort(dim=-1)[..., :asked, None]
    queries = keys.gather(2, places.expand(-1, -1, -1, keys.shape[-1]))
    return queries, keys, numbers, numbers.gather(2, places)[..., 0]


def ask(names, wishes=1, count=64, n=6):
    """n pairs of a name and a number, and some of the names.

    names: all there are, (number, d). Returns the names asked for (count, wishes, d), all names
    (count, n, d), their numbers (count, n, 1), the numbers asked for (count, wishes, 1) and their
    places (count, wishes).
    """
    chosen = torch.rand(count, len(names)).argsort(dim=1)[:, :n]  # n different names
    numbers = torch.randn(count, n, 1)
    places = torch.rand(count, n).argsort(dim=1)[:, :wishes]
    right = numbers.gather(1, places[:, :, None])
    return names[chosen.gather(1, places)], names[chosen], numbers, right, places


def ask_for_two(names, count=64):
    """`ask` for two names in one query.

    Returns the query (count, 1, 2 d), two names side by side; the pairs (count, 6, 2 d), each a
    name, its number and zeros; the two numbers, and the places of their pairs (count, 2).
    """
    asked, keys, numbers, right, places = ask(names, 2, count)
    pairs = F.pad(torch.cat([keys, numbers], dim=2), (0, names.shape[1] - 1))
    return asked.flatten(1)[:, None], pairs, right[:, :, 0], places


def fetches(partner, runs=5, count=32):
    """One token of each kind, in random order; each is to fetch the number beside its partner.

    partner[i]: the kind that kind i needs. Returns the kinds, one-hot (runs, count, n, n), the
    numbers (runs, count, n, 1), and what is right, (runs, count, n, 1).
    """
    n = len(partner)
    kinds, numbers = names_and_numbers(torch.eye(n), n, runs, count)
    wanted = kinds @ torch.eye(n)[partner] @ kinds.transpose(-2, -1)
    return kinds, numbers, wanted @ numbers


def work_together(number, count, folder, batch=512, updates=20, width=256):
    """One of count processes that train a small network in float64, each on its part of the batch.

    They meet through a file in folder; each leaves its weights there, as <number>.pt, with the
    milliseconds of an update (the median) that it spent computing, waiting for the others, and
    exchanging gradients.
    """
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=number, world_size=count
    )
    torch.set_num_threads(1)  # the processes share the cores
    torch.manual_seed(0)  # so all start from the same weights
    model = nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)
    ).double()
    x = torch.randn(batch, width, dtype=torch.float64)
    times = {"computing": [], "waiting": [], "exchanging": []}
    for _ in range(updates):
        started = time.perf_counter()
        loss = (model(x[number::count]) - x[number::count]).square().sum() / x.numel()
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        computed = time.perf_counter()
        distributed.barrier()  # only to tell waiting from exchanging
        together = time.perf_counter()
        for p, gradient in zip(model.parameters(), gradients):
            distributed.all_reduce(
                gradient
            )  # the sum of all processes' parts, for each of them
            p.data -= 0.1 * gradient
        moments = started, computed, together, time.perf_counter()
        for own, begin, end in zip(times.values(), moments, moments[1:]):
            own.append(1000 * (end - begin))
    middle = {what: sorted(own)[len(own) // 2] for what, own in times.items()}
    torch.save({"weights": model.state_dict(), **middle}, f"{folder}/{number}.pt")
    distributed.destroy_process_group()
