//! Regular expressions: REGEXP, REGEXP_LIKE, REGEXP_INSTR, REGEXP_SUBSTR and REGEXP_REPLACE.
//!
//! MySQL 8 uses ICU's regular expressions. Here a pattern in ICU's syntax is translated ([`translate`]) and
//! run by `fancy-regex`, which hands everything without lookaround and backreferences to a matcher of linear
//! time and limits the backtracking of the rest. A pattern is compiled once: the node keeps the last few it
//! has met, so a literal costs one compilation in a statement's life and a parameter one per value.
//!
//! Case counts as the collation says (`_ci` folds case) unless a match type says otherwise; accents always
//! count, as in ICU. Where the result can differ from MySQL's: `\w` and `\b` follow Unicode's tables of
//! another version, letters fold one to one (`ß` is not `ss`), and `\X`, `\N{name}` and the `w` flag answer
//! 3690. Positions count characters, also beyond the basic plane.
//!
//! What it never does: it runs no longer than its limits of steps and time allow (3699), compiles no pattern
//! beyond its limits of size (3700), and makes no string beyond `max_allowed_packet`.

mod translate;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use fancy_regex::{Captures, CompileError, Error, ParseError, Regex, RegexBuilder, RuntimeError};

use super::func::some;
use super::types::{self, agree};
use super::{BoundExpr, Coercion, EvalContext};
use crate::value::{Collation, ErrorCode, MySqlError, Result, SqlType, Text, Value, cast};

/// Steps of backtracking in one search.
const STEPS_MAX: usize = 1_000_000;
/// Wall time of all searches of one call.
const CALL_MICROS_MAX: i64 = 2_000_000;
/// Bytes of a pattern.
const PATTERN_BYTES_MAX: usize = 32 << 10;
/// Bytes of a compiled pattern.
const COMPILED_BYTES_MAX: usize = 4 << 20;
/// Compiled patterns that one node keeps.
const KEPT_MAX: usize = 4;

/// What a call does with its matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegexpOp {
    Like,
    Instr,
    Substr,
    Replace,
}

impl RegexpOp {
    /// The operation of a function's name, in any case.
    pub(super) fn find(name: &str) -> Option<RegexpOp> {
        [RegexpOp::Like, RegexpOp::Instr, RegexpOp::Substr, RegexpOp::Replace]
            .into_iter()
            .find(|op| op.name().eq_ignore_ascii_case(name))
    }

    fn name(self) -> &'static str {
        match self {
            RegexpOp::Like => "regexp_like",
            RegexpOp::Instr => "regexp_instr",
            RegexpOp::Substr => "regexp_substr",
            RegexpOp::Replace => "regexp_replace",
        }
    }

    /// Fewest and most arguments.
    fn arguments(self) -> (usize, usize) {
        match self {
            RegexpOp::Like => (2, 3),
            RegexpOp::Instr => (2, 6),
            RegexpOp::Substr => (2, 5),
            RegexpOp::Replace => (3, 6),
        }
    }

    /// Where the position argument is; the occurrence follows it. The match type comes last.
    fn position_at(self) -> usize {
        if self == RegexpOp::Replace { 3 } else { 2 }
    }
}

/// A bound call.
#[derive(Clone, Debug)]
pub struct RegexpNode {
    op: RegexpOp,
    pub(super) args: Vec<BoundExpr>,
    /// The collation of text and pattern together.
    collation: Collation,
    /// The last few patterns, compiled. Clones of the node share it.
    kept: Arc<Mutex<Vec<Kept>>>,
}

#[derive(Debug)]
struct Kept {
    pattern: Text,
    options: Options,
    regex: Arc<Regex>,
}

/// How a pattern is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    fold_case: bool,
    multi_line: bool,
    dot_all: bool,
    unix_lines: bool,
    /// The text ends a line, so that `$` may match before its end.
    line_end_at_tail: bool,
}

impl RegexpNode {
    /// Checks the arguments of a call; gives the node, its type and how strongly its collation counts.
    ///
    /// # Errors
    /// 1582 for a wrong number of arguments, 3995 for binary strings, 1267 for collations that do not agree.
    pub(super) fn bind(
        op: RegexpOp,
        args: Vec<BoundExpr>,
        connection: Collation,
    ) -> Result<(RegexpNode, SqlType, Coercion)> {
        let name = op.name();
        let (min, max) = op.arguments();
        if args.len() < min || args.len() > max {
            return Err(MySqlError::with(ErrorCode::WrongParamcountToNativeFct, &[&name]));
        }
        let strings: Vec<&BoundExpr> = args[..op.position_at().min(args.len())].iter().collect();
        let is_binary = |e: &&&BoundExpr| e.ty.is_string() && e.ty.collation().is_binary();
        if strings.iter().any(|e| is_binary(&e)) {
            let other = strings.iter().find(|e| !is_binary(e));
            let other = other.map_or("binary", |e| types::text_collation(e, connection).name());
            return Err(MySqlError::with(ErrorCode::CharacterSetMismatch, &[&"binary", &other, &name]));
        }
        let (collation, coercion) = agree(&strings, name, connection)?;
        let (ty, coercion) = match op {
            RegexpOp::Like | RegexpOp::Instr => (SqlType::BIGINT, Coercion::Number),
            RegexpOp::Substr => {
                (types::string(types::chars(&args[0].ty), collation), coercion.min(Coercion::Literal))
            }
            RegexpOp::Replace => (types::string(1 << 20, collation), coercion.min(Coercion::Literal)),
        };
        Ok((RegexpNode { op, args, collation, kept: Arc::default() }, ty, coercion))
    }

    /// Computes the call for a row.
    ///
    /// # Errors
    /// The 3685 family for patterns, 1210 for arguments, 3699 when it takes too long.
    pub(super) fn eval(&self, row: &[Value], ctx: &mut EvalContext<'_>) -> Result<Value> {
        let mut values = Vec::with_capacity(self.args.len());
        for arg in &self.args {
            values.push(some!(arg.eval_typed(row, ctx).map(|v| (!v.is_null()).then_some(v))?));
        }
        let mut number = |at: usize, otherwise: i64| match values.get(at) {
            Some(value) => i64::try_from(cast::to_int(value, ctx.warnings)).unwrap_or(i64::MAX),
            None => otherwise,
        };
        let at = self.op.position_at();
        let like = self.op == RegexpOp::Like;
        let position = if like { 1 } else { number(at, 1) };
        let occurrence = if like { 1 } else { number(at + 1, i64::from(self.op != RegexpOp::Replace)) };
        let wants_end = self.op == RegexpOp::Instr
            && match number(4, 0) {
                n @ 0..=1 => n == 1,
                _ => {
                    let text = "regexp_instr: return_option must be 1 or 0";
                    return Err(MySqlError::with(ErrorCode::WrongArguments, &[&text]));
                }
            };
        let subject = cast::to_text(&values[0], self.collation);
        let subject = subject.to_str_lossy();
        let kind = match self.op {
            RegexpOp::Like => values.get(2),
            RegexpOp::Instr => values.get(5),
            RegexpOp::Substr => values.get(4),
            RegexpOp::Replace => values.get(5),
        };
        let regex = self.compiled(&values[1], kind, &subject)?;
        let start = byte_position(&subject, position)?;
        let mut search = Search { regex: &regex, subject: &subject, next: Some(start), ctx, begun: None };
        match self.op {
            RegexpOp::Like => Ok(Value::from_bool(search.is_match()?)),
            RegexpOp::Instr => Ok(Value::Int(match search.nth(occurrence)? {
                None => 0,
                Some(m) => characters(&subject[..if wants_end { m.end } else { m.start }]) + 1,
            })),
            RegexpOp::Substr => {
                let found = some!(search.nth(occurrence)?);
                Ok(Value::Text(self.text(&subject[found])))
            }
            RegexpOp::Replace => {
                let with = cast::to_text(&values[2], self.collation);
                let replaced = search.replace(&with.to_str_lossy(), occurrence)?;
                Ok(replaced.map_or(Value::Null, |text| Value::Text(self.text(&text))))
            }
        }
    }

    fn text(&self, text: &str) -> Text {
        let utf8 = Text::new(text.as_bytes(), Collation::UTF8MB4_BIN);
        cast::to_text(&Value::Text(utf8), self.collation)
    }

    fn compiled(&self, pattern: &Value, kind: Option<&Value>, subject: &str) -> Result<Arc<Regex>> {
        let pattern = cast::to_text(pattern, self.collation);
        let mut options = self.options(kind)?;
        let looks_at_the_tail = || pattern.as_bytes().iter().any(|b| matches!(b, b'$' | b'Z'));
        options.line_end_at_tail = ends_a_line(subject) && looks_at_the_tail();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.iter().find(|k| k.options == options && k.pattern == pattern) {
            return Ok(Arc::clone(&known.regex));
        }
        let regex = Arc::new(compile(&pattern.to_str_lossy(), options)?);
        if kept.len() == KEPT_MAX {
            kept.remove(0);
        }
        kept.push(Kept { pattern, options, regex: Arc::clone(&regex) });
        Ok(regex)
    }

    /// The options of a match type; a later letter wins.
    fn options(&self, kind: Option<&Value>) -> Result<Options> {
        let mut options = Options {
            fold_case: self.collation.name().ends_with("_ci"),
            multi_line: false,
            dot_all: false,
            unix_lines: false,
            line_end_at_tail: false,
        };
        let Some(kind) = kind else { return Ok(options) };
        for letter in cast::to_text(kind, Collation::UTF8MB4_BIN).to_str_lossy().chars() {
            match letter {
                'c' => options.fold_case = false,
                'i' => options.fold_case = true,
                'm' => options.multi_line = true,
                'n' => options.dot_all = true,
                'u' => options.unix_lines = true,
                _ => return Err(MySqlError::with(ErrorCode::WrongArguments, &[&self.op.name()])),
            }
        }
        Ok(options)
    }
}

/// Where a position counted in characters from 1 is.
fn byte_position(subject: &str, position: i64) -> Result<usize> {
    let outside = || MySqlError::new(ErrorCode::RegexpIndexOutofbounds);
    let skip = usize::try_from(position).ok().and_then(|p| p.checked_sub(1)).ok_or_else(outside)?;
    let ends = subject.char_indices().map(|(at, _)| at).chain([subject.len()]);
    ends.clone().nth(skip).ok_or_else(outside)
}

fn characters(text: &str) -> i64 {
    text.chars().count() as i64
}

fn ends_a_line(subject: &str) -> bool {
    subject.ends_with(['\n', '\x0B', '\x0C', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
}

fn compile(pattern: &str, options: Options) -> Result<Regex> {
    if pattern.is_empty() {
        return Err(MySqlError::new(ErrorCode::RegexpIllegalArgument));
    }
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(MySqlError::new(ErrorCode::RegexpPatternTooBig));
    }
    let translated = translate::translate(pattern, options)?;
    let mut builder = RegexBuilder::new(&translated);
    builder
        .case_insensitive(options.fold_case)
        .backtrack_limit(STEPS_MAX)
        .delegate_size_limit(COMPILED_BYTES_MAX)
        .delegate_dfa_size_limit(COMPILED_BYTES_MAX);
    builder.build().map_err(|error| failure(&error))
}

/// MySQL's error for what the library says.
fn failure(error: &Error) -> MySqlError {
    let syntax = |at: usize| MySqlError::with(ErrorCode::RegexpRuleSyntax, &[&1, &at]);
    match error {
        Error::RuntimeError(RuntimeError::BacktrackLimitExceeded) => {
            MySqlError::new(ErrorCode::RegexpTimeOut)
        }
        Error::RuntimeError(_) => MySqlError::new(ErrorCode::RegexpStackOverflow),
        Error::ParseError(at, why) => match why {
            ParseError::UnclosedOpenParen => MySqlError::new(ErrorCode::RegexpMismatchedParen),
            ParseError::RecursionExceeded => MySqlError::new(ErrorCode::RegexpPatternTooBig),
            ParseError::TrailingBackslash | ParseError::InvalidEscape(_) => {
                MySqlError::new(ErrorCode::RegexpBadEscapeSequence)
            }
            ParseError::InvalidHex | ParseError::InvalidCodepointValue => {
                MySqlError::new(ErrorCode::RegexpBadEscapeSequence)
            }
            ParseError::InvalidClass => MySqlError::new(ErrorCode::RegexpMissingCloseBracket),
            ParseError::InvalidBackref | ParseError::InvalidGroupNameBackref(_) => {
                MySqlError::new(ErrorCode::RegexpInvalidBackRef)
            }
            ParseError::InvalidGroupName => MySqlError::new(ErrorCode::RegexpInvalidCaptureGroupName),
            _ => syntax(*at + 1),
        },
        Error::CompileError(why) => match &**why {
            CompileError::InnerError(inner) if inner.size_limit().is_some() => {
                MySqlError::new(ErrorCode::RegexpPatternTooBig)
            }
            CompileError::PatternTooComplex => MySqlError::new(ErrorCode::RegexpPatternTooBig),
            CompileError::InnerError(inner) => inner_failure(&inner.to_string()),
            CompileError::LookBehindNotConst
            | CompileError::VariableLookBehindRequiresFeature
            | CompileError::DfaBuildError(..) => MySqlError::new(ErrorCode::RegexpLookBehindLimit),
            CompileError::InvalidBackref(_)
            | CompileError::InvalidGroupNameBackref(_)
            | CompileError::NamedBackrefOnly => MySqlError::new(ErrorCode::RegexpInvalidBackRef),
            CompileError::InvalidGroupName => MySqlError::new(ErrorCode::RegexpInvalidCaptureGroupName),
            _ => MySqlError::new(ErrorCode::RegexpUnimplemented),
        },
        _ => MySqlError::new(ErrorCode::RegexpInternal),
    }
}

/// What the inner matcher found wrong; the translation keeps most of it away, and the library tells it as
/// text only.
fn inner_failure(text: &str) -> MySqlError {
    MySqlError::new(if text.contains("invalid character class range") {
        ErrorCode::RegexpInvalidRange
    } else if text.contains("unclosed character class") {
        ErrorCode::RegexpMissingCloseBracket
    } else if text.contains("size limit") {
        ErrorCode::RegexpPatternTooBig
    } else {
        ErrorCode::RegexpIllegalArgument
    })
}

/// A walk over the matches of one call.
struct Search<'a, 'c> {
    regex: &'a Regex,
    subject: &'a str,
    /// Where the next search starts; none after the last.
    next: Option<usize>,
    ctx: &'a mut EvalContext<'c>,
    begun: Option<i64>,
}

impl<'a> Search<'a, '_> {
    fn is_match(&mut self) -> Result<bool> {
        self.regex.is_match(self.subject).map_err(|error| failure(&error))
    }

    /// The next match. As in ICU an empty match may follow right after another one, and the search after an
    /// empty one goes on a character later.
    fn find(&mut self) -> Result<Option<Captures<'a, str>>> {
        let Some(from) = self.next else { return Ok(None) };
        let begun = self.begun;
        let now = self.ctx.facts.clock_micros();
        self.begun.get_or_insert(now);
        if begun.is_some_and(|begun| now.saturating_sub(begun) > CALL_MICROS_MAX) {
            return Err(MySqlError::new(ErrorCode::RegexpTimeOut));
        }
        let found = self.regex.captures_from_pos(self.subject, from).map_err(|error| failure(&error))?;
        self.next = found.as_ref().and_then(|captures| captures.get(0)).and_then(|m| {
            if m.start() < m.end() {
                return Some(m.end());
            }
            let step = self.subject[m.end()..].chars().next()?;
            Some(m.end() + step.len_utf8())
        });
        Ok(found)
    }

    /// The range of the match with that number, counted from 1.
    fn nth(&mut self, occurrence: i64) -> Result<Option<std::ops::Range<usize>>> {
        for _ in 1..occurrence.max(1) {
            if self.find()?.is_none() {
                return Ok(None);
            }
        }
        Ok(self.find()?.and_then(|captures| captures.get(0)).map(|m| m.range()))
    }

    /// The text with one match replaced, or all for occurrence 0; none if it would become too long.
    fn replace(&mut self, with: &str, occurrence: i64) -> Result<Option<String>> {
        let mut out = String::new();
        let mut copied = 0;
        let mut number = 0;
        let limit = self.ctx.facts.max_allowed_packet();
        while let Some(captures) = self.find()? {
            let Some(whole) = captures.get(0) else { break };
            number += 1;
            if occurrence != 0 && number < occurrence.max(1) {
                continue;
            }
            out.push_str(&self.subject[copied..whole.start()]);
            expand(with, &captures, &mut out)?;
            copied = whole.end();
            if out.len() > limit {
                break;
            }
            if occurrence != 0 {
                break;
            }
        }
        if out.len() + self.subject.len() - copied > limit {
            let args: [&dyn std::fmt::Display; 2] = [&"regexp_replace", &limit];
            self.ctx.warnings.warn(MySqlError::with(ErrorCode::WarnAllowedPacketOverflowed, &args));
            return Ok(None);
        }
        out.push_str(&self.subject[copied..]);
        Ok(Some(out))
    }
}

/// Appends a replacement: `$1` and `${name}` are what groups matched, `\` takes the next character as it is.
fn expand(with: &str, captures: &Captures<'_, str>, out: &mut String) -> Result<()> {
    let mut rest = with;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let Some(c) = rest.chars().next() else { break };
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
            '$' => {
                let bad_name = || MySqlError::new(ErrorCode::RegexpInvalidCaptureGroupName);
                let group = if let Some(named) = rest.strip_prefix('{') {
                    let (name, after) = named.split_once('}').ok_or_else(bad_name)?;
                    rest = after;
                    let known = captures.name(name);
                    let numbered = name.parse().ok().filter(|&n: &usize| n < captures.len());
                    known.or_else(|| numbered.and_then(|n| captures.get(n)))
                } else {
                    let (number, digits) = group_number(rest, captures.len()).ok_or_else(bad_name)?;
                    rest = &rest[digits..];
                    if number >= captures.len() {
                        return Err(MySqlError::new(ErrorCode::RegexpIndexOutofbounds));
                    }
                    captures.get(number)
                };
                out.push_str(group.map_or("", |m| m.as_str()));
            }
            other => out.push(other),
        }
    }
    Ok(())
}

/// The number at the start of a text and its digits: as many as still name a group.
fn group_number(text: &str, groups: usize) -> Option<(usize, usize)> {
    let digit =
        |at: usize| text.as_bytes().get(at).filter(|b| b.is_ascii_digit()).map(|b| usize::from(b - b'0'));
    let mut number = digit(0)?;
    let mut digits = 1;
    while let Some(more) = digit(digits) {
        let longer = number * 10 + more;
        if longer >= groups {
            break;
        }
        number = longer;
        digits += 1;
    }
    Some((number, digits))
}
