#!/usr/bin/env python3
"""Writes the collation weight tables of signals/src/collation: uca900.bin and general.bin.

Usage: gen_collation.py ALLKEYS OUT_DIR
  ALLKEYS  allkeys-9.0.0.txt, the Default Unicode Collation Element Table of Unicode 9.0.0. The Python wheel
           `pyuca` 1.2 carries it (pip download pyuca==1.2 --no-deps; unzip).
  OUT_DIR  signals/src/collation

The input is (c) 1991-2016 Unicode, Inc., distributed under the Unicode Terms of Use
(https://www.unicode.org/copyright.html), which permit use and redistribution of the data files and of data
derived from them when this notice is kept. uca900.bin is such derived data. general.bin is derived from the
character database in Python's `unicodedata` (Unicode 3.2 view), under the same terms.

Format of both files, little-endian u16 words:
  word 0            number of pages P
  words 1..=4352    page number of each block of 256 code points (0xFFFF: no page)
  P * 256 words     one word per code point
  rest              expansions (uca900 only): a length word, then that many weights
A code point's word is its only primary weight (0: ignorable), or 0x8000 + k for the expansion whose length
word is at index k of the rest, or 0xFFFF for "not in the table" (uca900: implicit weight; general: itself).
Contractions are left out: the collation weighs one character at a time.
"""
import re
import struct
import sys
import unicodedata

BLOCKS = 0x110000 // 256
ABSENT = 0xFFFF


def write(path, words, rest):
    """Packs a map of code point -> word into pages, sharing none."""
    index, pages = [ABSENT] * BLOCKS, []
    for block in sorted({cp >> 8 for cp in words}):
        index[block] = len(pages)
        pages.append([words.get(block * 256 + low, ABSENT) for low in range(256)])
    flat = [len(pages)] + index + [w for page in pages for w in page] + rest
    with open(path, "wb") as out:
        out.write(struct.pack("<%dH" % len(flat), *flat))
    print(path, len(pages), "pages,", len(rest), "expansion words,", 2 * len(flat), "bytes")


def uca900(allkeys):
    words, rest, seen = {}, [], {}
    line_form = re.compile(r"^([0-9A-F]+) *; *((?:\[[^\]]*\])+)")
    for line in open(allkeys, encoding="utf-8"):
        match = line_form.match(line)
        if not match:
            continue  # comments, directives and contractions
        weights = [int(p, 16) for p in re.findall(r"\[[.*]([0-9A-F]{4})", match.group(2))]
        weights = tuple(w for w in weights if w)
        code_point = int(match.group(1), 16)
        if len(weights) == 0:
            words[code_point] = 0
        elif len(weights) == 1 and weights[0] < 0x8000:
            words[code_point] = weights[0]
        else:
            if weights not in seen:
                seen[weights] = len(rest)
                rest.extend([len(weights)] + list(weights))
            assert seen[weights] < 0x7FFF
            words[code_point] = 0x8000 + seen[weights]
    return words, rest


# Characters that Unicode 3.2 has and the table of utf8mb4_general_ci does not fold.
YOUNG = {0x19E, 0x3D9, 0x3F5, 0x48B, 0x4C6, 0x4CA, 0x4CE, 0x4CF} | set(range(0x500, 0x510))
# Characters that fold against the rule below.
SPECIAL = {0xDF: 0x53, 0x3F2: 0x3A3, 0x419: 0x419, 0x439: 0x419}


def general():
    """Base letter of the canonical decomposition (Latin, Greek, Cyrillic), then simple upper case."""
    old, words = unicodedata.ucd_3_2_0, {}
    for code_point in range(0x10000):
        char = chr(code_point)
        if code_point in SPECIAL:
            words[code_point] = SPECIAL[code_point]
            continue
        if code_point in YOUNG or 0xD800 <= code_point < 0xE000 or old.category(char) == "Cn":
            continue
        base = char
        while code_point < 0x530 or 0x1E00 <= code_point < 0x2000:
            parts = old.decomposition(base).split()
            if len(parts) < 2 or parts[0].startswith("<") or not chr(int(parts[0], 16)).isalpha():
                break
            base = chr(int(parts[0], 16))
        upper = base.upper()
        if len(upper) == 1 and old.category(upper) != "Cn":
            base = upper
        if base != char:
            words[code_point] = ord(base)
    return words


if __name__ == "__main__":
    allkeys, out_dir = sys.argv[1:]
    write(out_dir + "/uca900.bin", *uca900(allkeys))
    write(out_dir + "/general.bin", general(), [])
