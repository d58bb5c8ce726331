"""A campaign of malformed input, by the command line and by public functions: `make faults`.

Each case is made from its number and the seed, so it can be run again alone. A case is a fault
where it ends in a traceback, takes more than `LONGEST` seconds, kills its process, is refused
without a sentence of this package, or gives a wrong result without a word.

    python tools/faults.py                         # 10,000 cases, 1,000 of them in fresh processes
    python tools/faults.py --cases 500 --fresh 0 --kind weights
    python tools/faults.py --only 1234             # one case again, told in full
"""

import argparse
import contextlib
import io
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

with contextlib.suppress(
    ImportError
):  # Windows has no limits: there a campaign cannot run
    import resource

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import fault_calls  # noqa: E402
import fault_cases  # noqa: E402

LONGEST = 20  # seconds of the processor
WAIT = 600  # seconds by the clock: where others compute, a start alone takes long
MEMORY = 8 * 2**30  # bytes of address space that a case may take
FAULTS = ("traceback", "hang", "crash", "unclear", "silent")


class Hang(BaseException):
    """A case that takes too long; no handler for mistakes may catch it."""


def too_long(*_):
    raise Hang


@contextlib.contextmanager
def inside(folder):
    """In this folder, with an alarm."""
    clocks = {
        signal.SIGALRM: (signal.ITIMER_REAL, WAIT),
        signal.SIGPROF: (signal.ITIMER_PROF, LONGEST),
    }
    before, cwd = {name: signal.signal(name, too_long) for name in clocks}, os.getcwd()
    os.chdir(folder)
    for timer, seconds in clocks.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer, _ in clocks.values():
            signal.setitimer(timer, 0)
        for name, handler in before.items():
            signal.signal(name, handler)
        os.chdir(cwd)


def is_clear(error):
    """True where this package raised it with a sentence, or the system named a file."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return True
    frame = traceback.extract_tb(error.__traceback__)[-1]
    ours = Path(frame.filename).is_relative_to(ROOT / "transformer")
    kinds = (ValueError, TypeError, OSError, ImportError)
    return (
        ours
        and isinstance(error, kinds)
        and len(str(error).split()) > 2
        and ((frame.line or "").startswith("raise "))
    )


def verdict_of_command(case, status, out, err):
    """What became of a command: done, refused, or one of `FAULTS`; and why."""
    err = err.decode("utf8", "replace") if isinstance(err, bytes) else err
    if "Traceback" in err or "panicked" in err:
        return "traceback", err[-1500:]
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return "hang", f"status {status}"
    if status not in (0, 2):
        return "crash", f"status {status} {err[-500:]}"
    last = (err.strip().splitlines() or [""])[-1]
    if status == 2:
        said = last.startswith("transformer: ") and len(last.split()) > 3
        by_the_parser = not case.prepared and (
            "For full helptext" in err + out.decode("utf8", "replace")
        )
        return ("refused", last) if said or by_the_parser else ("unclear", err[-500:])
    wrong = case.wrong(out.decode("utf8"))
    return ("silent", wrong) if wrong else ("done", "")


def command_here(case):
    """Run a command in this process."""
    import transformer.cli as command_line

    out = io.TextIOWrapper(io.BytesIO(), "utf8")
    err = io.TextIOWrapper(
        io.BytesIO(), "utf8", "backslashreplace"
    )  # as Python opens it
    stdin = (
        None if case.stdin is None else io.TextIOWrapper(io.BytesIO(case.stdin), "utf8")
    )
    before = sys.argv, sys.stdin
    sys.argv, sys.stdin = ["transformer", *map(os.fsdecode, case.arguments)], stdin
    status = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            command_line.main()
    except SystemExit as stop:
        status = stop.code or 0
    except Exception:
        return "traceback", traceback.format_exc()[-1500:]
    finally:
        sys.argv, sys.stdin = before
    out.flush(), err.flush()
    return verdict_of_command(
        case,
        status,
        out.buffer.getvalue(),
        err.buffer.getvalue().decode("utf8", "replace"),
    )


def limit(closed):
    """In a new process: an end after so many seconds of the processor; standard input closed."""
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
    if closed:
        os.close(0)


def argument(word):
    """A word as the system hands it over; what no system would hand over goes as bytes."""
    try:
        return os.fsencode(word)
    except UnicodeEncodeError:
        return word.encode("utf8", "surrogatepass")


def command_afresh(case, folder):
    """Run a command in a process of its own."""
    words = [sys.executable, "-m", "transformer", *map(argument, case.arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    closed = case.stdin is None
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            input=None if closed else case.stdin,
            capture_output=True,
            env=environment,
            timeout=WAIT,
            preexec_fn=partial(limit, closed),
        )
    except subprocess.TimeoutExpired:
        return "hang", ""
    return verdict_of_command(case, done.returncode, done.stdout, done.stderr)


def become(case, folder, out, err):
    """In a forked child: run the command on files of the system's, and end."""
    import transformer.cli as command_line

    os.chdir(folder)
    content = tempfile.TemporaryFile()
    content.write(case.stdin or b"")
    content.seek(0)
    for number, file in enumerate((content, out, err)):
        os.dup2(file.fileno(), number)
    if case.stdin is None:
        os.close(0)
    sys.stdin = None if case.stdin is None else open(0, encoding="utf8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf8", errors="backslashreplace", closefd=False)
    sys.argv = ["transformer", *map(os.fsdecode, case.arguments)]
    try:
        command_line.main()
        return 0
    except SystemExit as stop:
        return stop.code or 0
    except BaseException:
        traceback.print_exc()
        return 1


def command_forked(case, folder):
    """Run a command in a child of this process, which has imported the package and run nothing."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            status, used = 1, int(time.process_time())
            resource.setrlimit(resource.RLIMIT_CPU, (used + LONGEST, used + LONGEST))
            with contextlib.suppress(BaseException):
                status = become(case, folder, out, err)
                sys.stdout.flush(), sys.stderr.flush()
            os._exit(status)
        deadline, ended = time.monotonic() + WAIT, 0
        while not ended and time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            time.sleep(0.01)
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hang", ""
        out.seek(0), err.seek(0)
        return verdict_of_command(
            case, os.waitstatus_to_exitcode(status), out.read(), err.read()
        )


def function_here(case):
    """Call a public function."""
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            wrong = case.call()
    except BaseException as error:
        if isinstance(error, Hang | KeyboardInterrupt):
            raise
        said = f"{type(error).__name__}: {error}"
        where = "".join(traceback.format_tb(error.__traceback__)[-3:])
        return (
            ("refused", said[:300])
            if is_clear(error)
            else ("unclear", f"{said[:300]}\n{where}")
        )
    return ("silent", wrong) if wrong else ("done", "")


def draw(chance, home, folder, kinds=None, only_commands=False):
    """The case that these random numbers decide, its folder filled."""
    functions = [] if only_commands else fault_calls.FUNCTIONS
    kind = chance.choice(
        [
            kind
            for kind in [*fault_cases.COMMANDS, *functions]
            if not kinds or kind.__name__ in kinds
        ]
    )
    if kind in functions:
        return kind(chance, home)
    fault_cases.prepare(home, folder)
    return kind(chance, home, folder)


def run_case(number, seed, home, kinds=None, fresh=None):
    """{"number", "kind", "verdict", "why", ...} of one case; fresh: "started" or "forked" where it
    gets a process of its own."""
    chance = random.Random(f"{seed}-{number}")
    with tempfile.TemporaryDirectory(prefix="fault-") as name:
        folder = Path(name)
        case = draw(chance, home, folder, kinds, only_commands=bool(fresh))
        started = time.monotonic()
        try:
            if fresh:
                run = command_afresh if fresh == "started" else command_forked
                verdict, why = run(case, folder)
            else:
                with inside(folder), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    verdict, why = (
                        command_here(case) if case.arguments else function_here(case)
                    )
        except Hang:
            verdict, why = "hang", traceback.format_exc()[-1500:]
    words = case.told.replace(str(home), "HOME").replace(name, "PLACE")
    return {
        "number": number,
        "kind": case.kind,
        "fresh": fresh,
        "verdict": verdict,
        "why": why,
        "case": words[:400],
        "seconds": round(time.monotonic() - started, 2),
    }


# Many cases


def work(numbers, seed, home, kinds, fresh):
    """The worker: one case after the other in this process, a line of JSON for each."""
    import torch

    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    report = os.fdopen(os.dup(1), "w")
    for number in numbers:
        found = run_case(number, seed, home, kinds, fresh)
        print(json.dumps(found), file=report, flush=True)


def worker_command(numbers, options, home, fresh):
    """The command of a process that does cases, one after the other."""
    numbered = f"{numbers[0]}:{numbers[-1] + 1}"
    command = [sys.executable, __file__, "--worker", numbered, "--home", str(home)]
    command += ["--seed", str(options.seed), *(f"--kind={k}" for k in options.kind)]
    return [*command, "--forked"] if fresh else command


def lost(number, fresh, verdict, status):
    """The finding where a case has ended its process, or never ends."""
    row = {"number": number, "kind": "?", "fresh": fresh, "verdict": verdict}
    return {**row, "why": f"status {status}", "case": "", "seconds": 0}


def in_one_process(numbers, options, home, fresh=None):
    """Yield the findings; the process is begun anew where a case has killed or blocked it."""
    while numbers:
        words = worker_command(numbers, options, home, fresh)
        with subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env=os.environ,
        ) as worker:
            while numbers:
                ready = select.select([worker.stdout], [], [], 2 * WAIT)[0]
                line = worker.stdout.readline() if ready else b""
                if not line.endswith(b"\n"):
                    worker.kill()
                    verdict = "hang" if not ready else "crash"
                    yield lost(numbers[0], fresh, verdict, worker.wait())
                else:
                    yield json.loads(line)
                numbers = numbers[1:]
                if not line:
                    break


def campaign(options, home):
    """Yield the findings of all cases; the first have processes of their own."""
    started, fresh = min(options.started, options.fresh), options.fresh
    yield from in_one_process(list(range(fresh, options.cases)), options, home)
    yield from in_one_process(list(range(started, fresh)), options, home, "forked")
    with ThreadPoolExecutor(options.jobs) as pool:
        yield from pool.map(
            lambda n: run_case(n, options.seed, home, options.kind, "started"),
            range(started),
        )


def table(found):
    """Lines: cases of each kind, and what became of them."""
    columns = ("cases", "done", "refused", *FAULTS)
    yield "| kind | " + " | ".join(columns) + " |"
    yield "|---|" + "---|" * len(columns)
    groups = {}
    for row in found:
        name = f"{row['kind']}, process {row['fresh']}" if row["fresh"] else row["kind"]
        for group in (name, "all"):
            groups.setdefault(group, Counter()).update(["cases", row["verdict"]])
    for name in sorted(groups, key=lambda name: (name == "all", name)):
        yield (
            f"| {name} | "
            + " | ".join(str(groups[name][column]) for column in columns)
            + " |"
        )


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument(
        "--fresh", type=int, default=1000, help="so many in processes of their own"
    )
    parser.add_argument(
        "--started",
        type=int,
        default=1000,
        help="of those, so many by a new "
        "interpreter, seconds each; the others are forked from one that has "
        "imported the package",
    )
    parser.add_argument("--jobs", type=int, default=2, help="interpreters at a time")
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument(
        "--kind", action="append", default=[], help="cases of this kind only"
    )
    parser.add_argument("--only", type=int, help="this case alone")
    parser.add_argument("--report", type=Path, help="write all findings into this file")
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--forked", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = arguments()
    if options.worker:
        first, end = map(int, options.worker.split(":"))
        fresh = "forked" if options.forked else None
        return work(range(first, end), options.seed, options.home, options.kind, fresh)
    os.environ["TRANSFORMER_MIRROR"] = os.environ["TRANSFORMER_DOWNLOADS"] = "/nowhere"
    os.environ.update(PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1", PYTHONUTF8="1")
    with tempfile.TemporaryDirectory() as name:
        home = fault_cases.make_home(Path(name))
        if options.only is not None:
            fresh = "started" if options.only < options.fresh else None
            row = run_case(options.only, options.seed, home, options.kind, fresh)
            print(json.dumps(row, indent=1).replace("\\n", "\n"))
            return None
        found = []
        report = open(options.report or os.devnull, "w", encoding="utf8")
        for row in campaign(options, home):
            found.append(row)
            print(json.dumps(row), file=report, flush=True)
            if row["verdict"] in FAULTS:
                print(
                    f"{row['number']} {row['kind']} {row['verdict']}: {row['case']}",
                    flush=True,
                )
    print("\n".join(table(found)))
    return any(row["verdict"] in FAULTS for row in found)


if __name__ == "__main__":
    sys.exit(main())
