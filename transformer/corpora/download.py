"""Downloads by pooch: fetched once, gone on with where they broke off, and checked."""

import gzip
import hashlib
import html
import json
import os
import re
import sys
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

from transformer.core.files import data_folder, write_file, write_json
from transformer.corpora import registry
from transformer.corpora.lines import byte_lines
from transformer.corpora.treebanks import craft_texts, pack_texts

INSTEAD = (
    "or set TRANSFORMER_MIRROR to a folder that holds <corpus>/<file>; "
    "--corpus bundled always works"
)


def download_folder() -> Path:
    """Where downloads are kept.

    $TRANSFORMER_DOWNLOADS, data/downloads in a checkout, or a folder in ~/.cache.
    """
    if "TRANSFORMER_DOWNLOADS" in os.environ:
        return Path(os.environ["TRANSFORMER_DOWNLOADS"])
    if data_folder().name == "data":
        return data_folder() / "downloads"
    return Path.home() / ".cache" / "annotated-attention"


def sha256_of(path: str | Path) -> str:
    """SHA-256 of a file's bytes, as hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def sum_of_version(path: Path, size: int, time: int) -> str:
    """`sha256_of` a file that has this size and was changed at this time, in nanoseconds."""
    return sha256_of(path)


def sum_of(path: Path) -> str:
    """`sha256_of` a file, which a process computes once for as long as size and time stay."""
    stat = path.stat()
    return sum_of_version(path.absolute(), stat.st_size, stat.st_mtime_ns)


def damage(path: Path, entry: registry.File) -> str | None:
    """What is wrong with a file according to its registry entry; None where nothing is."""
    if (
        entry.member is not None
    ):  # its text counts: compressed bytes differ between machines
        text = hashlib.sha256()
        packed = Path(path).name.endswith(".tar.gz")
        try:
            for part in craft_texts(path).values() if packed else byte_lines(path):
                text.update(part)
        except ValueError:
            return "it is cut off"
        same = text.hexdigest() == entry.sha256
        return None if same else "the SHA-256 of its text is not the registered one"
    if entry.sha256 is not None:
        return (
            None
            if sha256_of(path) == entry.sha256
            else "its SHA-256 is not the registered one"
        )
    lines = sum(1 for _ in byte_lines(path))
    return (
        None if lines == entry.lines else f"it has {lines:,} lines, not {entry.lines:,}"
    )


def checked(path: Path, entry: registry.File) -> str | None:
    """`damage` of a file, looked for where it is new or has changed since it was found whole.

    Of whole files size, time and registered checksum stand in checked.json beside the downloads.
    """
    stat = path.stat()
    stamp = [stat.st_size, stat.st_mtime_ns, entry.sha256 or entry.lines]
    book = download_folder() / "checked.json"
    try:
        known = dict(json.loads(book.read_text(encoding="utf8")))
    except (OSError, TypeError, ValueError):
        known = {}
    name = str(path.absolute())
    if known.get(name) == stamp:
        return None
    wrong = damage(path, entry)
    if wrong is None:
        with suppress(OSError):  # a folder that cannot be written to
            write_json(book, {**known, name: stamp})
    return wrong


def corpus_file(name: str, file: str | Path) -> Path:
    """The path of one file of a corpus: yours, in $TRANSFORMER_MIRROR, from earlier, or downloaded.

    The mirror is a folder that holds <corpus>/<file>. Raises ValueError where the file is not the
    registered one and OSError where no place has it.
    """
    entry = registry.FILES.get(file)
    if entry is None:
        return Path(file)
    mirror = os.environ.get("TRANSFORMER_MIRROR")
    path = download_folder() / file
    if mirror and Path(mirror, file).is_file():
        path = Path(mirror, file)
    if not path.is_file():
        from filelock import FileLock

        download_folder().mkdir(parents=True, exist_ok=True)
        # of several processes one fetches, and the others wait
        with FileLock(path.parent.with_name(f".{path.parent.name}.lock")):
            if not path.is_file():
                download(name, path, entry)
    wrong = checked(path, entry)
    if wrong:
        raise ValueError(
            f"{path} is damaged ({wrong}): delete it and run the command again"
        )
    return path


def download(name: str, path: Path, entry: registry.File) -> None:
    """Fetch a file of a corpus to path; the licence is printed the first time, and kept beside it.

    Raises OSError, in one sentence, where the file cannot be had, and ValueError where it is
    damaged.
    """
    import requests

    corpus = registry.CORPORA[name]
    notice = path.parent / f"licence-{name}.txt"
    text = f"{name}\nlicence: {corpus.licence}\ncite: {corpus.citation}\n"
    if not notice.is_file():
        print(text, end="", file=sys.stderr)
    try:
        fetch(path, entry)
    except requests.RequestException as error:
        answer = error.response
        reason = (
            type(error).__name__
            if answer is None
            else f"HTTP status {answer.status_code}"
        )
        raise OSError(
            f"could not download the corpus {name} from {entry.url} ({reason}): check the network, "
            f"{INSTEAD}"
        ) from None
    except OSError as error:
        error.filename = error.filename or str(
            path
        )  # a full disk does not say which file it was
        raise
    write_file(notice, lambda temporary: temporary.write_text(text, encoding="utf8"))


def fetch(path: Path, entry: registry.File) -> None:
    """Have pooch download what entry names, and check and unpack it.

    What an earlier attempt left is gone on with; where the whole is wrong then, it is thrown away
    and fetched once more from its beginning. ValueError where it is wrong even so.
    """
    import pooch

    def finish(arrived: str, action, keeper) -> None:
        if entry.member is not None:
            try:
                unpack(arrived, entry.url)
            finally:
                os.unlink(arrived)
        elif entry.sha256 is None and (wrong := damage(path, entry)):
            path.unlink()
            raise ValueError(wrong)

    pooch.get_logger().setLevel("WARNING")
    resumed = part_of(entry.url, path.parent).is_file()
    try:
        pooch.retrieve(
            entry.url,
            entry.known_hash,
            fname=entry.url.rpartition("/")[2],
            path=path.parent,
            downloader=resume,
            processor=finish,
        )
    except ValueError as error:
        if not resumed:
            # pooch's sentence goes on with both checksums
            reason = str(error).partition(":")[0]
            raise ValueError(
                f"{entry.url} sent another file than expected ({reason}): try again later, "
                f"{INSTEAD}"
            ) from None
        fetch(path, entry)


def part_of(url: str, folder: Path) -> Path:
    """Where the beginning of a download waits for its rest."""
    return folder / (url.rpartition("/")[2] + ".part")


def resume(url: str, output_file: str, pooch) -> None:
    """A downloader for pooch that goes on where an earlier attempt broke off.

    The server is asked only for what is missing (HTTP calls it a range); one that sends everything
    instead is believed, and the file starts anew. Raises requests' exceptions.
    """
    import requests
    from tqdm import tqdm

    part = part_of(url, Path(output_file).parent)
    done = part.stat().st_size if part.is_file() else 0
    headers = {
        "Accept-Encoding": "identity",
        **({"Range": f"bytes={done}-"} if done else {}),
    }
    with requests.get(url, headers=headers, stream=True, timeout=30) as answer:
        if answer.status_code != 416:  # otherwise nothing comes after these bytes
            answer.raise_for_status()
            done = done if answer.status_code == 206 else 0
            total = done + int(answer.headers.get("Content-Length", 0))
            bar = tqdm(
                total=total, initial=done, desc=part.stem, unit="B", unit_scale=True
            )
            with open(part, "ab" if done else "wb") as file, bar:
                for piece in answer.iter_content(2**16):
                    file.write(piece)
                    bar.update(len(piece))
            if part.stat().st_size < total:
                raise requests.ConnectionError(f"{url} stopped early")
    os.replace(part, output_file)


def segments(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the sentences, as lines of bytes, of a test set in the WMT's SGML, one <seg> a line."""
    for line in lines:
        found = re.search(rb"<seg[^>]*>(.*)</seg>", line)
        if found:
            text = html.unescape(found[1].decode("utf8"))
            yield re.sub(r"[ \t\r]+", " ", text).strip(" ").encode() + b"\n"


def unpack(archive: str | Path, url: str) -> None:
    """Write every registered file that the .tgz archive from url holds, beside it.

    Raises ValueError where it is damaged or lacks one.
    """
    folder = Path(archive).parent
    wanted = {
        entry.member: folder / Path(file).name
        for file, entry in registry.FILES.items()
        if entry.url == url
    }
    lines = {entry.member: entry.lines for entry in registry.FILES.values()}
    if "penn/*.tree" in wanted:
        texts = craft_texts(archive)
        return write_file(
            wanted["penn/*.tree"], lambda temporary: pack_texts(temporary, texts)
        )
    try:
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                name = member.name.rpartition("/")[2]
                if name in wanted:
                    text = islice(tar.extractfile(member), lines[name])
                    sgml = name.endswith(".sgm")
                    write_lines(wanted.pop(name), segments(text) if sgml else text)
                if not wanted:
                    return
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error):
        raise ValueError("it is a damaged archive") from None
    raise ValueError(f"it does not hold {', '.join(wanted)}")


def write_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write lines to path, packed where its name ends in .gz."""

    def write(temporary: Path) -> None:
        with (
            gzip.open(temporary, "wb")
            if path.suffix == ".gz"
            else open(temporary, "wb") as file
        ):
            file.writelines(lines)

    write_file(path, write)
