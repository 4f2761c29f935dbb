//! Translation: a pattern in ICU's syntax, as MySQL takes it, into the syntax of `fancy-regex`.
//!
//! One pass from left to right. Most of it stands in both; the pass rewrites what means something else there
//! (`.`, `^`, `$`, POSIX classes, `\h`, `\v`, `\R`, `\Z`, `\Q...\E`) and refuses, with MySQL's number, what
//! ICU does not know or the library does not do, so that no feature of the library leaks through (`\K`,
//! subroutine calls, conditionals). Flags inside of the pattern are followed group by group.
//!
//! It never looks into a class deeper than it must, and keeps a stack only of open groups, bounded by
//! [`DEPTH_MAX`].

use std::iter::Peekable;
use std::str::Chars;

use super::Options;
use crate::value::{ErrorCode, MySqlError, Result};

/// The deepest nesting of groups or classes.
const DEPTH_MAX: usize = 50;
/// The characters that end a line.
const LINE_END: &str = r"[\n\x0B\x0C\r\u{85}\u{2028}\u{2029}]";
/// The characters of `.`.
const NO_LINE_END: &str = r"[^\n\x0B\x0C\r\u{85}\u{2028}\u{2029}]";
/// Not in the middle of a line end of two characters.
const NOT_WITHIN_CRLF: &str = r"(?!(?<=\r)\n)";

#[derive(Clone, Copy)]
struct Flags {
    multi_line: bool,
    dot_all: bool,
    /// Free spacing, where `#` starts a comment.
    spaced: bool,
}

struct Translator<'p> {
    input: Peekable<Chars<'p>>,
    /// Characters taken so far.
    taken: usize,
    out: String,
    options: Options,
    flags: Flags,
    /// The flags outside of each open group.
    open: Vec<Flags>,
}

/// Translates a pattern.
///
/// # Errors
/// 3688 to 3697 and 3700: what is wrong with it.
pub(super) fn translate(pattern: &str, options: Options) -> Result<String> {
    let flags = Flags { multi_line: options.multi_line, dot_all: options.dot_all, spaced: false };
    let mut translator = Translator {
        input: pattern.chars().peekable(),
        taken: 0,
        out: String::with_capacity(pattern.len() + 16),
        options,
        flags,
        open: Vec::new(),
    };
    translator.run()?;
    Ok(translator.out)
}

fn fail<T>(code: ErrorCode) -> Result<T> {
    Err(MySqlError::new(code))
}

impl Translator<'_> {
    fn next(&mut self) -> Option<char> {
        self.taken += 1;
        self.input.next()
    }

    fn next_if(&mut self, wanted: char) -> bool {
        let hit = self.input.next_if_eq(&wanted).is_some();
        self.taken += usize::from(hit);
        hit
    }

    fn syntax<T>(&self) -> Result<T> {
        Err(MySqlError::with(ErrorCode::RegexpRuleSyntax, &[&1, &self.taken]))
    }

    fn run(&mut self) -> Result<()> {
        while let Some(c) = self.next() {
            match c {
                '\\' => self.escape()?,
                '[' => self.class(0)?,
                '(' => self.open_group()?,
                ')' => {
                    let Some(flags) = self.open.pop() else { return fail(ErrorCode::RegexpMismatchedParen) };
                    self.flags = flags;
                    self.out.push(')');
                }
                '.' if self.flags.dot_all => self.out.push_str("(?s:.)"),
                '.' if self.options.unix_lines => self.out.push_str(r"[^\n]"),
                '.' => self.out.push_str(NO_LINE_END),
                '^' => self.line_start(),
                '$' => self.line_end(),
                '{' => self.interval()?,
                '#' if self.flags.spaced => while self.next().is_some_and(|c| c != '\n') {},
                c if self.flags.spaced && c.is_whitespace() => {}
                '#' | ' ' | '}' | ']' => self.literal(c),
                other => self.out.push(other),
            }
        }
        if self.open.is_empty() { Ok(()) } else { fail(ErrorCode::RegexpMismatchedParen) }
    }

    /// A character that stands for itself.
    fn literal(&mut self, c: char) {
        if c.is_ascii_punctuation() {
            self.out.push('\\');
        }
        self.out.push(c);
    }

    fn line_start(&mut self) {
        if !self.flags.multi_line {
            self.out.push_str(r"\A");
        } else if self.options.unix_lines {
            self.out.push_str(r"(?:\A|(?<=\n)(?!\z))");
        } else {
            self.out.push_str(&format!(r"(?:\A|(?<={LINE_END}){NOT_WITHIN_CRLF}(?!\z))"));
        }
    }

    fn line_end(&mut self) {
        match (self.flags.multi_line, self.options.unix_lines) {
            (true, true) => self.out.push_str(r"(?=\n|\z)"),
            (true, false) => self.out.push_str(&format!(r"(?:(?={LINE_END}|\z){NOT_WITHIN_CRLF})")),
            (false, _) => self.text_end(),
        }
    }

    /// The end of the text, or before the line end that ends it.
    fn text_end(&mut self) {
        match (self.options.line_end_at_tail, self.options.unix_lines) {
            (false, _) => self.out.push_str(r"\z"),
            (true, true) => self.out.push_str(r"(?=\n?\z)"),
            (true, false) => {
                self.out.push_str(&format!(r"(?:(?=(?:\r\n|{LINE_END})?\z){NOT_WITHIN_CRLF})"));
            }
        }
    }

    /// `{n}`, `{n,}`, `{n,m}`.
    fn interval(&mut self) -> Result<()> {
        let mut text = String::from("{");
        loop {
            match self.next() {
                Some('}') => break,
                Some(c) if (c.is_ascii_digit() || c == ',') && text.len() < 16 => text.push(c),
                _ => return fail(ErrorCode::RegexpBadInterval),
            }
        }
        let (low, high) = match text[1..].split_once(',') {
            Some((low, "")) => (low, None),
            Some((low, high)) => (low, Some(high)),
            None => (&text[1..], None),
        };
        let Ok(low) = low.parse::<u32>() else { return fail(ErrorCode::RegexpBadInterval) };
        if let Some(high) = high {
            match high.parse::<u32>() {
                Ok(high) if high < low => return fail(ErrorCode::RegexpMaxLtMin),
                Ok(_) => {}
                Err(_) => return fail(ErrorCode::RegexpBadInterval),
            }
        }
        self.out.push_str(&text);
        self.out.push('}');
        Ok(())
    }

    fn open_group(&mut self) -> Result<()> {
        if self.open.len() == DEPTH_MAX {
            return fail(ErrorCode::RegexpPatternTooBig);
        }
        let outer = self.flags;
        if !self.next_if('?') {
            self.open.push(outer);
            self.out.push('(');
            return Ok(());
        }
        match self.next() {
            Some('#') => {
                while let Some(c) = self.next() {
                    if c == ')' {
                        return Ok(());
                    }
                }
                return fail(ErrorCode::RegexpMismatchedParen);
            }
            Some(c @ (':' | '=' | '!' | '>')) => {
                self.out.push_str("(?");
                self.out.push(c);
            }
            Some('<') => self.open_angle()?,
            Some(c) => return self.inline_flags(c),
            None => return fail(ErrorCode::RegexpMismatchedParen),
        }
        self.open.push(outer);
        Ok(())
    }

    /// The name of a group up to its `>`.
    fn rest_of_group_name(&mut self) -> Result<()> {
        loop {
            match self.next() {
                Some('>') => break,
                Some(c) if c.is_ascii_alphanumeric() => self.out.push(c),
                _ => return fail(ErrorCode::RegexpInvalidCaptureGroupName),
            }
        }
        self.out.push('>');
        Ok(())
    }

    /// After `(?<`: a look-behind or a named group.
    fn open_angle(&mut self) -> Result<()> {
        self.out.push_str("(?<");
        match self.next() {
            Some(c @ ('=' | '!')) => self.out.push(c),
            Some(c) if c.is_ascii_alphabetic() => {
                self.out.push(c);
                self.rest_of_group_name()?;
            }
            _ => return fail(ErrorCode::RegexpInvalidCaptureGroupName),
        }
        Ok(())
    }

    /// `(?ims-x)` for the rest of the group, or `(?ims-x:` for a group.
    fn inline_flags(&mut self, first: char) -> Result<()> {
        let outer = self.flags;
        let mut on = true;
        let (mut folds, mut keeps) = (false, false);
        let mut letter = Some(first);
        let ends_here = loop {
            match letter {
                Some('i') if on => folds = true,
                Some('i') => keeps = true,
                Some('m') => self.flags.multi_line = on,
                Some('s') => self.flags.dot_all = on,
                Some('x') => self.flags.spaced = on,
                Some('w' | 'd') => return fail(ErrorCode::RegexpUnimplemented),
                Some('-') if on => on = false,
                Some(')') => break true,
                Some(':') => break false,
                Some(_) => return self.syntax(),
                None => return fail(ErrorCode::RegexpMismatchedParen),
            }
            letter = self.next();
        };
        let case = if keeps {
            "(?-i"
        } else if folds {
            "(?i"
        } else {
            "(?"
        };
        if !ends_here {
            self.open.push(outer);
            self.out.push_str(case);
            self.out.push(':');
        } else if folds || keeps {
            self.out.push_str(case);
            self.out.push(')');
        }
        Ok(())
    }

    /// A backslash outside of a class.
    fn escape(&mut self) -> Result<()> {
        let Some(c) = self.next() else { return fail(ErrorCode::RegexpBadEscapeSequence) };
        match c {
            'Q' => {
                while let Some(c) = self.next() {
                    if c == '\\' && self.next_if('E') {
                        break;
                    }
                    self.literal(c);
                }
            }
            'E' => {}
            'A' | 'z' | 'b' | 'B' | 'G' => {
                self.out.push('\\');
                self.out.push(c);
            }
            'Z' => self.text_end(),
            'R' => self.out.push_str(&format!(r"(?>\r\n|{LINE_END})")),
            '1'..='9' => {
                // Set apart, so that a digit that follows stays one.
                self.out.push_str(r"(?:\");
                self.out.push(c);
                self.out.push(')');
            }
            'k' => {
                if !self.next_if('<') {
                    return fail(ErrorCode::RegexpInvalidCaptureGroupName);
                }
                self.out.push_str(r"\k<");
                self.rest_of_group_name()?;
            }
            'X' | 'N' | 'Y' => return fail(ErrorCode::RegexpUnimplemented),
            other => self.character_escape(other)?,
        }
        Ok(())
    }

    /// An escape that stands for characters, in a class and outside of it.
    fn character_escape(&mut self, c: char) -> Result<()> {
        match c {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'n' | 'r' | 't' | 'f' | 'a' => {
                self.out.push('\\');
                self.out.push(c);
            }
            'e' => self.out.push_str(r"\x1B"),
            'h' => self.out.push_str(r"[\t\p{Zs}]"),
            'H' => self.out.push_str(r"[^\t\p{Zs}]"),
            'v' => self.out.push_str(LINE_END),
            'V' => self.out.push_str(NO_LINE_END),
            'p' | 'P' => self.property(c)?,
            'u' => self.code_point(4, 4)?,
            'U' => self.code_point(8, 8)?,
            'x' if self.next_if('{') => {
                self.code_point(1, 6)?;
                if !self.next_if('}') {
                    return fail(ErrorCode::RegexpBadEscapeSequence);
                }
            }
            'x' => self.code_point(1, 2)?,
            '0' => {
                let mut value = 0;
                for _ in 0..3 {
                    let Some(digit) = self.input.peek().and_then(|c| c.to_digit(8)) else { break };
                    self.next();
                    value = value * 8 + digit;
                }
                self.push_code(value)?;
            }
            'c' => {
                let Some(letter) = self.next() else { return fail(ErrorCode::RegexpBadEscapeSequence) };
                self.push_code(u32::from(letter) & 0x1F)?;
            }
            c if c.is_ascii_alphanumeric() => return fail(ErrorCode::RegexpBadEscapeSequence),
            other => self.literal(other),
        }
        Ok(())
    }

    fn code_point(&mut self, min: usize, max: usize) -> Result<()> {
        let (mut value, mut digits) = (0u32, 0);
        while digits < max {
            let Some(digit) = self.input.peek().and_then(|c| c.to_digit(16)) else { break };
            self.next();
            value = value.saturating_mul(16).saturating_add(digit);
            digits += 1;
        }
        if digits < min {
            return fail(ErrorCode::RegexpBadEscapeSequence);
        }
        self.push_code(value)
    }

    fn push_code(&mut self, value: u32) -> Result<()> {
        match char::from_u32(value) {
            Some(c) => {
                self.out.push_str(&format!(r"\x{{{:X}}}", u32::from(c)));
                Ok(())
            }
            None => fail(ErrorCode::RegexpBadEscapeSequence),
        }
    }

    /// `\p{name}`.
    fn property(&mut self, c: char) -> Result<()> {
        if !self.next_if('{') {
            return fail(ErrorCode::RegexpIllegalArgument);
        }
        let mut name = String::new();
        loop {
            match self.next() {
                Some('}') => break,
                Some(c) if (c.is_ascii_alphanumeric() || "_=- ^".contains(c)) && name.len() < 64 => {
                    name.push(c);
                }
                _ => return fail(ErrorCode::RegexpIllegalArgument),
            }
        }
        self.out.push_str(&format!(r"\{c}{{{name}}}"));
        Ok(())
    }

    /// A class, after its `[`.
    fn class(&mut self, depth: usize) -> Result<()> {
        if depth == DEPTH_MAX {
            return fail(ErrorCode::RegexpPatternTooBig);
        }
        self.out.push('[');
        if self.next_if('^') {
            self.out.push('^');
        }
        if self.next_if(']') {
            self.out.push_str(r"\]");
        }
        while let Some(c) = self.next() {
            match c {
                ']' => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' if self.input.peek() == Some(&':') => self.posix_class()?,
                '[' => self.class(depth + 1)?,
                '\\' => match self.next() {
                    Some('b') => self.out.push_str(r"\x08"),
                    Some(c) => self.character_escape(c)?,
                    None => return fail(ErrorCode::RegexpBadEscapeSequence),
                },
                '&' if self.next_if('&') => self.out.push_str("&&"),
                '-' if self.next_if('-') => self.out.push_str("--"),
                '&' | '~' | '#' | ' ' => self.literal(c),
                other if self.range_end().is_some_and(|end| end < other) => {
                    return fail(ErrorCode::RegexpInvalidRange);
                }
                other => self.out.push(other),
            }
        }
        fail(ErrorCode::RegexpMissingCloseBracket)
    }

    /// The plain character that ends the range whose start was just taken, if it is one.
    fn range_end(&self) -> Option<char> {
        let mut ahead = self.input.clone();
        let dash = ahead.next()?;
        ahead.next().filter(|end| dash == '-' && !matches!(end, '[' | ']' | '\\' | '-'))
    }

    /// `[:name:]` or `[:^name:]`, after its `[`.
    fn posix_class(&mut self) -> Result<()> {
        self.next();
        let negated = self.next_if('^');
        let mut name = String::new();
        loop {
            match self.next() {
                Some(':') if self.next_if(']') => break,
                Some(c) if c.is_ascii_alphanumeric() && name.len() < 16 => name.push(c.to_ascii_lowercase()),
                Some(_) => return fail(ErrorCode::RegexpIllegalArgument),
                None => return fail(ErrorCode::RegexpMissingCloseBracket),
            }
        }
        let class = match name.as_str() {
            "alpha" => r"\p{Alphabetic}",
            "digit" => r"\p{Nd}",
            "alnum" => r"\p{Alphabetic}\p{Nd}",
            "upper" => r"\p{Uppercase}",
            "lower" => r"\p{Lowercase}",
            "space" => r"\s",
            "blank" => r"\t\p{Zs}",
            "punct" => r"\p{P}",
            "cntrl" => r"\p{Cc}",
            "xdigit" => r"0-9A-Fa-f",
            "word" => r"\w",
            "graph" => r"[^\s\p{Cc}\p{Cs}\p{Cn}]",
            "print" => r"[^\p{Cc}\p{Cs}\p{Cn}]",
            _ => return fail(ErrorCode::RegexpIllegalArgument),
        };
        self.out.push_str(if negated { "[^" } else { "[" });
        self.out.push_str(class);
        self.out.push(']');
        Ok(())
    }
}
