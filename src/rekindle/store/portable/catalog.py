"""What is where in a portable file."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from .file import PortableFile, damaged
from .outgoing import HEAD, INDEX, NOTE, PIECE
from .shape import check_end, check_entry


class Catalog:
    """A portable file that has been read once, whole: its checkpoints, and where its pieces and indexes are."""

    def __init__(self, file: PortableFile) -> None:
        self._file = file
        self._firsts: dict[str, list[int]] = {PIECE: [], INDEX: [], HEAD: [], NOTE: []}
        self.seqs: list[int] = []
        """Of the checkpoints, in the order of the file: every parent before its children."""
        self.ids: dict[int, str] = {}
        self.parents: dict[int, int] = {}
        self._seen: set[str] = set()
        counts = dict.fromkeys(self._firsts, 0)
        for _, entries in file.scan():
            for kind, first in self._firsts.items():
                first.append(counts[kind])
            for entry in entries:
                check_entry(entry)
                if entry[0] == HEAD:
                    self._note(entry[1])
                counts[entry[0]] += 1
        self.notes = counts[NOTE]
        """How many entries of the journal there are."""
        if file.end.get("checkpoints") != len(self.seqs):
            raise damaged("it does not hold as many checkpoints as it says")
        check_end(file.end)
        self.header, self.end = file.header, file.end

    def _note(self, fields: dict[str, Any]) -> None:
        seq, parent, name = fields["seq"], fields["parent"], fields["id"]
        if (parent and parent not in self.ids) or (self.seqs and seq <= self.seqs[-1]) or name in self._seen:
            raise damaged("its checkpoints are not in order")
        self.seqs.append(seq)
        self._seen.add(name)
        self.ids[seq], self.parents[seq] = name, parent

    def entry(self, kind: str, number: int) -> Any:
        """The piece, index or checkpoint of that number."""
        firsts = self._firsts[kind]
        block = bisect_right(firsts, number) - 1
        at = number - firsts[block]
        for entry in self._file.block(block) if block >= 0 else ():
            if entry[0] == kind:
                if at == 0:
                    return entry
                at -= 1
        raise damaged("it names a part that is not in it")
