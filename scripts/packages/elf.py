"""What a Linux program needs: its processor, the oldest glibc that it runs on, and its shared libraries.

Separate because every package states them, and a wrong statement shows only on the machine of a user. Reads the file and
runs nothing, so a program may be for another processor. Source of the layout: elf(5).
"""
import re
import struct
from typing import NamedTuple

PROCESSORS = {62: "x86_64", 183: "aarch64"}  # e_machine
DYNAMIC, VERSIONS_NEEDED = 6, 0x6FFFFFFE  # types of sections
LIBRARY_NEEDED = 1  # a tag of the section DYNAMIC
# The libraries that PEP 600 lets a program expect, as far as a Rust program links them.
EXPECTED = re.compile(r"lib(c|m|dl|rt|pthread|util)\.so\.\d|libgcc_s\.so\.1|ld-linux-(x86-64|aarch64)\.so\.\d")


class Refused(Exception):
    """Why a file cannot be packaged."""


class Section(NamedTuple):
    type: int
    offset: int
    size: int
    link: int


class Program(NamedTuple):
    processor: str
    glibc: tuple  # (2, 28)


def read(path):
    """The program in a file. Raises Refused for a file that is none, or that needs more than glibc."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:6] != b"\x7fELF\x02\x01":
        raise Refused(f"{path} is no program for 64-bit Linux")
    machine = struct.unpack_from("<H", data, 18)[0]
    if machine not in PROCESSORS:
        raise Refused(f"{path} is for the ELF machine {machine}; packages exist for {' and '.join(PROCESSORS.values())}")
    sections = list(_sections(data))
    for library in _libraries(data, sections):
        if not EXPECTED.fullmatch(library):
            raise Refused(f"{path} needs {library}, which not every Linux has; link it into the program")
    return Program(PROCESSORS[machine], _glibc(path, _versions(data, sections)))


def _sections(data):
    start, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    for index in range(count):
        kind, offset, length, link = struct.unpack_from("<4xI16xQQI", data, start + index * size)
        yield Section(kind, offset, length, link)


def _text(data, strings, index):
    start = strings.offset + index
    return data[start:data.index(b"\0", start)].decode()


def _libraries(data, sections):
    for section in (section for section in sections if section.type == DYNAMIC):
        for tag, value in struct.iter_unpack("<QQ", data[section.offset:section.offset + section.size]):
            if tag == LIBRARY_NEEDED:
                yield _text(data, sections[section.link], value)


def _versions(data, sections):
    """The versions of symbols that the program needs, such as GLIBC_2.28: two linked lists, one within the other."""
    for section in (section for section in sections if section.type == VERSIONS_NEEDED):
        need = section.offset
        while True:
            first, next_need = struct.unpack_from("<8xII", data, need)
            version = need + first
            while True:
                name, next_version = struct.unpack_from("<8xII", data, version)
                yield _text(data, sections[section.link], name)
                if not next_version:
                    break
                version += next_version
            if not next_need:
                break
            need += next_need


def _glibc(path, versions):
    newest = (2, 0)
    for version in versions:
        if version.startswith("GLIBC_"):
            number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version)
            if not number:
                raise Refused(f"{path} needs {version}, which is part of no numbered glibc")
            newest = max(newest, (int(number[1]), int(number[2])))
    return newest
