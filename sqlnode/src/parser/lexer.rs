//! The lexer: bytes to tokens, one at a time, on demand.
//!
//! It is a small `Copy` value, so the parser looks ahead by copying it and goes back by putting the copy
//! back. Tokens are spans; text is decoded only when the parser wants it ([`unescape`], [`Lexer::text`]).
//!
//! What is unusual in MySQL's lexical rules, and handled here: a name may begin with a digit; after a dot
//! every word is a name; `--` is a comment only before a blank; `/*! .. */` and `/*!80000 .. */` are code;
//! `"` quotes a string, or a name under ANSI_QUOTES; `x'..'`, `b'..'`, `n'..'` are literals when the quote
//! follows at once.
//!
//! It never fails: what cannot be a token is [`T::Bad`], and the parser turns that into a syntax error at its
//! place.

use super::keyword::Kw;
use crate::value::SqlMode;

/// Kinds of token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[rustfmt::skip]
pub(super) enum T {
    /// End of the text.
    Eof,
    /// Not a token: stray byte, unterminated string or comment.
    Bad,
    /// Unquoted word; `kw` tells which keyword it is.
    Word,
    /// Quoted name.
    Quoted,
    /// String with its quotes.
    Str,
    /// `N'..'`.
    NStr,
    /// Digits only.
    Int,
    /// Digits with a point.
    Dec,
    /// A number with an exponent.
    Float,
    /// `x'..'` or `0x..`.
    Hex,
    /// `b'..'` or `0b..`.
    Bit,
    /// `?`.
    Param,
    At, AtAt, Dot, Comma, Semi, LParen, RParen, LBrace, RBrace, Colon, Assign,
    Eq, NullSafeEq, Ne, Lt, Le, Gt, Ge, Shl, Shr, Pipe, PipePipe, Amp, AmpAmp,
    Plus, Minus, Star, Slash, Percent, Caret, Tilde, Bang, Arrow, Arrow2,
}

/// A token: what it is and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    /// Kind.
    pub(super) t: T,
    /// Which keyword; `NONE` for anything but an unquoted word.
    pub(super) kw: Kw,
    /// First byte.
    pub(super) start: u32,
    /// One past the last byte.
    pub(super) end: u32,
}

/// SQL modes that change how text is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParseMode {
    /// `"` quotes names, not strings.
    pub ansi_quotes: bool,
    /// `||` concatenates instead of meaning OR.
    pub pipes_as_concat: bool,
    /// A backslash in a string is an ordinary character.
    pub no_backslash_escapes: bool,
    /// NOT binds as tightly as `!`.
    pub high_not_precedence: bool,
}

impl From<SqlMode> for ParseMode {
    fn from(mode: SqlMode) -> ParseMode {
        ParseMode {
            ansi_quotes: mode.contains(SqlMode::ANSI_QUOTES),
            pipes_as_concat: mode.contains(SqlMode::PIPES_AS_CONCAT),
            no_backslash_escapes: mode.contains(SqlMode::NO_BACKSLASH_ESCAPES),
            high_not_precedence: mode.contains(SqlMode::HIGH_NOT_PRECEDENCE),
        }
    }
}

/// The version that `/*!nnnnn` is compared with.
const VERSION: u64 = 80_400;

/// Where the lexer stands.
#[derive(Clone, Copy)]
pub(super) struct Lexer<'a> {
    src: &'a [u8],
    pos: usize,
    mode: ParseMode,
    /// Inside `/*! .. */`, whose end is still to come.
    in_code_comment: bool,
    /// The last token was a dot, so a word is a name.
    after_dot: bool,
}

const W: u8 = 1; // part of a word
const D: u8 = 2; // digit
const S: u8 = 4; // blank
const X: u8 = 8; // hex digit

static CLASS: [u8; 256] = {
    let mut t = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let c = i as u8;
        t[i] = match c {
            b'0'..=b'9' => W | D | X,
            b'a'..=b'f' | b'A'..=b'F' => W | X,
            b'g'..=b'z' | b'G'..=b'Z' | b'_' | b'$' | 0x80..=0xff => W,
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => S,
            _ => 0,
        };
        i += 1;
    }
    t
};

fn is(c: u8, class: u8) -> bool {
    CLASS[usize::from(c)] & class != 0
}

impl<'a> Lexer<'a> {
    /// A lexer at the beginning of `src`, which must be shorter than 4 GiB.
    pub(super) fn new(src: &'a [u8], mode: ParseMode) -> Lexer<'a> {
        Lexer { src, pos: 0, mode, in_code_comment: false, after_dot: false }
    }

    /// The byte at `pos + ahead`, 0 past the end (a real NUL is never a valid token either).
    fn at(&self, ahead: usize) -> u8 {
        self.src.get(self.pos + ahead).copied().unwrap_or(0)
    }

    /// The bytes of a token.
    pub(super) fn text(&self, token: Token) -> &'a [u8] {
        self.src.get(token.start as usize..token.end as usize).unwrap_or(&[])
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Token {
        let closed = self.skip_blanks();
        let start = self.pos;
        let mut kw = Kw::NONE;
        let after_dot = std::mem::take(&mut self.after_dot);
        let t = if !closed {
            self.pos = self.src.len();
            T::Bad
        } else if start >= self.src.len() {
            T::Eof
        } else {
            let c = self.src[start];
            if is(c, W) {
                if after_dot {
                    self.take_while(W);
                    T::Word
                } else {
                    self.word(c, &mut kw)
                }
            } else {
                self.symbol(c)
            }
        };
        Token { t, kw, start: start as u32, end: self.pos as u32 }
    }

    fn take_while(&mut self, class: u8) {
        while self.pos < self.src.len() && is(self.src[self.pos], class) {
            self.pos += 1;
        }
    }

    /// Skips blanks and comments. False if a comment does not end.
    fn skip_blanks(&mut self) -> bool {
        loop {
            self.take_while(S);
            match self.at(0) {
                b'#' => self.skip_line(),
                b'-' if self.at(1) == b'-' && (self.at(2) <= b' ' || self.at(2) == 0x7f) => self.skip_line(),
                b'/' if self.at(1) == b'*' => {
                    if !self.open_comment() {
                        return false;
                    }
                }
                b'*' if self.in_code_comment && self.at(1) == b'/' => {
                    self.in_code_comment = false;
                    self.pos += 2;
                }
                _ => return !(self.in_code_comment && self.pos >= self.src.len()),
            }
        }
    }

    fn skip_line(&mut self) {
        while self.pos < self.src.len() && self.src[self.pos] != b'\n' {
            self.pos += 1;
        }
    }

    /// At `/*`: skips a comment, or enters one that is code. False if it does not end.
    fn open_comment(&mut self) -> bool {
        if self.at(2) == b'!' && !self.in_code_comment {
            let digits = (0..6).take_while(|&i| self.at(3 + i).is_ascii_digit()).count();
            // Five digits are a version, six too (8.0 and later); fewer are code.
            let digits = if digits < 5 { 0 } else { digits };
            let version = (0..digits).fold(0, |v, i| v * 10 + u64::from(self.at(3 + i) - b'0'));
            if version <= VERSION {
                self.pos += 3 + digits;
                self.in_code_comment = true;
                return true;
            }
        }
        let start = self.pos;
        self.pos += 2;
        while self.pos < self.src.len() {
            if self.src[self.pos] == b'*' && self.at(1) == b'/' {
                self.pos += 2;
                return true;
            }
            self.pos += 1;
        }
        // The error is where the comment begins.
        self.pos = start;
        false
    }

    /// A token that begins with a letter or digit.
    fn word(&mut self, c: u8, kw: &mut Kw) -> T {
        if is(c, D) {
            return self.number();
        }
        if self.at(1) == b'\'' {
            match c {
                b'x' | b'X' => return self.radix_string(X, T::Hex),
                b'b' | b'B' => return self.radix_string(D, T::Bit),
                b'n' | b'N' => {
                    self.pos += 1;
                    return if self.quoted(b'\'', !self.mode.no_backslash_escapes) {
                        T::NStr
                    } else {
                        T::Bad
                    };
                }
                _ => {}
            }
        }
        let start = self.pos;
        self.take_while(W);
        *kw = Kw::lookup(&self.src[start..self.pos]);
        T::Word
    }

    /// `x'..'` and `b'..'`.
    fn radix_string(&mut self, class: u8, t: T) -> T {
        self.pos += 2;
        let start = self.pos;
        self.take_while(class);
        let digits = &self.src[start..self.pos];
        if self.at(0) != b'\'' {
            return T::Bad;
        }
        self.pos += 1;
        let valid = match t {
            T::Hex => digits.len().is_multiple_of(2),
            _ => digits.iter().all(|&d| d == b'0' || d == b'1'),
        };
        if valid { t } else { T::Bad }
    }

    /// A token that begins with a digit: a number, `0x..`, `0b..`, or a name like `1st`.
    fn number(&mut self) -> T {
        let start = self.pos;
        if self.at(0) == b'0' && matches!(self.at(1), b'x' | b'b') {
            let hex = self.at(1) == b'x';
            let valid = |c: u8| if hex { is(c, X) } else { c == b'0' || c == b'1' };
            self.take_while(W);
            let digits = &self.src[start + 2..self.pos];
            if !digits.is_empty() && digits.iter().all(|&d| valid(d)) {
                return if hex { T::Hex } else { T::Bit };
            }
            return T::Word;
        }
        self.take_while(D);
        match self.at(0) {
            b'.' => {
                self.pos += 1;
                self.take_while(D);
                if self.exponent() { T::Float } else { T::Dec }
            }
            b'e' | b'E' if self.exponent() => T::Float,
            c if is(c, W) => {
                self.take_while(W);
                T::Word
            }
            _ => T::Int,
        }
    }

    /// Takes `e12`, `E+3`, `e-3` if it is there; after `1e2x` there is no exponent but a name.
    fn exponent(&mut self) -> bool {
        if !matches!(self.at(0), b'e' | b'E') {
            return false;
        }
        let sign = usize::from(matches!(self.at(1), b'+' | b'-'));
        if !self.at(1 + sign).is_ascii_digit() {
            return false;
        }
        let before = self.pos;
        self.pos += 1 + sign;
        self.take_while(D);
        if sign == 0 && is(self.at(0), W) {
            self.pos = before;
            return false;
        }
        true
    }

    /// Takes a quoted text including both quotes; false if it does not end.
    fn quoted(&mut self, quote: u8, escapes: bool) -> bool {
        self.pos += 1;
        while self.pos < self.src.len() {
            let c = self.src[self.pos];
            self.pos += 1;
            if c == quote {
                if self.at(0) != quote || self.pos >= self.src.len() {
                    return true;
                }
                self.pos += 1;
            } else if c == b'\\' && escapes {
                self.pos += 1;
            }
        }
        self.pos = self.src.len();
        false
    }

    /// A token that begins with anything else.
    fn symbol(&mut self, c: u8) -> T {
        let escapes = !self.mode.no_backslash_escapes;
        match c {
            b'\'' => return if self.quoted(c, escapes) { T::Str } else { T::Bad },
            b'"' if self.mode.ansi_quotes => return if self.quoted(c, false) { T::Quoted } else { T::Bad },
            b'"' => return if self.quoted(c, escapes) { T::Str } else { T::Bad },
            b'`' => return if self.quoted(c, false) { T::Quoted } else { T::Bad },
            b'.' => {
                let follows_name =
                    self.pos > 0 && (is(self.src[self.pos - 1], W) || self.src[self.pos - 1] == b'`');
                if self.at(1).is_ascii_digit() && !follows_name {
                    self.pos += 1;
                    self.take_while(D);
                    return if self.exponent() { T::Float } else { T::Dec };
                }
                self.after_dot = true;
            }
            _ => {}
        }
        let (t, len) = self.operator(c);
        self.pos += len;
        t
    }

    fn operator(&self, c: u8) -> (T, usize) {
        match (c, self.at(1), self.at(2)) {
            (b'<', b'=', b'>') => (T::NullSafeEq, 3),
            (b'<', b'=', _) => (T::Le, 2),
            (b'<', b'>', _) | (b'!', b'=', _) => (T::Ne, 2),
            (b'<', b'<', _) => (T::Shl, 2),
            (b'<', ..) => (T::Lt, 1),
            (b'>', b'=', _) => (T::Ge, 2),
            (b'>', b'>', _) => (T::Shr, 2),
            (b'>', ..) => (T::Gt, 1),
            (b'|', b'|', _) => (T::PipePipe, 2),
            (b'|', ..) => (T::Pipe, 1),
            (b'&', b'&', _) => (T::AmpAmp, 2),
            (b'&', ..) => (T::Amp, 1),
            (b'-', b'>', b'>') => (T::Arrow2, 3),
            (b'-', b'>', _) => (T::Arrow, 2),
            (b'-', ..) => (T::Minus, 1),
            (b':', b'=', _) => (T::Assign, 2),
            (b':', ..) => (T::Colon, 1),
            (b'@', b'@', _) => (T::AtAt, 2),
            (b'@', ..) => (T::At, 1),
            (b'=', ..) => (T::Eq, 1),
            (b'!', ..) => (T::Bang, 1),
            (b'+', ..) => (T::Plus, 1),
            (b'*', ..) => (T::Star, 1),
            (b'/', ..) => (T::Slash, 1),
            (b'%', ..) => (T::Percent, 1),
            (b'^', ..) => (T::Caret, 1),
            (b'~', ..) => (T::Tilde, 1),
            (b'(', ..) => (T::LParen, 1),
            (b')', ..) => (T::RParen, 1),
            (b'{', ..) => (T::LBrace, 1),
            (b'}', ..) => (T::RBrace, 1),
            (b',', ..) => (T::Comma, 1),
            (b';', ..) => (T::Semi, 1),
            (b'.', ..) => (T::Dot, 1),
            (b'?', ..) => (T::Param, 1),
            _ => (T::Bad, 1),
        }
    }

    /// Just after `@` or `@@`: takes the name of a variable. Names of user variables hold dots and `$` as
    /// well, and may be quoted in any of the three ways; `@` alone names the empty variable.
    pub(super) fn variable(&mut self) -> Token {
        let start = self.pos as u32;
        let t = match self.at(0) {
            c @ (b'`' | b'"' | b'\'') => {
                let escapes = c != b'`' && !self.mode.no_backslash_escapes;
                match (self.quoted(c, escapes), c) {
                    (false, _) => T::Bad,
                    (true, b'`') => T::Quoted,
                    (true, _) => T::Str,
                }
            }
            _ => {
                while is(self.at(0), W) || self.at(0) == b'.' {
                    self.pos += 1;
                }
                T::Word
            }
        };
        Token { t, kw: Kw::NONE, start, end: self.pos as u32 }
    }

    /// Just after `@` of `user@host`: takes an unquoted host name, or nothing if a quote follows.
    pub(super) fn host(&mut self) -> Token {
        let start = self.pos as u32;
        while is(self.at(0), W) || matches!(self.at(0), b'.' | b'-') {
            self.pos += 1;
        }
        Token { t: T::Word, kw: Kw::NONE, start, end: self.pos as u32 }
    }
}

/// The value of a string token: quotes taken off, doubled quotes made single, escapes resolved.
pub(super) fn unescape(token: &[u8], mode: ParseMode) -> Vec<u8> {
    let token = if matches!(token.first(), Some(b'n' | b'N')) { &token[1..] } else { token };
    let Some((&quote, rest)) = token.split_first() else { return Vec::new() };
    let body = rest.strip_suffix(&[quote]).unwrap_or(rest);
    let escapes = !mode.no_backslash_escapes && quote != b'`' && !(quote == b'"' && mode.ansi_quotes);
    if !body.iter().any(|&c| c == quote || (c == b'\\' && escapes)) {
        return body.to_vec();
    }
    let mut out = Vec::with_capacity(body.len());
    let mut bytes = body.iter().copied();
    while let Some(c) = bytes.next() {
        if c == quote {
            bytes.next();
            out.push(c);
        } else if c == b'\\' && escapes {
            match bytes.next() {
                Some(b'0') => out.push(0),
                Some(b'b') => out.push(8),
                Some(b'n') => out.push(b'\n'),
                Some(b'r') => out.push(b'\r'),
                Some(b't') => out.push(b'\t'),
                Some(b'Z') => out.push(26),
                // LIKE patterns need these two as they are.
                Some(c @ (b'%' | b'_')) => out.extend([b'\\', c]),
                Some(c) => out.push(c),
                None => out.push(b'\\'),
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// The bytes of a hex or bit token, whichever way it was written.
pub(super) fn radix_bytes(token: &[u8], hex: bool) -> Vec<u8> {
    let digits = match token {
        [b'0', b'x' | b'b', digits @ ..] => digits,
        [_, b'\'', digits @ .., b'\''] => digits,
        _ => &[],
    };
    let (per_byte, bits) = if hex { (2, 4) } else { (8, 1) };
    let mut out = Vec::with_capacity(digits.len() / per_byte + 1);
    let (head, tail) = digits.split_at(digits.len() % per_byte);
    for chunk in std::iter::once(head).filter(|head| !head.is_empty()).chain(tail.chunks(per_byte)) {
        let value = |d: u8| (d as char).to_digit(16).unwrap_or(0);
        out.push(chunk.iter().fold(0u32, |byte, &d| (byte << bits) | value(d)) as u8);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(sql: &str) -> Vec<(T, &str)> {
        let mut lexer = Lexer::new(sql.as_bytes(), ParseMode::default());
        let mut out = Vec::new();
        loop {
            let token = lexer.next();
            out.push((token.t, &sql[token.start as usize..token.end as usize]));
            if matches!(token.t, T::Eof | T::Bad) {
                return out;
            }
        }
    }

    fn check(sql: &str, expect: &[(T, &str)]) {
        let mut got = kinds(sql);
        if got.last().is_some_and(|(t, _)| *t == T::Eof) {
            got.pop();
        }
        assert_eq!(got, expect, "{sql}");
    }

    #[test]
    fn numbers_and_names() {
        check(
            "1 2. .3 4.5e6 7e+1 8e-2 9e9",
            &[
                (T::Int, "1"),
                (T::Dec, "2."),
                (T::Dec, ".3"),
                (T::Float, "4.5e6"),
                (T::Float, "7e+1"),
                (T::Float, "8e-2"),
                (T::Float, "9e9"),
            ],
        );
        check(
            "1a 1e 0x1F 0xG 0b11 0b2 0X1",
            &[
                (T::Word, "1a"),
                (T::Word, "1e"),
                (T::Hex, "0x1F"),
                (T::Word, "0xG"),
                (T::Bit, "0b11"),
                (T::Word, "0b2"),
                (T::Word, "0X1"),
            ],
        );
        check(
            "t.1 t.select `a`.5x",
            &[
                (T::Word, "t"),
                (T::Dot, "."),
                (T::Word, "1"),
                (T::Word, "t"),
                (T::Dot, "."),
                (T::Word, "select"),
                (T::Quoted, "`a`"),
                (T::Dot, "."),
                (T::Word, "5x"),
            ],
        );
    }

    #[test]
    fn comments() {
        check(
            "a -- b\nc#d\n/* e */f/*!g*/h/*!80000 i*/j/*!99999 k*/l--1",
            &[
                (T::Word, "a"),
                (T::Word, "c"),
                (T::Word, "f"),
                (T::Word, "g"),
                (T::Word, "h"),
                (T::Word, "i"),
                (T::Word, "j"),
                (T::Word, "l"),
                (T::Minus, "-"),
                (T::Minus, "-"),
                (T::Int, "1"),
            ],
        );
        assert_eq!(kinds("a /* b").last().unwrap().0, T::Bad);
        assert_eq!(kinds("a /*! b").last().unwrap().0, T::Bad);
        assert_eq!(kinds("a --").last().unwrap().0, T::Eof);
    }

    #[test]
    fn strings() {
        let mode = ParseMode::default();
        assert_eq!(unescape(br"'a''b'", mode), b"a'b");
        assert_eq!(unescape(br"'\0\n\\\'\%\_\q'", mode), b"\0\n\\'\\%\\_q");
        assert_eq!(unescape(br#""a'b""c""#, mode), br#"a'b"c"#);
        assert_eq!(unescape(br"'a\'", ParseMode { no_backslash_escapes: true, ..mode }), b"a\\");
        assert_eq!(kinds(r"'a\'b' 'c").last().unwrap(), &(T::Bad, "'c"));
        assert_eq!(radix_bytes(b"0xabc", true), [0x0a, 0xbc]);
        assert_eq!(radix_bytes(b"x'4D4e'", true), b"MN");
        assert_eq!(radix_bytes(b"b'100000001'", false), [1, 1]);
        assert_eq!(radix_bytes(b"x''", true), b"");
        check("x'41' X'4' ", &[(T::Hex, "x'41'"), (T::Bad, "X'4'")]);
    }
}
