"""Downloads, from a server on this machine: resumed, checked, unpacked, or from a mirror."""

import gzip
import hashlib
import http.server
import io
import random
import re
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers import sgml

from transformer import corpora
from transformer.corpora import registry, treebanks
from transformer.corpora.moses import wmt14_pairs
from transformer.corpora.registry import Corpus, File

ENGLISH, GERMAN = "one\ntwo\nthree\n", "eins\nzwei\ndrei\n"
PAIRS = [("one", "eins"), ("two", "zwei"), ("three", "drei")]


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class Server(http.server.BaseHTTPRequestHandler):
    """Serves `files`; understands ranges unless told not to; breaks off after `limit` bytes where one is set."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        server.asked.append((self.path, self.headers.get("Range")))
        content = server.files.get(self.path.strip("/"))
        if content is None:
            self.send_error(404)
            return
        start = (
            int(
                re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "bytes=0-")[
                    1
                ]
            )
            if server.ranges
            else 0
        )
        if start and start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start:][: server.limit])
        if server.limit is not None:
            self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    """A server on this machine; .files maps a name to bytes, .asked lists (path, range) of every request."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.files, server.asked, server.limit, server.ranges = {}, [], None, True
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def downloads(monkeypatch, tmp_path):
    """An empty download folder and no mirror; proxies of the machine are not asked."""
    monkeypatch.delenv("TRANSFORMER_MIRROR", raising=False)
    monkeypatch.setenv("TRANSFORMER_DOWNLOADS", str(tmp_path / "downloads"))
    monkeypatch.setenv("NO_PROXY", "*")
    return tmp_path / "downloads"


@pytest.fixture
def toy(monkeypatch, server, downloads):
    """A corpus "toy" of two packed files in the registry and on the server; returns its download folder."""
    monkeypatch.setattr(registry, "FILES", dict(registry.FILES))
    chance = random.Random(0)
    for language, text in (("en", ENGLISH), ("de", GERMAN)):
        packed = gzip.compress(text.encode(), mtime=0) + gzip.compress(
            b"\n" * chance.randrange(200_000, 300_000), 0
        )
        register(server, f"toy/a.{language}.gz", packed)
    monkeypatch.setitem(
        corpora.CORPORA,
        "toy",
        Corpus(
            {"train": ("toy/a.en.gz", "toy/a.de.gz")},
            "anyone, for anything",
            "us",
            cut={"train": (0, 3)},
        ),
    )
    return downloads / "toy"


def register(server, file, content, **entry):
    name = file.rpartition("/")[2]
    server.files[name] = content
    registry.FILES[file] = File(
        f"{server.url}/{name}", **{"sha256": sha256(content), **entry}
    )


def test_download(toy, server):
    assert corpora.read_corpus("toy", "train") == PAIRS
    assert sorted(path.name for path in toy.iterdir()) == [
        "a.de.gz",
        "a.en.gz",
        "licence-toy.txt",
    ]
    assert (toy / "a.en.gz").read_bytes() == server.files["a.en.gz"]
    assert corpora.read_corpus("toy", "train") == PAIRS and len(server.asked) == 2, (
        "an earlier download is used"
    )


def test_several_that_ask_at_once_download_once(toy, server):
    """Otherwise two would write the same half-finished file."""
    with ThreadPoolExecutor(4) as pool:
        assert (
            list(pool.map(lambda _: corpora.read_corpus("toy", "train"), range(4)))
            == [PAIRS] * 4
        )
    assert len(server.asked) == 2


def test_licence_and_citation_are_printed_once(toy, capsys):
    corpora.read_corpus("toy", "train")
    said = capsys.readouterr()
    assert (
        "toy\nlicence: anyone, for anything\ncite: us\n" in said.err and said.out == ""
    )
    (toy / "a.en.gz").unlink()
    corpora.read_corpus("toy", "train")
    assert "licence" not in capsys.readouterr().err


def test_an_interrupted_download_goes_on(toy, server, capfd):
    server.limit = 100_000
    with pytest.raises(
        OSError,
        match=r"could not download the corpus toy from http://.*a\.en\.gz \(\w+\): check",
    ):
        corpora.read_corpus("toy", "train")
    part = toy / "a.en.gz.part"
    arrived = part.stat().st_size
    assert 0 < arrived <= 100_000 and not (toy / "a.en.gz").exists()
    server.limit = None
    assert corpora.read_corpus("toy", "train") == PAIRS and not part.exists()
    assert (
        server.asked[:2] == [("/a.en.gz", None), ("/a.en.gz", f"bytes={arrived}-")]
        and len(server.asked) == 3
    )
    assert "a.en.gz" in capfd.readouterr().err, "no progress bar"


def test_a_server_without_ranges(toy, server):
    """It sends everything, although the rest was asked for: the file starts anew."""
    toy.mkdir(parents=True)
    (toy / "a.en.gz.part").write_bytes(server.files["a.en.gz"][:1000])
    server.ranges = False
    assert corpora.read_corpus("toy", "train") == PAIRS
    assert server.asked[0] == ("/a.en.gz", "bytes=1000-") and len(server.asked) == 2


@pytest.mark.parametrize("rest", [b"something else entirely", None, b""])
def test_a_resumed_download_that_is_wrong_starts_anew(toy, server, rest):
    """The file changed in between; or what is there is too long, and the server has nothing to add; or is empty."""
    toy.mkdir(parents=True)
    whole = server.files["a.en.gz"]
    (toy / "a.en.gz.part").write_bytes(whole + b"too long" if rest is None else rest)
    assert (
        corpora.read_corpus("toy", "train") == PAIRS
        and (toy / "a.en.gz").read_bytes() == whole
    )


@pytest.mark.parametrize("content", [b"<html>please log in</html>", b"", None])
def test_a_server_that_sends_another_file(toy, server, content):
    server.files["a.en.gz"] = (
        server.files["a.en.gz"][:-1] if content is None else content
    )
    with pytest.raises(
        ValueError,
        match=r"a\.en\.gz sent another file than expected \(SHA256 hash .*\): "
        "try again later, or set TRANSFORMER_MIRROR",
    ):
        corpora.read_corpus("toy", "train")
    assert not list(toy.iterdir()), "a wrong file was kept"


def test_a_file_that_is_gone(toy, server):
    del server.files["a.de.gz"]
    with pytest.raises(
        OSError,
        match=r"could not download the corpus toy from http://.*/a\.de\.gz "
        r"\(HTTP status 404\): check the network, .*; --corpus bundled always works",
    ):
        corpora.read_corpus("toy", "train")
    assert sorted(path.name for path in toy.iterdir()) == ["a.en.gz", "licence-toy.txt"]


def test_mirror(toy, server, monkeypatch, tmp_path):
    (tmp_path / "mirror" / "toy").mkdir(parents=True)
    for name, content in server.files.items():
        (tmp_path / "mirror" / "toy" / name).write_bytes(content)
    monkeypatch.setenv("TRANSFORMER_MIRROR", str(tmp_path / "mirror"))
    assert (
        corpora.read_corpus("toy", "train") == PAIRS
        and not server.asked
        and not toy.exists()
    )
    (tmp_path / "mirror" / "toy" / "a.de.gz").write_bytes(b"<html>")
    with pytest.raises(
        ValueError,
        match=r"a\.de\.gz is damaged \(its SHA-256 is not the registered one\): delete it",
    ):
        corpora.read_corpus("toy", "train")
    (tmp_path / "mirror" / "toy" / "a.de.gz").unlink()
    assert corpora.read_corpus("toy", "train") == PAIRS and len(server.asked) == 1, (
        "what the mirror lacks is downloaded"
    )


def test_files_without_checksum_have_their_lines_counted(toy, server):
    corpora.CORPORA["toy"].splits["train"] = ("toy/a.en", "toy/a.de.gz")
    register(server, "toy/a.en", ENGLISH.encode(), sha256=None, lines=4)
    with pytest.raises(
        ValueError,
        match=r"a.en sent another file than expected \(it has 3 lines, not 4\)",
    ):
        corpora.read_corpus("toy", "train")
    register(server, "toy/a.en", ENGLISH.encode(), sha256=None, lines=3)
    assert corpora.read_corpus("toy", "train") == PAIRS


def archive_of(members):
    """A .tgz of {name: bytes}."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def packed(monkeypatch, server, downloads):
    """A corpus "packed" whose files lie in an archive: one in SGML, one of which only the first lines are wanted."""
    monkeypatch.setattr(registry, "FILES", dict(registry.FILES))
    server.files["all.tgz"] = archive_of(
        {
            "test/other.sgm": b"x\n",
            "test/news-src.en.sgm": sgml(["one", " two", "three "]),
            "test/long.de": (GERMAN + "vier\n").encode(),
        }
    )
    shared = {
        "url": f"{server.url}/all.tgz",
        "md5": hashlib.md5(server.files["all.tgz"]).hexdigest(),
    }
    registry.FILES |= {
        "packed/a.en": File(
            **shared, member="news-src.en.sgm", sha256=sha256(ENGLISH.encode())
        ),
        "packed/a.de.gz": File(
            **shared, member="long.de", sha256=sha256(GERMAN.encode()), lines=3
        ),
    }
    monkeypatch.setitem(
        corpora.CORPORA,
        "packed",
        Corpus({"test": ("packed/a.en", "packed/a.de.gz")}, "any", "us"),
    )
    return downloads / "packed"


def test_members_of_an_archive(packed, server):
    assert corpora.read_corpus("packed", "test") == PAIRS
    assert sorted(path.name for path in packed.iterdir()) == [
        "a.de.gz",
        "a.en",
        "licence-packed.txt",
    ]
    assert server.asked == [("/all.tgz", None)], (
        "one archive is fetched once, for all its files"
    )
    assert gzip.decompress((packed / "a.de.gz").read_bytes()).decode() == GERMAN


def test_a_member_packed_by_another_machine(packed, server, monkeypatch, tmp_path):
    """Its bytes differ, its text does not."""
    (tmp_path / "mirror" / "packed").mkdir(parents=True)
    (tmp_path / "mirror" / "packed" / "a.de.gz").write_bytes(
        gzip.compress(GERMAN.encode(), 1, mtime=12345)
    )
    (tmp_path / "mirror" / "packed" / "a.en").write_text(ENGLISH)
    monkeypatch.setenv("TRANSFORMER_MIRROR", str(tmp_path / "mirror"))
    assert corpora.read_corpus("packed", "test") == PAIRS and not server.asked
    (tmp_path / "mirror" / "packed" / "a.en").write_text(ENGLISH + "four\n")
    with pytest.raises(
        ValueError,
        match=r"a\.en is damaged \(the SHA-256 of its text is not the registered one\)",
    ):
        corpora.read_corpus("packed", "test")


def test_a_wrong_archive(packed, server):
    server.files["all.tgz"] += b"!"
    with pytest.raises(
        ValueError, match=r"all\.tgz sent another file than expected \(MD5 hash of"
    ):
        corpora.read_corpus("packed", "test")
    assert not list(packed.iterdir())


@pytest.mark.parametrize(
    "content, said",
    [
        (b"no archive", "it is a damaged archive"),
        (archive_of({"a": b"b"}), "does not hold news-src.en.sgm, long.de"),
        (
            archive_of({"long.de": random.Random(0).randbytes(99_999)})[:50_000],
            "it is a damaged archive",
        ),
    ],
    ids=["no archive", "other members", "cut off"],
)
def test_archives_without_checksum(packed, server, content, said):
    for file in ("packed/a.en", "packed/a.de.gz"):
        entry = registry.FILES[file]
        registry.FILES[file] = File(entry.url, entry.sha256, entry.lines, entry.member)
    server.files["all.tgz"] = content
    with pytest.raises(ValueError, match=said):
        corpora.read_corpus("packed", "test")
    assert not (packed / "a.en").exists() and not (packed / "all.tgz").exists()


CRAFT = {
    "CRAFT-1/penn/7.tree": b"( (S (NN g)) )\n",
    "CRAFT-1/more/penn/1.tree": b"( (S (NN a)) )\n( (S (NN b)) )\n",
    "CRAFT-1/articles/ids/craft-ids-train.txt": b"7\n1\n",
    "CRAFT-1/articles/ids/craft-ids-dev.txt": b"5\n",
    "CRAFT-1/articles/ids/craft-ids-test.txt": b"1\n",
    "CRAFT-1/penn/5.tree": b"( (S (NN e)) )",
    "CRAFT-1/penn/readme.txt": b"not a tree",
    "CRAFT-1/articles/txt/1.txt": b"a b",
}


@pytest.fixture
def craft(monkeypatch, server, downloads):
    """CRAFT's release on the server, of which only the trees are kept; returns the registry's entry."""
    texts = {"/".join(name.split("/")[-2:]): text for name, text in CRAFT.items()}
    del texts["txt/1.txt"], texts["penn/readme.txt"]
    texts = dict(sorted(texts.items()))
    server.files["v5.tar.gz"] = archive_of(CRAFT)
    file = "treebank_craft/craft_treebank_penn.tar.gz"
    entry = File(
        f"{server.url}/v5.tar.gz",
        member="penn/*.tree",
        sha256=sha256(b"".join(texts.values())),
    )
    monkeypatch.setattr(registry, "FILES", {file: entry})
    return downloads / file, texts


def test_a_treebank_inside_a_release(craft, server):
    path, texts = craft
    train, validation, test = (
        corpora.read_corpus("treebank_craft", split)
        for split in ("train", "validation", "test")
    )
    assert train == [
        ("g", "( (S (NN g)) )"),
        ("a", "( (S (NN a)) )"),
        ("b", "( (S (NN b)) )"),
    ]
    assert validation == [("e", "( (S (NN e)) )")] and test == train[1:]
    assert (
        len(server.asked) == 1
        and treebanks.craft_texts(path) == texts
        and list(treebanks.craft_texts(path)) == list(texts)
    )
    assert not (path.parent / "v5.tar.gz").exists()


def test_text_cut_into_words_is_put_together(toy, server):
    register(
        server,
        "toy/a.en",
        b"It &apos;s one .\nA ##AT##-##AT## B\n",
        sha256=None,
        lines=2,
    )
    register(
        server,
        "toy/a.de",
        "„ Eins “ .\nA ##AT##-##AT## B\n".encode(),
        sha256=None,
        lines=2,
    )
    corpora.CORPORA["toy"] = Corpus(
        {split: ("toy/a.en", "toy/a.de") for split in ("train", "test")},
        "any",
        "us",
        read=wmt14_pairs,
    )
    assert corpora.read_corpus("toy", "train") == [
        ("It's one.", "„Eins“."),
        ("A-B", "A-B"),
    ]
    assert corpora.read_corpus("toy", "train", reverse=True)[0] == (
        "„Eins“.",
        "It's one.",
    )
    assert corpora.read_corpus("toy", "test")[1] == (
        "A ##AT##-##AT## B",
        "A ##AT##-##AT## B",
    )
    paths = corpora.corpus_paths("toy", "train")
    assert list(wmt14_pairs(paths, "train", every=2)) == [("It's one.", "„Eins“.")]
