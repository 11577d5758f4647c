"""Compiled BPF programs (ELF, as clang writes them), read for the loader: instructions, maps, types, relocations."""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path
from typing import NamedTuple

_REL, _SYMTAB = 9, 2
_INT, _STRUCT, _DATASEC = 1, 4, 15
_TAILS = {1: (4, 0), 3: (12, 0), 14: (4, 0), 17: (4, 0)} | {4: (0, 12), 5: (0, 12), 15: (0, 12), 19: (0, 12)}
_TAILS |= {6: (0, 8), 13: (0, 8)}
"""Length in bytes of what follows a type of a kind: always, and for each of its members."""


class Program(NamedTuple):
    """One program of an object.

    Attributes:
        instructions: the program's code, and behind it that of the functions that it shares with others.
        maps: names of maps by the byte where an instruction loads a map's address.
        functions, relocations: records of .BTF.ext, those of functions as the kernel takes them.
    """

    instructions: bytes
    maps: dict[int, str]
    functions: tuple[bytes, ...]
    relocations: tuple[bytes, ...]


class Map(NamedTuple):
    """A map of an object.

    Attributes:
        type, flags: those of uapi/linux/bpf.h.
        key_bytes, value_bytes: lengths in bytes.
        entries: number of elements, if the loader asks for no other.
        key_type, value_type: numbers of types in the object's BTF.
    """

    type: int
    flags: int
    key_bytes: int
    value_bytes: int
    entries: int
    key_type: int
    value_type: int


class BpfObject(NamedTuple):
    """A compiled object.

    Attributes:
        programs: programs by the member of the struct that they implement, or `"syscall"`.
        maps: maps by name.
        btf: types as BPF_BTF_LOAD takes them.
    """

    programs: dict[str, Program]
    maps: dict[str, Map]
    btf: bytes


class _Section(NamedTuple):
    name: str
    type: int
    data: bytes
    info: int


def _read_sections(data: bytes) -> list[_Section]:
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("a BPF object is a 64-bit little-endian ELF file")
    (offset,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    text = headers[names][4]

    def name(at: int) -> str:
        return data[text + at : data.index(0, text + at)].decode()

    return [_Section(name(h[0]), h[1], data[h[4] : h[4] + h[5]], h[7]) for h in headers]


def _read_symbols(sections: list[_Section]) -> list[tuple[str, int, int]]:
    """Return name, section and value of each symbol."""
    table = next(s for s in sections if s.type == _SYMTAB).data
    text = next(s for s in sections if s.name == ".strtab").data
    symbols = []
    for at in range(0, len(table), 24):
        name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", table, at)
        symbols.append((text[name : text.index(0, name)].decode(), section, value))
    return symbols


class _Types:
    """BTF of a program."""

    def __init__(self, data: bytes):
        self.data = bytearray(data)
        _, _, _, header, at, size, text, self._text_bytes = struct.unpack_from("<HBBIIIII", data)
        self._text, end = header + text, header + at + size
        self.at = [0]
        position = header + at
        while position < end:
            self.at.append(position)
            (info,) = struct.unpack_from("<I", data, position + 4)
            always, each = _TAILS.get(info >> 24 & 31, (0, 0))
            position += 12 + always + each * (info & 0xFFFF)

    def text(self, offset: int) -> str:
        start = self._text + offset
        return self.data[start : self.data.index(0, start)].decode()

    def head(self, number: int) -> tuple[str, int, int, int]:
        """Return name, kind, number of members, size or type."""
        name, info, size = struct.unpack_from("<III", self.data, self.at[number])
        return self.text(name), info >> 24 & 31, info & 0xFFFF, size

    def members(self, number: int) -> list[tuple[int, int, int]]:
        """Return three numbers of each member: name or type, type or offset, offset or size."""
        count = self.head(number)[2]
        return [struct.unpack_from("<III", self.data, self.at[number] + 12 + 12 * i) for i in range(count)]

    def length_bytes(self, number: int) -> int:
        """Return the length of a type."""
        _, kind, _, size = self.head(number)
        return size if kind in (_INT, _STRUCT) else self.length_bytes(size)

    def pointer_target(self, number: int) -> int:
        """Return the type that a pointer points to."""
        return self.head(number)[3]

    def array_length(self, pointer: int) -> int:
        """Return the number that a member of a map stands for: the length of the array that it points to."""
        element = self.at[self.pointer_target(pointer)]
        return int(struct.unpack_from("<I", self.data, element + 20)[0])


def _read_maps(types: _Types) -> dict[str, Map]:
    maps = {}
    for number in range(1, len(types.at)):
        name, kind, _, _ = types.head(number)
        if kind != _DATASEC or name != ".maps":
            continue
        for variable, _, _ in types.members(number):
            what, _, _, of = types.head(variable)
            fields = {types.text(member): pointer for member, pointer, _ in types.members(of)}
            key, value = (types.pointer_target(fields[name]) for name in ("key", "value"))
            maps[what] = Map(
                types.array_length(fields["type"]),
                types.array_length(fields["map_flags"]) if "map_flags" in fields else 0,
                types.length_bytes(key),
                types.length_bytes(value),
                types.array_length(fields["max_entries"]),
                key,
                value,
            )
    return maps


def _fill_sections(types: _Types, sections: list[_Section], symbols: list[tuple[str, int, int]]) -> None:
    """Fill in what the compiler leaves open: lengths of sections, and offsets of their variables."""
    for number in range(1, len(types.at)):
        name, kind, _, _ = types.head(number)
        if kind != _DATASEC:
            continue
        index = next(i for i, section in enumerate(sections) if section.name == name)
        struct.pack_into("<I", types.data, types.at[number] + 8, len(sections[index].data))
        for i, (variable, _, size) in enumerate(types.members(number)):
            what = types.head(variable)[0]
            value = next(v for symbol, section, v in symbols if symbol == what and section == index)
            struct.pack_into("<III", types.data, types.at[number] + 12 + 12 * i, variable, value, size)


def _extended_records(data: bytes, types: _Types, part: int) -> dict[str, tuple[bytes, ...]]:
    """Return the records of a part of .BTF.ext by section; part: 0 functions, 1 lines, 2 relocations."""
    (header,) = struct.unpack_from("<I", data, 4)
    if header < 8 + 8 * (part + 1):
        return {}
    offset, size = struct.unpack_from("<II", data, 8 + 8 * part)
    at, end = header + offset, header + offset + size
    found: dict[str, tuple[bytes, ...]] = {}
    if size == 0:
        return found
    (length,) = struct.unpack_from("<I", data, at)
    at += 4
    while at < end:
        name, count = struct.unpack_from("<II", data, at)
        at += 8
        found[types.text(name)] = tuple(data[at + i * length : at + (i + 1) * length] for i in range(count))
        at += count * length
    return found


_CALL, _PSEUDO_FUNCTION, _INSTRUCTION_BYTES = 0x85, 4, 8
_SHARED = ".text"


def _link_program(
    index: int, sections: list[_Section], symbols: list[tuple[str, int, int]], extended: list[dict[str, tuple[bytes, ...]]]
) -> Program:
    """Return the program of a section, with all shared functions behind it if it calls any."""
    own = sections[index]
    shared = next((i for i, section in enumerate(sections) if section.name == _SHARED and section.data), None)
    tables = {table.info: table.data for table in sections if table.type == _REL}
    calls = shared is not None and any(symbols[info >> 32][1] == shared for _, info in _read_relocations(tables, index))
    starts = {index: 0, shared: len(own.data)} if calls and shared is not None else {index: 0}
    code = bytearray(b"".join(sections[i].data for i in starts))
    maps = {}
    for section, start in starts.items():
        for where, info in _read_relocations(tables, section):
            name, of, value = symbols[info >> 32]
            at = start + where
            if of not in starts:
                maps[at] = name
                continue
            (immediate,) = struct.unpack_from("<i", code, at + 4)
            if code[at] == _CALL:
                target = (starts[of] + value) // _INSTRUCTION_BYTES + immediate + 1
            else:  # the address of a function
                target = (starts[of] + value + immediate) // _INSTRUCTION_BYTES
                code[at + 1] = code[at + 1] & 0x0F | _PSEUDO_FUNCTION << 4
            struct.pack_into("<i", code, at + 4, target - at // _INSTRUCTION_BYTES - 1)
    functions, relocations = (
        tuple(
            struct.pack("<I", (struct.unpack_from("<I", record)[0] + start) // unit) + record[4:]
            for section, start in starts.items()
            for record in records.get(sections[section].name, ())
        )
        for records, unit in zip(extended, (_INSTRUCTION_BYTES, 1), strict=True)
    )
    return Program(bytes(code), maps, functions, relocations)


def _read_relocations(tables: dict[int, bytes], section: int) -> list[tuple[int, int]]:
    """Return offset and information of each relocation of a section."""
    return list(struct.iter_unpack("<QQ", tables.get(section, b"")))


def parse_object(data: bytes) -> BpfObject:
    """Parse a compiled object.

    Raises:
        ValueError: the data is no such object.
    """
    sections = _read_sections(data)
    symbols = _read_symbols(sections)
    types = _Types(next(s for s in sections if s.name == ".BTF").data)
    _fill_sections(types, sections, symbols)
    extended = next(s for s in sections if s.name == ".BTF.ext").data
    records = [_extended_records(extended, types, part) for part in (0, 2)]
    programs = {
        section.name.rpartition("/")[2]: _link_program(index, sections, symbols, records)
        for index, section in enumerate(sections)
        if section.name == "syscall" or section.name.startswith("struct_ops/")
    }
    return BpfObject(programs, _read_maps(types), bytes(types.data))


@cache
def load_object(name: str) -> BpfObject:
    """Load an object of this package: `"window"`, `"receiver_driven"`, `"policy"`, `"sender"`."""
    return parse_object(Path(__file__).with_name(f"{name}.bpf.o").read_bytes())
