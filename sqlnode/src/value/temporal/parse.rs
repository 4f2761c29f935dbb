//! Reading dates and times from text and numbers, in all the forms MySQL takes.
//!
//! Text: `2020-1-2`, `2020.01.02 3:4:5.6`, `2020-01-02T03:04:05`, `20200102`, `200102030405`, `20-1-2`. Any
//! punctuation may stand between parts. Two-digit years are 1970 to 2069. A number is read as its digits.
//! Times: `11:12`, `1 11:12:13`, `111213`, `-838:59:59`, or a whole date and time whose time is taken.
//!
//! Reading reports two things apart: whether there is a valid value at all, and whether text was left over
//! (which is a warning). Dates with zero parts are allowed or not by [`DateRules`], from sql_mode.

use super::{Date, DateTime, Time, days_in_month};
use crate::value::SqlMode;

/// Which unusual dates are valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DateRules {
    /// '0000-00-00' is not.
    pub no_zero_date: bool,
    /// A zero month or day in a date that is not all zero is not.
    pub no_zero_in_date: bool,
    /// Days up to 31 are valid in every month.
    pub allow_invalid: bool,
}

impl DateRules {
    /// The rules of a session. The NO_ZERO flags make errors only together with strict mode, where a value is
    /// written; both kinds of callers use them, so strictness is the caller's.
    pub const fn from_mode(mode: SqlMode) -> DateRules {
        DateRules {
            no_zero_date: mode.contains(SqlMode::NO_ZERO_DATE),
            no_zero_in_date: mode.contains(SqlMode::NO_ZERO_IN_DATE),
            allow_invalid: mode.contains(SqlMode::ALLOW_INVALID_DATES),
        }
    }

    /// Whether a date is valid under these rules.
    pub const fn allows(self, date: Date) -> bool {
        if date.is_zero() {
            return !self.no_zero_date;
        }
        if date.has_zero_part() {
            return !self.no_zero_in_date;
        }
        self.allow_invalid || date.day() <= days_in_month(date.year(), date.month())
    }
}

/// A value read from a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<T> {
    /// The value.
    pub value: T,
    /// Whether the whole text was used.
    pub clean: bool,
}

/// The parts of a date and time as they stand in a text.
struct Fields {
    numbers: [u32; 6],
    /// How many of the six were there.
    count: usize,
    micro: u32,
    /// Digits of the fraction that were written, at most 6.
    fsp: u8,
    /// Whether a seventh digit of the fraction rounds up.
    round_up: bool,
    /// Time zone offset written behind, in minutes.
    offset: Option<i32>,
    clean: bool,
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_whitespace())
}

fn digit_run(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

fn number(digits: &[u8]) -> u32 {
    digits.iter().take(9).fold(0, |v, b| v * 10 + u32::from(b - b'0'))
}

/// A year written with two digits, in a date that is not all zeros.
const fn expand_year(year: u32, digits: usize, numbers: &[u32; 6]) -> u32 {
    let [y, m, d, h, min, s] = *numbers;
    if digits != 2 || y | m | d | h | min | s == 0 {
        year
    } else if year < 70 {
        2000 + year
    } else {
        1900 + year
    }
}

/// Reads a DATE: a date, or a date and time whose time is dropped.
pub fn parse_date(text: &str, rules: DateRules) -> Option<Parsed<Date>> {
    let parsed = parse_datetime(text, rules)?;
    Some(Parsed { value: parsed.value.date(), clean: parsed.clean })
}

/// Reads a DATETIME with as many digits of the fraction as are written, rounded to 6. An offset written
/// behind (`+02:00`) is applied, which gives a moment in UTC: see [`parse_datetime_offset`] for both.
pub fn parse_datetime(text: &str, rules: DateRules) -> Option<Parsed<DateTime>> {
    parse_datetime_offset(text, rules).map(|(parsed, _)| parsed)
}

/// Reads a DATETIME and the time zone offset in minutes that may stand behind it (not applied).
pub fn parse_datetime_offset(text: &str, rules: DateRules) -> Option<(Parsed<DateTime>, Option<i32>)> {
    let fields = split_datetime(trim(text).as_bytes())?;
    let [year, month, day, hour, minute, second] = fields.numbers;
    let date = Date::new(year, month, day)?;
    if !rules.allows(date) {
        return None;
    }
    let value = DateTime::new(date, hour, minute, second, fields.micro, fields.fsp)?;
    let value = if fields.round_up { carry_micro(value)? } else { value };
    Some((Parsed { value, clean: fields.clean }, fields.offset))
}

/// One microsecond later.
fn carry_micro(value: DateTime) -> Option<DateTime> {
    DateTime::from_linear_micros(value.linear_micros()? + 1, value.fsp())
}

fn split_datetime(text: &[u8]) -> Option<Fields> {
    let lead = digit_run(text);
    let next = text.get(lead);
    // Without punctuation the parts have fixed widths; `20200102T030405` counts as such.
    let packed = lead >= 5
        && matches!(next, None | Some(b'.' | b'T' | b' ' | b'+' | b'-'))
        && !is_long_year(lead, next);
    if packed { split_packed(text, lead) } else { split_delimited(text) }
}

/// Five digits before a dash are a bad year rather than a packed date.
fn is_long_year(lead: usize, next: Option<&u8>) -> bool {
    lead == 5 && matches!(next, Some(b'-'))
}

fn split_packed(text: &[u8], lead: usize) -> Option<Fields> {
    let year_digits = if lead == 8 || lead >= 14 { 4 } else { 2 };
    let mut fields =
        Fields { numbers: [0; 6], count: 0, micro: 0, fsp: 0, round_up: false, offset: None, clean: true };
    let mut at = 0;
    while at < lead && fields.count < 6 {
        let width = if fields.count == 0 { year_digits } else { 2 };
        let end = (at + width).min(lead);
        fields.numbers[fields.count] = number(&text[at..end]);
        fields.count += 1;
        at = end;
    }
    if fields.count < 3 {
        return None;
    }
    let mut rest = &text[at..];
    // `20200102 030405` and `20200102T030405`.
    if fields.count == 3
        && let Some((b'T' | b' ', time)) = rest.split_first()
    {
        rest = read_time_of_day(time, &mut fields);
    }
    fields.numbers[0] = expand_year(fields.numbers[0], year_digits, &fields.numbers);
    finish(rest, &mut fields);
    Some(fields)
}

fn read_time_of_day<'a>(time: &'a [u8], fields: &mut Fields) -> &'a [u8] {
    let mut rest = time;
    let packed = digit_run(rest) >= 3;
    while fields.count < 6 {
        let run = digit_run(rest);
        if run == 0 {
            break;
        }
        let width = run.min(2);
        fields.numbers[fields.count] = number(&rest[..width]);
        fields.count += 1;
        rest = &rest[width..];
        if !packed && fields.count < 6 {
            match rest.split_first() {
                Some((b':', tail)) if digit_run(tail) > 0 => rest = tail,
                _ => break,
            }
        }
    }
    rest
}

fn split_delimited(text: &[u8]) -> Option<Fields> {
    let mut fields =
        Fields { numbers: [0; 6], count: 0, micro: 0, fsp: 0, round_up: false, offset: None, clean: true };
    let (mut rest, mut year_digits) = (text, 0);
    while fields.count < 6 {
        let run = digit_run(rest);
        if run == 0 {
            break;
        }
        let width = if fields.count == 0 { run } else { run.min(2) };
        if fields.count == 0 && width > 4 {
            return None;
        }
        let value = number(&rest[..width]);
        fields.numbers[fields.count] = value;
        if fields.count == 0 {
            year_digits = width;
        }
        fields.count += 1;
        rest = &rest[width..];
        if fields.count == 6 {
            break;
        }
        let Some(skip) = delimiter_len(rest, fields.count) else { break };
        rest = &rest[skip..];
    }
    // A date needs its three parts.
    if fields.count < 3 {
        return None;
    }
    fields.numbers[0] = expand_year(fields.numbers[0], year_digits, &fields.numbers);
    finish(rest, &mut fields);
    Some(fields)
}

/// The length of what separates part number `count` from the next; `None` if no part follows.
fn delimiter_len(rest: &[u8], count: usize) -> Option<usize> {
    if count == 3 {
        // Between date and time: `T`, or spaces with any punctuation.
        let len = match rest.first() {
            Some(b'T') => 1,
            _ => rest.iter().take_while(|b| b.is_ascii_whitespace() || is_punctuation(**b)).count(),
        };
        let follows = rest.get(len).is_some_and(u8::is_ascii_digit);
        return (len > 0 && follows).then_some(len);
    }
    let len = rest.iter().take_while(|b| is_punctuation(**b)).count();
    let follows = rest.get(len).is_some_and(u8::is_ascii_digit);
    // An offset after the minutes is not a part.
    let offset = count == 5 && read_offset(rest).is_some();
    (len > 0 && follows && !offset).then_some(len)
}

const fn is_punctuation(byte: u8) -> bool {
    byte.is_ascii_punctuation()
}

/// Reads the fraction and the offset; whatever is left makes the text unclean.
fn finish(rest: &[u8], fields: &mut Fields) {
    let mut rest = rest;
    if fields.count == 6
        && let Some((b'.', tail)) = rest.split_first()
    {
        let run = digit_run(tail);
        let (micro, fsp, round_up) = fraction(&tail[..run]);
        (fields.micro, fields.fsp, fields.round_up) = (micro, fsp, round_up);
        rest = &tail[run..];
    }
    if let Some(offset) = read_offset(rest) {
        fields.offset = Some(offset);
        rest = &[];
    }
    fields.clean = rest.iter().all(u8::is_ascii_whitespace);
}

/// Microseconds, digits written (at most 6), and whether the seventh digit rounds up.
fn fraction(digits: &[u8]) -> (u32, u8, bool) {
    let kept = &digits[..digits.len().min(6)];
    let micro = number(kept) * 10u32.pow(6 - kept.len() as u32);
    (micro, kept.len() as u8, digits.get(6).is_some_and(|&d| d >= b'5'))
}

/// `+hh:mm` or `-hh:mm` up to 14 hours, and nothing else.
fn read_offset(rest: &[u8]) -> Option<i32> {
    let [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] = *rest else { return None };
    let digits = [h1, h2, m1, m2];
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let minutes = (number(&digits[..2]) * 60 + number(&digits[2..])) as i32;
    if m1 > b'5' || minutes > 14 * 60 || (sign == b'-' && minutes == 0) {
        return None;
    }
    Some(if sign == b'-' { -minutes } else { minutes })
}

/// Reads a number as a date and time: 20200102, 200102, 20200102030405, 200102030405.
pub fn parse_datetime_number(number: i64, rules: DateRules) -> Option<DateTime> {
    let full = expand_number(number)?;
    let (ymd, hms) = (full / 1_000_000, full % 1_000_000);
    let part = |value: i64, unit: i64| (value / unit % 100) as u32;
    let date = Date::new((ymd / 10_000) as u32, part(ymd, 100), part(ymd, 1))?;
    if !rules.allows(date) {
        return None;
    }
    DateTime::new(date, part(hms, 10_000), part(hms, 100), part(hms, 1), 0, 0)
}

/// The number in the form YYYYMMDDhhmmss.
fn expand_number(number: i64) -> Option<i64> {
    const DAY: i64 = 1_000_000;
    Some(match number {
        0 => 0,
        101..=691_231 => (number + 20_000_000) * DAY,
        700_101..=991_231 => (number + 19_000_000) * DAY,
        10_000_101..=99_991_231 => number * DAY,
        101_000_000..=691_231_235_959 => number + 20_000_000 * DAY,
        700_101_000_000..=991_231_235_959 => number + 19_000_000 * DAY,
        10_000_101_000_000..=99_991_231_235_959 => number,
        _ => return None,
    })
}

/// Reads a TIME. Beyond 838:59:59 the value is cut there and `clean` is false.
pub fn parse_time(text: &str) -> Option<Parsed<Time>> {
    let text = trim(text);
    let (negative, body) = match text.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, text),
    };
    let bytes = body.as_bytes();
    let lead = digit_run(bytes);
    // Twelve digits, or as many characters with a date's punctuation: a whole date and time. A date alone is
    // shorter and read as a number: '2024-05-06' is 20 minutes and 24 seconds, and then junk.
    let looks_like_datetime = !negative
        && (lead >= 12 || (lead >= 1 && matches!(bytes.get(lead), Some(b'-' | b'/')) && bytes.len() >= 12));
    if looks_like_datetime {
        let parsed = parse_datetime(text, DateRules::default())?;
        return Some(Parsed { value: parsed.value.time_of_day(), clean: parsed.clean });
    }
    let (seconds, rest) = read_duration(bytes)?;
    let (micro, fsp, round_up, rest) = match rest.split_first() {
        Some((b'.', tail)) => {
            let run = digit_run(tail);
            let (micro, fsp, round_up) = fraction(&tail[..run]);
            (micro, fsp, round_up, &tail[run..])
        }
        _ => (0, 0, false, rest),
    };
    if is_exponent(rest) {
        return None;
    }
    let magnitude = seconds.saturating_mul(1_000_000).saturating_add(i64::from(micro) + i64::from(round_up));
    let micros = if negative { -magnitude } else { magnitude };
    let value = Time::from_micros_clamped(micros, fsp);
    let clean = rest.iter().all(u8::is_ascii_whitespace) && value.micros() == micros;
    Some(Parsed { value, clean })
}

/// Whether a number goes on with an exponent, as a double written out does: then it is no time.
fn is_exponent(rest: &[u8]) -> bool {
    match rest {
        [b'e' | b'E', b'+' | b'-', digit, ..] | [b'e' | b'E', digit, ..] => digit.is_ascii_digit(),
        _ => false,
    }
}

/// Whole seconds of `[D ]h:m:s`, `h:m`, `hhmmss`, `mmss` or `ss`; minutes and seconds must be below 60.
fn read_duration(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut lead = digit_run(bytes);
    if lead == 0 && bytes.first() != Some(&b':') {
        return None;
    }
    let (mut days, mut rest) = (0, bytes);
    let mut hours_only = false;
    if let Some(b' ') = bytes.get(lead) {
        let after = &bytes[lead..];
        let spaces = after.iter().take_while(|b| **b == b' ').count();
        if digit_run(&after[spaces..]) > 0 {
            days = i64::from(number(&bytes[..lead]));
            rest = &after[spaces..];
            lead = digit_run(rest);
            hours_only = true;
        }
    }
    let first = i64::from(number(&rest[..lead]));
    let mut parts = [first, 0, 0];
    let mut tail = &rest[lead..];
    let mut count = 1;
    while count < 3
        && let Some((b':', after)) = tail.split_first()
        && digit_run(after) > 0
    {
        let run = digit_run(after);
        parts[count] = i64::from(number(&after[..run]));
        tail = &after[run..];
        count += 1;
    }
    let [hours, minutes, seconds] = match count {
        1 if !hours_only => [first / 10_000, first / 100 % 100, first % 100],
        _ => parts,
    };
    if minutes > 59 || seconds > 59 {
        return None;
    }
    Some(((days * 24 + hours) * 3600 + minutes * 60 + seconds, tail))
}

/// Reads a number as a time: 111213 is 11:12:13, -1 is -00:00:01. A number past 7 digits is read as a date
/// and time whose time is taken.
pub fn parse_time_number(number: i64) -> Option<Parsed<Time>> {
    let magnitude = i64::try_from(number.unsigned_abs()).ok()?;
    if number >= 10_000_000_000 {
        let moment = parse_datetime_number(number, DateRules::default())?;
        return Some(Parsed { value: moment.time_of_day(), clean: true });
    }
    let (hours, minutes, seconds) = (magnitude / 10_000, magnitude / 100 % 100, magnitude % 100);
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let micros = (hours.min(10_000) * 3600 + minutes * 60 + seconds) * 1_000_000;
    let signed = if number < 0 { -micros } else { micros };
    let value = Time::from_micros_clamped(signed, 0);
    Some(Parsed { value, clean: value.micros() == signed })
}
