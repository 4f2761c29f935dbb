//! Functions of strings. Positions and lengths count characters of the string's own set.

use super::eval::recode;
use super::func::{Args, FuncDef, Returns, def, def_null, some};
use crate::parser::ast::TrimSide;
use crate::value::collation::{to_lower, to_upper};
use crate::value::{Collation, Result, Text, Value, cast, compare, number};

/// Letters and digits that stand for bytes: plain text of the connection, whatever the argument is.
const DIGITS: Returns = Returns::By(|_, connection| super::types::string(1 << 20, connection));

pub(super) static TABLE: &[FuncDef] = &[
    def("concat", 1, 255, Returns::Concat, concat),
    def_null("concat_ws", 2, 255, Returns::Concat, concat_ws),
    def("length", 1, 1, Returns::Int, |a| Ok(Value::Int(some!(a.own_text(0)?).len() as i64))),
    def("octet_length", 1, 1, Returns::Int, |a| Ok(Value::Int(some!(a.own_text(0)?).len() as i64))),
    def("bit_length", 1, 1, Returns::Int, |a| Ok(Value::Int(some!(a.own_text(0)?).len() as i64 * 8))),
    def("char_length", 1, 1, Returns::Int, |a| Ok(Value::Int(some!(a.own_text(0)?).char_count() as i64))),
    def("character_length", 1, 1, Returns::Int, |a| {
        Ok(Value::Int(some!(a.own_text(0)?).char_count() as i64))
    }),
    def("upper", 1, 1, Returns::Like(1), |a| letters(a, true)),
    def("ucase", 1, 1, Returns::Like(1), |a| letters(a, true)),
    def("lower", 1, 1, Returns::Like(1), |a| letters(a, false)),
    def("lcase", 1, 1, Returns::Like(1), |a| letters(a, false)),
    def("substring", 2, 3, Returns::Like(1), substring),
    def("substr", 2, 3, Returns::Like(1), substring),
    def("mid", 3, 3, Returns::Like(1), substring),
    def("left", 2, 2, Returns::Like(1), left),
    def("right", 2, 2, Returns::Like(1), right),
    def("ltrim", 1, 1, Returns::Like(1), |a| trim_side(a, TrimSide::Leading)),
    def("rtrim", 1, 1, Returns::Like(1), |a| trim_side(a, TrimSide::Trailing)),
    def_null("lpad", 3, 3, Returns::Long, |a| pad(a, true)),
    def_null("rpad", 3, 3, Returns::Long, |a| pad(a, false)),
    def_null("replace", 3, 3, Returns::Long, replace),
    def("locate", 2, 3, Returns::Int, |a| locate(a, 0, 1)),
    def("instr", 2, 2, Returns::Int, |a| locate(a, 1, 0)),
    def("reverse", 1, 1, Returns::Like(1), reverse),
    def_null("repeat", 2, 2, Returns::Long, repeat),
    def_null("space", 1, 1, Returns::Long, space),
    def("ascii", 1, 1, Returns::Int, |a| {
        Ok(Value::Int(some!(a.own_text(0)?).as_bytes().first().map_or(0, |b| i64::from(*b))))
    }),
    def("ord", 1, 1, Returns::Int, ord),
    def_null(
        "char",
        1,
        255,
        Returns::By(|a, _| super::types::string(a.len() as u64 * 4, Collation::BINARY)),
        chars,
    ),
    def("hex", 1, 1, DIGITS, hex),
    def_null("unhex", 1, 1, Returns::Bytes, unhex),
    def_null("bin", 1, 1, Returns::Ascii(64), |a| radix(a, 2)),
    def_null("oct", 1, 1, Returns::Ascii(64), |a| radix(a, 8)),
    def_null("conv", 3, 3, Returns::Ascii(64), conv),
    def("format", 2, 3, Returns::Ascii(100), format),
    def("field", 2, 255, Returns::Int, field),
    def_null("elt", 2, 255, Returns::Common(1), elt),
    def("find_in_set", 2, 2, Returns::Int, find_in_set),
    def("strcmp", 2, 2, Returns::Int, strcmp),
    def_null("insert", 4, 4, Returns::Long, insert),
    def("quote", 1, 1, Returns::Long, quote),
    def("substring_index", 3, 3, Returns::Like(1), substring_index),
    def("soundex", 1, 1, Returns::Long, soundex),
    def("to_base64", 1, 1, DIGITS, to_base64),
    def_null("from_base64", 1, 1, Returns::Bytes, from_base64),
    def("charset", 1, 1, Returns::Ascii(64), |a| {
        let collation = a.exprs.first().map_or(Collation::BINARY, |e| e.ty.collation());
        Ok(a.string(collation.charset().name().as_bytes()))
    }),
    def("collation", 1, 1, Returns::Ascii(64), |a| {
        let collation = a.exprs.first().map_or(Collation::BINARY, |e| e.ty.collation());
        Ok(a.string(collation.name().as_bytes()))
    }),
];

fn concat(a: &mut Args<'_, '_>) -> Result<Value> {
    let mut out = Vec::new();
    for at in 0..a.len() {
        out.extend_from_slice(some!(a.text(at)?).as_bytes());
        if !a.fits(out.len(), "concat") {
            return Ok(Value::Null);
        }
    }
    Ok(a.string(&out))
}

fn concat_ws(a: &mut Args<'_, '_>) -> Result<Value> {
    let separator = some!(a.text(0)?);
    let mut out = Vec::new();
    let mut first = true;
    for at in 1..a.len() {
        let Some(text) = a.text(at)? else { continue };
        if !std::mem::take(&mut first) {
            out.extend_from_slice(separator.as_bytes());
        }
        out.extend_from_slice(text.as_bytes());
        if !a.fits(out.len(), "concat_ws") {
            return Ok(Value::Null);
        }
    }
    Ok(a.string(&out))
}

fn letters(a: &mut Args<'_, '_>, upper: bool) -> Result<Value> {
    let text = some!(a.text(0)?);
    let mut out = Vec::with_capacity(text.len());
    if upper {
        to_upper(text.charset(), text.as_bytes(), &mut out);
    } else {
        to_lower(text.charset(), text.as_bytes(), &mut out);
    }
    Ok(a.string(&out))
}

/// The characters from one position to another.
fn slice(text: &Text, from: usize, to: usize) -> &[u8] {
    let (charset, bytes) = (text.charset(), text.as_bytes());
    let start = charset.char_offset(bytes, from).min(bytes.len());
    let rest = &bytes[start..];
    let len = charset.char_offset(rest, to.saturating_sub(from)).min(rest.len());
    &rest[..len]
}

fn substring(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.text(0)?);
    let position = some!(a.int(1)?);
    let len = if a.len() > 2 { some!(a.int(2)?) } else { i64::MAX };
    let count = text.char_count() as i64;
    let from = if position < 0 { count.saturating_add(position) } else { position - 1 };
    if len <= 0 || from < 0 || from >= count {
        return Ok(a.string(b""));
    }
    Ok(a.string(slice(&text, from as usize, from.saturating_add(len).min(count) as usize)))
}

fn left(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.text(0)?);
    let len = some!(a.int(1)?).max(0) as usize;
    Ok(a.string(slice(&text, 0, len)))
}

fn right(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.text(0)?);
    let len = some!(a.int(1)?).max(0) as usize;
    let count = text.char_count();
    Ok(a.string(slice(&text, count.saturating_sub(len), count)))
}

fn trim_side(a: &mut Args<'_, '_>, side: TrimSide) -> Result<Value> {
    let text = a.val(0)?;
    Ok(trim(side, None, &text, a.collation()))
}

/// TRIM.
pub(super) fn trim(side: TrimSide, what: Option<&Value>, text: &Value, collation: Collation) -> Value {
    if text.is_null() || what.is_some_and(Value::is_null) {
        return Value::Null;
    }
    let text = recode(text, collation);
    let what = what.map_or_else(|| Text::new(b" ", collation), |what| recode(what, collation));
    let (mut rest, what) = (text.as_bytes(), what.as_bytes());
    if !what.is_empty() {
        if side != TrimSide::Trailing {
            while let Some(shorter) = rest.strip_prefix(what) {
                rest = shorter;
            }
        }
        if side != TrimSide::Leading {
            while let Some(shorter) = rest.strip_suffix(what) {
                rest = shorter;
            }
        }
    }
    Value::Text(Text::new(rest, collation))
}

fn pad(a: &mut Args<'_, '_>, left: bool) -> Result<Value> {
    let text = some!(a.text(0)?);
    let len = some!(a.int(1)?);
    let padding = some!(a.text(2)?);
    let count = text.char_count();
    let Ok(len) = usize::try_from(len) else { return Ok(Value::Null) };
    if len <= count {
        return Ok(a.string(slice(&text, 0, len)));
    }
    let unit = padding.char_count();
    if unit == 0 {
        return Ok(a.string(b""));
    }
    let missing = len - count;
    if !a.fits(len.saturating_mul(4), "lpad") && !a.fits(len, "lpad") {
        return Ok(Value::Null);
    }
    let mut fill = padding.as_bytes().repeat(missing / unit);
    fill.extend_from_slice(slice(&padding, 0, missing % unit));
    let out = if left { [&fill, text.as_bytes()].concat() } else { [text.as_bytes(), &fill].concat() };
    Ok(a.string(&out))
}

/// Where `needle` begins in `text`, byte for byte, at or after `from`.
fn find(text: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    if needle.is_empty() {
        return (from <= text.len()).then_some(from);
    }
    let rest = text.get(from..)?;
    rest.windows(needle.len()).position(|w| w == needle).map(|at| at + from)
}

fn replace(a: &mut Args<'_, '_>) -> Result<Value> {
    let (text, from, to) = (some!(a.text(0)?), some!(a.text(1)?), some!(a.text(2)?));
    if from.is_empty() {
        return Ok(a.string(text.as_bytes()));
    }
    let (bytes, mut out, mut done) = (text.as_bytes(), Vec::new(), 0);
    while let Some(at) = find(bytes, from.as_bytes(), done) {
        out.extend_from_slice(&bytes[done..at]);
        out.extend_from_slice(to.as_bytes());
        done = at + from.len();
        if !a.fits(out.len(), "replace") {
            return Ok(Value::Null);
        }
    }
    out.extend_from_slice(&bytes[done..]);
    Ok(a.string(&out))
}

fn locate(a: &mut Args<'_, '_>, what_at: usize, text_at: usize) -> Result<Value> {
    let all: Vec<_> = a.exprs.iter().take(2).collect();
    let (collation, _) = super::types::agree(&all, "locate", a.connection())?;
    let (what, text) = (some!(a.text_in(what_at, collation)?), some!(a.text_in(text_at, collation)?));
    let start = if a.len() > 2 { some!(a.int(2)?) } else { 1 };
    let Ok(start) = usize::try_from(start.saturating_sub(1)) else { return Ok(Value::Int(0)) };
    let needed = what.char_count();
    let count = text.char_count();
    if start > count || needed > count - start {
        return Ok(Value::Int(0));
    }
    let (charset, bytes) = (collation.charset(), text.as_bytes());
    let mut offset = charset.char_offset(bytes, start);
    for at in start..=count - needed {
        let rest = &bytes[offset..];
        let len = charset.char_offset(rest, needed).min(rest.len());
        let hit = if collation.is_case_insensitive() {
            collation.equal(&rest[..len], what.as_bytes())
        } else {
            &rest[..len] == what.as_bytes()
        };
        if hit {
            return Ok(Value::Int(at as i64 + 1));
        }
        offset += charset.char_len(rest).max(1).min(rest.len().max(1));
    }
    Ok(Value::Int(0))
}

fn reverse(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.text(0)?);
    let (charset, mut rest) = (text.charset(), text.as_bytes());
    let mut out = vec![0; rest.len()];
    let mut end = rest.len();
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(charset.char_len(rest).clamp(1, rest.len()));
        out[end - head.len()..end].copy_from_slice(head);
        end -= head.len();
        rest = tail;
    }
    Ok(a.string(&out))
}

fn repeat(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.text(0)?);
    let times = some!(a.int(1)?).max(0) as usize;
    if !a.fits(text.len().saturating_mul(times), "repeat") {
        return Ok(Value::Null);
    }
    Ok(a.string(&text.as_bytes().repeat(if text.is_empty() { 0 } else { times })))
}

fn space(a: &mut Args<'_, '_>) -> Result<Value> {
    let times = some!(a.int(0)?).max(0) as usize;
    if !a.fits(times, "space") {
        return Ok(Value::Null);
    }
    let spaces = " ".repeat(times);
    Ok(Value::Text(Text::new(spaces.as_bytes(), a.connection())))
}

fn ord(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.own_text(0)?);
    let bytes = text.as_bytes();
    let len = if bytes.is_empty() { 0 } else { text.charset().char_len(bytes).clamp(1, bytes.len()) };
    Ok(Value::Int(bytes[..len].iter().fold(0, |n, b| n << 8 | i64::from(*b))))
}

fn chars(a: &mut Args<'_, '_>) -> Result<Value> {
    let mut out = Vec::new();
    for at in 0..a.len() {
        let Some(n) = a.int(at)? else { continue };
        let bytes = (n as u32).to_be_bytes();
        let skip = bytes.iter().take(3).take_while(|b| **b == 0).count();
        out.extend_from_slice(&bytes[skip..]);
    }
    Ok(Value::bytes(&out))
}

fn hex(a: &mut Args<'_, '_>) -> Result<Value> {
    use std::fmt::Write as _;
    let value = a.val(0)?;
    let text = match &value {
        Value::Null => return Ok(Value::Null),
        Value::Text(text) => {
            if !a.fits(text.len() * 2, "hex") {
                return Ok(Value::Null);
            }
            let mut out = String::with_capacity(text.len() * 2);
            for b in text.as_bytes() {
                // Writing to a String cannot fail.
                let _ = write!(out, "{b:02X}");
            }
            out
        }
        number if number.is_numeric() => format!("{:X}", cast::to_int(number, a.ctx.warnings) as u64),
        other => {
            let text = cast::to_text(other, Collation::default());
            text.as_bytes().iter().map(|b| format!("{b:02X}")).collect()
        }
    };
    Ok(a.string(text.as_bytes()))
}

fn unhex(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.own_text(0)?);
    let digits: Option<Vec<u8>> =
        text.as_bytes().iter().map(|b| (*b as char).to_digit(16).map(|d| d as u8)).collect();
    let digits = some!(digits);
    let (head, tail) = digits.split_at(digits.len() % 2);
    let mut out = head.to_vec();
    out.extend(tail.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]));
    Ok(Value::bytes(&out))
}

/// A number in a base from 2 to 36.
fn in_base(mut value: u64, base: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((value % base) as u32, base as u32).unwrap_or('0').to_ascii_uppercase());
        value /= base;
        if value == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// BIN and OCT: CONV from base 10, so the text of the argument counts.
fn radix(a: &mut Args<'_, '_>, base: u64) -> Result<Value> {
    let text = some!(a.own_text(0)?);
    let text = text.to_str_lossy();
    if text.is_empty() {
        return Ok(Value::Null);
    }
    Ok(a.string(in_base(leading_number(&text, 10), base).as_bytes()))
}

/// The number a text begins with, in a base; a negative one as its 64 bits.
fn leading_number(text: &str, base: u64) -> u64 {
    let text = text.trim();
    let mut value = 0u64;
    for c in text.trim_start_matches(['-', '+']).chars() {
        let Some(digit) = c.to_digit(base as u32) else { break };
        value = value.checked_mul(base).and_then(|v| v.checked_add(u64::from(digit))).unwrap_or(u64::MAX);
    }
    if text.starts_with('-') { value.wrapping_neg() } else { value }
}

fn conv(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.own_text(0)?).to_str_lossy().trim().to_owned();
    let (from, to) = (some!(a.int(1)?), some!(a.int(2)?));
    let (from_base, to_base) = (from.unsigned_abs(), to.unsigned_abs());
    if !(2..=36).contains(&from_base) || !(2..=36).contains(&to_base) {
        return Ok(Value::Null);
    }
    let value = leading_number(&text, from_base);
    let out = if to < 0 && (value as i64) < 0 {
        format!("-{}", in_base((value as i64).unsigned_abs(), to_base))
    } else {
        in_base(value, to_base)
    };
    Ok(a.string(out.as_bytes()))
}

fn format(a: &mut Args<'_, '_>) -> Result<Value> {
    let value = a.val(0)?;
    let places = some!(a.int(1)?).clamp(0, 30) as u8;
    if value.is_null() {
        return Ok(Value::Null);
    }
    let fixed = match &value {
        Value::Double(_) | Value::Float(_) | Value::Text(_) => {
            number::format_fixed(cast::to_f64(&value, a.ctx.warnings), places)
        }
        exact => cast::as_decimal(exact).round(places).map_or_else(|_| "0".to_owned(), |d| d.to_string()),
    };
    let (sign, digits) = fixed.strip_prefix('-').map_or(("", &*fixed), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut out = String::from(sign);
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    if places > 0 {
        out.push('.');
        out.push_str(fraction);
    }
    Ok(a.string(out.as_bytes()))
}

fn field(a: &mut Args<'_, '_>) -> Result<Value> {
    let wanted = a.val(0)?;
    if wanted.is_null() {
        return Ok(Value::Int(0));
    }
    for at in 1..a.len() {
        if compare::compare(&wanted, &a.val(at)?).is_some_and(std::cmp::Ordering::is_eq) {
            return Ok(Value::Int(at as i64));
        }
    }
    Ok(Value::Int(0))
}

fn elt(a: &mut Args<'_, '_>) -> Result<Value> {
    let at = some!(a.int(0)?);
    match usize::try_from(at) {
        Ok(at) if at > 0 => a.result(at),
        _ => Ok(Value::Null),
    }
}

fn find_in_set(a: &mut Args<'_, '_>) -> Result<Value> {
    let (texts, collation) = some!(a.texts("find_in_set")?);
    let (what, list) = (texts[0].as_bytes(), texts[1].as_bytes());
    if list.is_empty() || what.contains(&b',') {
        return Ok(Value::Int(0));
    }
    let at = list.split(|b| *b == b',').position(|item| collation.equal(item, what));
    Ok(Value::Int(at.map_or(0, |at| at as i64 + 1)))
}

fn strcmp(a: &mut Args<'_, '_>) -> Result<Value> {
    let (texts, collation) = some!(a.texts("strcmp")?);
    Ok(Value::Int(collation.compare(texts[0].as_bytes(), texts[1].as_bytes()) as i64))
}

fn insert(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.text(0)?);
    let (position, len) = (some!(a.int(1)?), some!(a.int(2)?));
    let new = some!(a.text(3)?);
    let count = text.char_count() as i64;
    if position < 1 || position > count {
        return Ok(a.string(text.as_bytes()));
    }
    let from = position - 1;
    let len = if len < 0 { count } else { len };
    let to = from.saturating_add(len).min(count);
    if !a.fits(text.len() + new.len(), "insert") {
        return Ok(Value::Null);
    }
    let parts = [slice(&text, 0, from as usize), new.as_bytes(), slice(&text, to as usize, count as usize)];
    Ok(a.string(&parts.concat()))
}

fn quote(a: &mut Args<'_, '_>) -> Result<Value> {
    let Some(text) = a.text(0)? else { return Ok(a.string(b"NULL")) };
    let mut out = vec![b'\''];
    for &b in text.as_bytes() {
        match b {
            0 => out.extend_from_slice(b"\\0"),
            26 => out.extend_from_slice(b"\\Z"),
            b'\'' | b'\\' => out.extend([b'\\', b]),
            b => out.push(b),
        }
    }
    out.push(b'\'');
    Ok(a.string(&out))
}

fn substring_index(a: &mut Args<'_, '_>) -> Result<Value> {
    let (text, delimiter) = (some!(a.text(0)?), some!(a.text(1)?));
    let count = some!(a.int(2)?);
    let (bytes, delimiter) = (text.as_bytes(), delimiter.as_bytes());
    if delimiter.is_empty() || count == 0 {
        return Ok(a.string(b""));
    }
    let mut hits = Vec::new();
    let mut from = 0;
    while let Some(at) = find(bytes, delimiter, from) {
        hits.push(at);
        from = at + delimiter.len();
    }
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let out = if wanted > hits.len() {
        bytes
    } else if count > 0 {
        &bytes[..hits[wanted - 1]]
    } else {
        &bytes[hits[hits.len() - wanted] + delimiter.len()..]
    };
    Ok(a.string(out))
}

fn soundex(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.text(0)?);
    let code = |c: u8| match c.to_ascii_uppercase() {
        b'B' | b'F' | b'P' | b'V' => b'1',
        b'C' | b'G' | b'J' | b'K' | b'Q' | b'S' | b'X' | b'Z' => b'2',
        b'D' | b'T' => b'3',
        b'L' => b'4',
        b'M' | b'N' => b'5',
        b'R' => b'6',
        _ => b'0',
    };
    let letters = text.as_bytes().iter().copied().filter(u8::is_ascii_alphabetic);
    let (mut out, mut last) = (Vec::new(), 0);
    for c in letters {
        let digit = code(c);
        if out.is_empty() {
            out.push(c.to_ascii_uppercase());
        } else if digit != b'0' && digit != last {
            out.push(digit);
        }
        // Vowels do not separate equal codes.
        if digit != b'0' {
            last = digit;
        }
    }
    while !out.is_empty() && out.len() < 4 {
        out.push(b'0');
    }
    Ok(a.string(&out))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.own_text(0)?);
    if !a.fits(text.len() / 3 * 4 + text.len() / 57 + 8, "to_base64") {
        return Ok(Value::Null);
    }
    let mut out = Vec::new();
    for (i, chunk) in text.as_bytes().chunks(3).enumerate() {
        // Lines of 76 characters.
        if i > 0 && i % 19 == 0 {
            out.push(b'\n');
        }
        let bits = chunk.iter().enumerate().fold(0u32, |n, (i, b)| n | u32::from(*b) << (16 - 8 * i));
        for k in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * k) & 63) as usize];
            out.push(if k <= chunk.len() { digit } else { b'=' });
        }
    }
    Ok(a.string(&out))
}

fn from_base64(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.own_text(0)?);
    let clean: Vec<u8> = text.as_bytes().iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
    let padding = clean.iter().rev().take_while(|b| **b == b'=').count();
    if !clean.len().is_multiple_of(4) || padding > 2 {
        return Ok(Value::Null);
    }
    let mut out = Vec::with_capacity(clean.len() / 4 * 3);
    let digits = &clean[..clean.len() - padding];
    for chunk in digits.chunks(4) {
        let mut bits = 0u32;
        for (i, b) in chunk.iter().enumerate() {
            let digit = some!(BASE64.iter().position(|d| d == b));
            bits |= (digit as u32) << (18 - 6 * i);
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..chunk.len().max(1)]);
    }
    Ok(Value::bytes(&out))
}
