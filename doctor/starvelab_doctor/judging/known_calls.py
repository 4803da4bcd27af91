"""Calls below a line that are known to starve a training, and what to do instead.

A row has a name, a pattern of the call's name as the sampler gives it, and what the line does there, with the
cure. The first row that fits counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class KnownCall:
    """What a line does when it calls something, and the cure."""

    name: str
    pattern: str
    text: str
    removable: bool = True  # the cure leaves the work out of each epoch, and does not only make it faster


LOCK, WAIT = "lock", "sleep"
KNOWN = (
    KnownCall(
        "seek", r"^(gzip|bz2|lzma|_compression)\..*(seek|rewind)",
        "a compressed file is read from its beginning at each seek. Read it in order, or store the items "
        "uncompressed, or compress each item on its own.",
    ),
    KnownCall(
        "reopen",
        r"^(zipfile|tarfile)\..*(__init__|open|_RealGetContents|next|getmember)|ZipFile$|tarfile\.open"
        r"|^files\.File\.__init__|h5py\.File|lmdb\.open|(sqlite3|dbapi2)\.connect|memmap|ParquetFile|_npyio.*load"
        r"|^np\.load|^gzip\.open|^serialization\.load|torch\.load",
        "a file is opened and its index read for each item. Open it once in each worker, at the first item, "
        "and keep it in the dataset.",
    ),
    KnownCall(
        "unpack", r"NpzFile",
        "a whole array of an npz file is unpacked at each access. Unpack the arrays once in each worker, or "
        "store each as an npy file that is mapped.",
    ),
    KnownCall(
        "query", r"^(sqlite3|dbapi2|psycopg\w*|sqlalchemy)\.|\.(execute|fetch(one|many|all))$",
        "a database is queried for each item. Give the key an index, query once for all items of a batch, or "
        "read the table into an array.",
    ),
    KnownCall(
        LOCK, r"^synchronize\.|SemLock|[lL](ock|OCK)\.(acquire|__enter__)|\bfcntl\.|filelock",
        "workers wait for each other at a lock. Let each worker open its own file or connection, and hold "
        "the lock as shortly as possible: more workers wait longer.",
    ),
    KnownCall(
        "search", r"\bnot in\b|\bin\b|\.(index|count)$",
        "a list is searched from its beginning. Look it up in a set or a dict that is made once.",
    ),
    KnownCall(
        "deep copy", r"^copy\.",
        "objects are copied with all that they hold. Copy only what the item changes, or hold the items in "
        "arrays.",
    ),
    KnownCall(
        "log", r"^(logging|loguru|tqdm|warnings)\b|\bprint$|\.(flush|fsync)$|^csv\.",
        "a line is written for each item. Write one line for many items, or none in the workers.",
    ),
    KnownCall(
        "process", r"^subprocess\b|\bPopen\b|os\.(system|popen|fork|spawn)|^popen_\w+\.|^process\.",
        "a process is started for each item. Use a library in the worker's own process, or prepare the items "
        "with it before the training.",
    ),
    KnownCall(
        "collect", r"^gc\.collect|empty_cache",
        "the garbage collector goes over all objects. Leave that to Python.",
    ),
    KnownCall(
        "data frame", r"^(frame|series|indexing|generic|indexers)\.|\.(iloc|loc|iat|at)\b|pandas|polars",
        "a data frame is read row by row. Turn its columns into arrays once, and index these.",
    ),
    KnownCall(
        "collate", r"^torch\.stack$",
        "the items of a batch are copied into new memory. Let PyTorch's own default_collate stack them, "
        "which fills memory that the loop shares, or let each worker fill a batch that it keeps.",
        removable=False,
    ),
    KnownCall(
        WAIT, r"\btime\.sleep$|\.wait$",
        "the code waits. Shorten the wait, or let more items wait at once, with more workers or threads.",
        removable=False,
    ),
    KnownCall(
        "numbers", r"^(torch|np|numpy)\.(tensor|as_tensor|array|asarray|\w*Tensor)$|\.(append|extend)$",
        "tensors or lists are made of Python's numbers, one after the other. Keep the items as arrays, and "
        "fill one array for all items of a batch.",
    ),
    KnownCall(
        "joined", r"^collate\.",
        "the items of a batch are joined, each number and each array of an item on its own. Let an item "
        "hold a few tensors, no nested lists, and no wider numbers than the model needs.",
        removable=False,
    ),
    KnownCall(
        "parse", r"^(json|decoder|yaml|csv|pickle|xml|ElementTree|ast|msgpack|orjson)\b|literal_eval",
        "text or objects are parsed for each item. Parse them once, before the training, and store arrays.",
    ),
    KnownCall(
        "tokenize", r"(?i)token|^re\.|\.(sub|split|findall|finditer|group|encode)$",
        "text is split into tokens for each item. Tokenize once, before the training, or all items of a "
        "batch in one call.",
    ),
    KnownCall(
        "network", r"^(socket|ssl|urllib3?|client|http|requests|adapters|botocore|s3fs|fsspec|aiohttp)\b",
        "the code waits for the network. Send more requests at once, with more workers or threads, or read "
        "ahead into a cache.",
        removable=False,
    ),
    KnownCall(
        "resize",
        r"^(Image\.Image|ImageOps|cv2)\.(resize|thumbnail|reduce|fit|contain|pad|rotate|transform|warp\w*)$",
        "the item is resized or transformed. Store it near the size that the training needs, or transform "
        "whole batches at once, also on a GPU.",
        removable=False,
    ),
    KnownCall(
        "decode", r"^(Image\w*|\w+ImagePlugin|cv2|av|decord|soundfile|librosa|torchaudio|imageio)\.|decode",
        "the item is decoded. Store it at the size that the training needs, or let a faster decoder do it.",
        removable=False,
    ),
    KnownCall(
        "decompress",
        r"^(gzip|bz2|lzma|zlib|zipfile|tarfile|_compression|blosc|zstd\w*|lz4)\b(?!\.compress)|decompress",
        "data is decompressed. Store it uncompressed, or in a format that is faster to decompress, such "
        "as zstd or LZ4.",
        removable=False,
    ),
    KnownCall(
        "read", r"\b(open|read|readline|readinto|seek|pread|fromfile|load)$",
        "small pieces are read one at a time. Read what belongs together at once, or let more workers read "
        "side by side.",
        removable=False,
    ),
)  # fmt: skip


def known_call(call: str) -> KnownCall | None:
    """Return what is known of a call; None where nothing is."""
    return next((row for row in KNOWN if re.search(row.pattern, call)), None) if call else None
