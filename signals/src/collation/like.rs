//! LIKE: matching a string against a pattern of `%` and `_` under a collation.
//!
//! Role: a pattern is compiled once per statement and matched per row, on the SQL node and in filters pushed
//! to data nodes. Characters are compared one to one, so trailing spaces matter even under PAD SPACE and an
//! expanding character never matches two others, as in MySQL.
//!
//! Matching backtracks only to the last `%`, which is enough: time is at most the product of both lengths and
//! there is no recursion.

use super::{Charset, Collation};

/// One element of a compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// `%`: any run of characters.
    Many,
    /// `_`: any one character.
    One,
    /// A character that must match; its bytes are `start..end` of the literals.
    Literal { start: u32, end: u32 },
}

/// A pattern ready for matching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LikePattern {
    collation: Collation,
    pieces: Vec<Piece>,
    literals: Vec<u8>,
}

impl LikePattern {
    /// Compiles a pattern encoded in the collation's character set. `escape` is the escape character (`\` by
    /// default; `None` for `ESCAPE ''`). An escape at the very end stands for itself.
    pub fn new(collation: Collation, pattern: &[u8], escape: Option<char>) -> LikePattern {
        let charset = collation.charset();
        let mut compiled = LikePattern { collation, pieces: Vec::new(), literals: Vec::new() };
        let mut buffer = [0; 4];
        let escape: &[u8] = escape.map_or(&[], |c| encode(charset, c, &mut buffer));
        let mut rest = pattern;
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(charset.char_len(rest));
            rest = tail;
            if head == escape && !rest.is_empty() {
                let (escaped, tail) = rest.split_at(charset.char_len(rest));
                rest = tail;
                compiled.push_literal(escaped);
            } else if head == b"%" {
                if compiled.pieces.last() != Some(&Piece::Many) {
                    compiled.pieces.push(Piece::Many);
                }
            } else if head == b"_" {
                compiled.pieces.push(Piece::One);
            } else {
                compiled.push_literal(head);
            }
        }
        compiled
    }

    fn push_literal(&mut self, bytes: &[u8]) {
        let start = self.literals.len() as u32;
        self.literals.extend_from_slice(bytes);
        self.pieces.push(Piece::Literal { start, end: self.literals.len() as u32 });
    }

    /// Whether the whole string matches.
    pub fn matches(&self, value: &[u8]) -> bool {
        let charset = self.collation.charset();
        let (mut at, mut piece) = (0, 0);
        // Where to go on when a try fails: the piece after the last `%`, and the string one character later.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match self.pieces.get(piece) {
                None if at == value.len() => return true,
                Some(Piece::Many) => {
                    piece += 1;
                    retry = Some((piece, at));
                    continue;
                }
                Some(element) if at < value.len() => {
                    let len = charset.char_len(&value[at..]);
                    if self.fits(element, &value[at..at + len]) {
                        at += len;
                        piece += 1;
                        continue;
                    }
                }
                None | Some(_) => {}
            }
            match retry {
                Some((back, from)) if from < value.len() => {
                    let from = from + charset.char_len(&value[from..]);
                    retry = Some((back, from));
                    (piece, at) = (back, from);
                }
                _ => return false,
            }
        }
    }

    fn fits(&self, element: &Piece, character: &[u8]) -> bool {
        match *element {
            Piece::Many => false,
            Piece::One => true,
            Piece::Literal { start, end } => {
                let literal = &self.literals[start as usize..end as usize];
                self.collation.characters_equal(literal, character)
            }
        }
    }

    /// The literal start of the pattern, and whether anything follows it: a range scan on an index whose
    /// collation compares bytes can start there.
    pub fn prefix(&self) -> (&[u8], bool) {
        let mut end = 0;
        for piece in &self.pieces {
            match *piece {
                Piece::Literal { end: literal_end, .. } => end = literal_end as usize,
                Piece::Many | Piece::One => return (&self.literals[..end], true),
            }
        }
        (&self.literals, false)
    }
}

fn encode(charset: Charset, c: char, buffer: &mut [u8; 4]) -> &[u8] {
    if charset.is_multi_byte() {
        return c.encode_utf8(buffer).as_bytes();
    }
    match u8::try_from(u32::from(c)) {
        Ok(byte) => {
            buffer[0] = byte;
            &buffer[..1]
        }
        Err(_) => &[],
    }
}
