"""Downloads: fetched once, gone on with where they broke off, checked; a folder of yours may stand in."""

import gzip
import hashlib
import html
import os
import re
import sys
import tarfile
import zlib
from itertools import islice
from pathlib import Path

from filelock import FileLock

from transformer.corpora import registry
from transformer.corpora.lines import byte_lines
from transformer.corpora.treebanks import craft_texts, pack_texts
from transformer.files import data_folder, write_file



def download_folder():
    """Where downloads are kept: $TRANSFORMER_DOWNLOADS, data/downloads in a checkout, or a folder in ~/.cache."""
    if "TRANSFORMER_DOWNLOADS" in os.environ:
        return Path(os.environ["TRANSFORMER_DOWNLOADS"])
    if data_folder().name == "data":
        return data_folder() / "downloads"
    return Path.home() / ".cache" / "annotated-attention"


def sha256_of(path):
    """SHA-256 of a file's bytes, as hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damage(path, entry):
    """What is wrong with a downloaded or mirrored file according to its registry entry; None where nothing is."""
    if entry.member is not None:  # its text counts: compressed bytes differ from machine to machine
        text = hashlib.sha256()
        try:
            for line in (craft_texts(path).values() if Path(path).name.endswith(".tar.gz") else byte_lines(path)):
                text.update(line)
        except ValueError:
            return "it is cut off"
        return None if text.hexdigest() == entry.sha256 else "the SHA-256 of its text is not the registered one"
    if entry.sha256 is not None:
        return None if sha256_of(path) == entry.sha256 else "its SHA-256 is not the registered one"
    lines = sum(1 for _ in byte_lines(path))
    return None if lines == entry.lines else f"it has {lines:,} lines, not {entry.lines:,}"


def corpus_file(name, file):
    """The path of one file of a registered corpus: from $TRANSFORMER_MIRROR, from earlier, or downloaded.

    The mirror is a folder that holds <corpus>/<file>. Raises ValueError where the file is not the
    registered one and OSError where no place has it.
    """
    mirror = os.environ.get("TRANSFORMER_MIRROR")
    path = Path(mirror, file) if mirror and Path(mirror, file).is_file() else download_folder() / file
    if not path.is_file():
        download_folder().mkdir(parents=True, exist_ok=True)
        with FileLock(path.parent.with_name(f".{path.parent.name}.lock")):  # of several processes one fetches, and the others wait
            if not path.is_file():
                download(name, file)
    wrong = damage(path, registry.FILES[file])
    if wrong:
        raise ValueError(f"{path} is damaged ({wrong}): delete it and run the command again")
    return path


def fetch(url, part):
    """Download url to part, going on where an earlier attempt broke off; requests' own exceptions say what went wrong."""
    import requests
    from tqdm import tqdm

    done = part.stat().st_size if part.is_file() else 0
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={done}-"} if done else {})}
    with requests.get(url, headers=headers, stream=True, timeout=30) as answer:
        if answer.status_code == 416:  # nothing comes after these bytes; the checksum decides whether they are right
            return
        answer.raise_for_status()
        done = done if answer.status_code == 206 else 0
        total = done + int(answer.headers.get("Content-Length", 0))
        part.parent.mkdir(parents=True, exist_ok=True)
        with (open(part, "ab" if done else "wb") as file,
              tqdm(total=total, initial=done, desc=part.stem, unit="B", unit_scale=True) as bar):
            for piece in answer.iter_content(2**16):
                file.write(piece)
                bar.update(len(piece))
    if part.stat().st_size < total:
        raise requests.ConnectionError(f"{url} stopped early")


def fetch_whole(url, path, damage_of):
    """Download url to path; damage_of(part) says what is wrong with what came, or None.

    A file put together from two attempts that is wrong is thrown away and fetched once more from its
    beginning. Raises ValueError where it is wrong even so.
    """
    part = path.with_name(path.name + ".part")
    resumed = part.is_file()
    fetch(url, part)
    wrong = damage_of(part)
    if wrong is None:
        os.replace(part, path)
        return
    part.unlink()
    if not resumed:
        raise ValueError(f"{url} sent another file than expected ({wrong}): try again later, or set "
                         "TRANSFORMER_MIRROR to a folder that holds <corpus>/<file>; --corpus bundled always works")
    fetch_whole(url, path, damage_of)


def segments(lines):
    """Yield the sentences, as lines of bytes, of a test set in the WMT's SGML: one <seg> element a line."""
    for line in lines:
        found = re.search(rb"<seg[^>]*>(.*)</seg>", line)
        if found:
            text = html.unescape(found[1].decode("utf8"))
            yield re.sub(r"[ \t\r]+", " ", text).strip(" ").encode() + b"\n"


def unpack(archive, url):
    """Write every registered file that the .tgz archive from url holds; ValueError where it is damaged or lacks one."""
    wanted = {entry.member: file for file, entry in registry.FILES.items() if entry.url == url}
    if "penn/*.tree" in wanted:
        path = download_folder() / wanted["penn/*.tree"]
        return write_file(path, lambda temporary: pack_texts(temporary, craft_texts(archive)))
    try:
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                file = wanted.pop(member.name.split("/")[-1], None)
                if file is not None:
                    path, lines = download_folder() / file, tar.extractfile(member)
                    text = segments(lines) if member.name.endswith(".sgm") else islice(lines, registry.FILES[file].lines)
                    write_file(path, lambda temporary, path=path, text=text: write_text(temporary, path.suffix, text))
                if not wanted:
                    return
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error):
        raise ValueError(f"{url} sent a damaged archive: try again later, or set TRANSFORMER_MIRROR") from None
    raise ValueError(f"{url} does not hold {', '.join(wanted)}: it has changed; set TRANSFORMER_MIRROR")


def write_text(path, suffix, lines):
    """Write lines of bytes to path, packed where suffix is .gz."""
    with gzip.open(path, "wb") if suffix == ".gz" else open(path, "wb") as file:
        file.writelines(lines)


def download(name, file):
    """Fetch a file of a corpus into the download folder; its licence is printed the first time, and kept beside it.

    Raises OSError, in one sentence, where the file cannot be had, and ValueError where it is damaged.
    """
    import requests

    path, entry = download_folder() / file, registry.FILES[file]
    notice = path.parent / f"licence-{name}.txt"
    text = f"{name}\nlicence: {registry.CORPORA[name].licence}\ncite: {registry.CORPORA[name].citation}\n"
    if not notice.is_file():
        print(text, end="", file=sys.stderr)
    try:
        if entry.member is None:
            fetch_whole(entry.url, path, lambda part: damage(part, entry))
        else:
            archive = path.parent / entry.url.rpartition("/")[2]
            fetch_whole(entry.url, archive, lambda part: md5_damage(part, entry))
            try:
                unpack(archive, entry.url)
            finally:
                archive.unlink()
    except requests.RequestException as error:
        reason = type(error).__name__ if error.response is None else f"HTTP status {error.response.status_code}"
        raise OSError(f"could not download the corpus {name} from {entry.url} ({reason}): check the network, "
                      "or set TRANSFORMER_MIRROR to a folder that holds <corpus>/<file>; "
                      "--corpus bundled always works") from None
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk does not say by itself which file it was
        raise
    write_file(notice, lambda temporary: temporary.write_text(text, encoding="utf8"))


def md5_damage(path, entry):
    """What is wrong with a downloaded archive; None where nothing is, or nothing is known."""
    with open(path, "rb") as file:
        wrong = entry.md5 is not None and hashlib.file_digest(file, "md5").hexdigest() != entry.md5
    return "its MD5 is not the registered one" if wrong else None
