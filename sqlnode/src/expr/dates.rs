//! Arithmetic on dates: intervals, EXTRACT, differences, week numbers, DATE_FORMAT and STR_TO_DATE.

use super::EvalContext;
use crate::parser::ast::TimeUnit;
use crate::value::temporal::{
    Date, DateRules, DateTime, MICROS_PER_SECOND, Time, days_in_month, days_in_year,
};
use crate::value::{Decimal, ErrorCode, MySqlError, Value, cast};

/// An amount of time: months, and microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    months: i64,
    micros: i128,
}

/// Whether the unit moves a date by whole days.
pub(super) fn unit_is_whole_days(unit: TimeUnit) -> bool {
    use TimeUnit as U;
    matches!(unit, U::Day | U::Week | U::Month | U::Quarter | U::Year | U::YearMonth)
}

/// Whether the unit counts microseconds.
pub(super) fn unit_has_micros(unit: TimeUnit) -> bool {
    use TimeUnit as U;
    matches!(
        unit,
        U::Microsecond | U::SecondMicrosecond | U::MinuteMicrosecond | U::HourMicrosecond | U::DayMicrosecond
    )
}

/// The rules for dates as operands: zero dates are NULL for most functions, which check for themselves.
pub(super) fn lenient() -> DateRules {
    DateRules::default()
}

/// The value as a moment.
pub(super) fn moment(value: &Value, ctx: &mut EvalContext<'_>) -> Option<DateTime> {
    let today = ctx.today();
    cast::to_datetime(value, lenient(), Some(today), ctx.warnings)
}

const SECOND: i128 = MICROS_PER_SECOND as i128;

/// Reads an amount of a unit.
fn span(amount: &Value, unit: TimeUnit, ctx: &mut EvalContext<'_>) -> Option<Span> {
    use TimeUnit as U;
    let parts: &[i128] = match unit {
        // Scales of the parts of a compound unit, in microseconds (in months for YEAR_MONTH).
        U::SecondMicrosecond => &[SECOND, 1],
        U::MinuteMicrosecond => &[60 * SECOND, SECOND, 1],
        U::MinuteSecond => &[60 * SECOND, SECOND],
        U::HourMicrosecond => &[3600 * SECOND, 60 * SECOND, SECOND, 1],
        U::HourSecond => &[3600 * SECOND, 60 * SECOND, SECOND],
        U::HourMinute => &[3600 * SECOND, 60 * SECOND],
        U::DayMicrosecond => &[86_400 * SECOND, 3600 * SECOND, 60 * SECOND, SECOND, 1],
        U::DaySecond => &[86_400 * SECOND, 3600 * SECOND, 60 * SECOND, SECOND],
        U::DayMinute => &[86_400 * SECOND, 3600 * SECOND, 60 * SECOND],
        U::DayHour => &[86_400 * SECOND, 3600 * SECOND],
        U::YearMonth => &[12, 1],
        U::Microsecond
        | U::Second
        | U::Minute
        | U::Hour
        | U::Day
        | U::Week
        | U::Month
        | U::Quarter
        | U::Year => return simple_span(amount, unit, ctx),
    };
    let text = cast::to_text(amount, crate::value::Collation::default());
    let total = compound(&text.to_str_lossy(), parts, unit_has_micros(unit))?;
    Some(if unit == U::YearMonth {
        Span { months: i64::try_from(total).ok()?, micros: 0 }
    } else {
        Span { months: 0, micros: total }
    })
}

/// The numbers of a text, right-aligned on the parts of a unit: `'1:30'` as HOUR_SECOND is a minute and a
/// half.
fn compound(text: &str, parts: &[i128], micros_last: bool) -> Option<i128> {
    let negative = text.trim_start().starts_with('-');
    let numbers: Vec<&str> =
        text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).collect();
    if numbers.len() > parts.len() {
        return None;
    }
    let missing = parts.len() - numbers.len();
    let mut total = 0i128;
    for (i, (digits, scale)) in numbers.iter().zip(&parts[missing..]).enumerate() {
        let mut value: i128 = digits.parse::<u64>().ok()?.into();
        if micros_last && missing + i + 1 == parts.len() && digits.len() < 6 {
            // A fraction: '.5' is half a second.
            value *= 10i128.pow(6 - digits.len() as u32);
        }
        total = total.checked_add(value.checked_mul(*scale)?)?;
    }
    Some(if negative { -total } else { total })
}

fn simple_span(amount: &Value, unit: TimeUnit, ctx: &mut EvalContext<'_>) -> Option<Span> {
    use TimeUnit as U;
    if unit == U::Second {
        let seconds = cast::to_decimal(amount, ctx.warnings);
        let micros = seconds.mul(&Decimal::from(MICROS_PER_SECOND)).ok()?.to_i128()?;
        return Some(Span { months: 0, micros });
    }
    let n = cast::to_int(amount, ctx.warnings);
    let months = |k: i128| Some(Span { months: i64::try_from(n * k).ok()?, micros: 0 });
    let micros = |k: i128| Some(Span { months: 0, micros: n.checked_mul(k)? });
    match unit {
        U::Year => months(12),
        U::Quarter => months(3),
        U::Month => months(1),
        U::Week => micros(7 * 86_400 * SECOND),
        U::Day => micros(86_400 * SECOND),
        U::Hour => micros(3600 * SECOND),
        U::Minute => micros(60 * SECOND),
        _ => micros(1),
    }
}

/// Moves a moment; `None` outside the years 0 to 9999.
fn shift(start: DateTime, span: Span, fsp: u8) -> Option<DateTime> {
    let date = start.date();
    let mut moved = start.with_fsp(fsp);
    if span.months != 0 {
        let months = i64::from(date.year()) * 12 + i64::from(date.month()) - 1;
        let months = months.checked_add(span.months).filter(|m| (0..120_000).contains(m))?;
        let (year, month) = ((months / 12) as u32, (months % 12) as u32 + 1);
        let day = date.day().min(days_in_month(year, month));
        moved = DateTime::from_date_micros(Date::new(year, month, day)?, start.micros_of_day(), fsp)?;
    }
    if span.micros != 0 {
        let linear = i128::from(moved.linear_micros()?) + span.micros;
        moved = DateTime::from_linear_micros(i64::try_from(linear).ok()?, fsp)?;
    }
    Some(moved)
}

/// `value + INTERVAL amount unit`, or minus.
pub(super) fn add_interval(
    value: &Value,
    sub: bool,
    amount: &Value,
    unit: TimeUnit,
    ctx: &mut EvalContext<'_>,
) -> Value {
    if value.is_null() || amount.is_null() {
        return Value::Null;
    }
    let Some(mut span) = span(amount, unit, ctx) else { return Value::Null };
    if sub {
        span = Span { months: -span.months, micros: -span.micros };
    }
    if let (Value::Time(time), false) = (value, unit_is_whole_days(unit)) {
        let micros = i64::try_from(i128::from(time.micros()) + span.micros).ok();
        let fsp = if span.micros % SECOND != 0 { 6 } else { time.fsp() };
        return micros.and_then(|micros| Time::from_micros(micros, fsp)).map_or(Value::Null, Value::Time);
    }
    let Some(start) = moment(value, ctx) else { return Value::Null };
    if start.date().has_zero_part() {
        return Value::Null;
    }
    let fsp = if unit_has_micros(unit) || span.micros % SECOND != 0 { 6 } else { start.fsp() };
    let Some(moved) = shift(start, span, fsp) else {
        let text = "Datetime function: datetime field overflow";
        ctx.warnings.warn(MySqlError::text(ErrorCode::TruncatedWrongValue, text));
        return Value::Null;
    };
    let stays_date = match value {
        Value::Date(_) => unit_is_whole_days(unit),
        // A text that is only a date gives one.
        Value::Text(text) => {
            unit_is_whole_days(unit) && !text.as_bytes().iter().any(|c| matches!(c, b':' | b' ' | b'T'))
        }
        _ => false,
    };
    if stays_date { Value::Date(moved.date()) } else { Value::DateTime(moved) }
}

/// EXTRACT(unit FROM value).
pub(super) fn extract(unit: TimeUnit, value: &Value, ctx: &mut EvalContext<'_>) -> Value {
    use TimeUnit as U;
    if value.is_null() {
        return Value::Null;
    }
    if let U::Year | U::Quarter | U::Month | U::Week | U::YearMonth = unit {
        let Some(at) = moment(value, ctx) else { return Value::Null };
        let date = at.date();
        let number = match unit {
            U::Year => date.year(),
            U::Quarter => date.month().div_ceil(3),
            U::Month => date.month(),
            U::Week => week(date, 0).map_or(0, |(_, week)| week),
            _ => date.year() * 100 + date.month(),
        };
        return Value::Int(i64::from(number));
    }
    let Some((sign, day, time)) = clock(value, ctx) else { return Value::Null };
    let (h, m, s, f) =
        (i64::from(time.hour()), i64::from(time.minute()), i64::from(time.second()), i64::from(time.micro()));
    let hms = h * 10_000 + m * 100 + s;
    let number = match unit {
        U::Microsecond => f,
        U::Second => s,
        U::Minute => m,
        U::Hour => h,
        U::Day => day,
        U::SecondMicrosecond => s * 1_000_000 + f,
        U::MinuteMicrosecond => (m * 100 + s) * 1_000_000 + f,
        U::MinuteSecond => m * 100 + s,
        U::HourMicrosecond => hms * 1_000_000 + f,
        U::HourSecond => hms,
        U::HourMinute => h * 100 + m,
        U::DayMicrosecond => (day * 1_000_000 + hms) * 1_000_000 + f,
        U::DaySecond => day * 1_000_000 + hms,
        U::DayMinute => day * 10_000 + h * 100 + m,
        _ => day * 100 + h,
    };
    Value::Int(sign * number)
}

/// Sign, day of the month and time of day of a date, time or text of either.
fn clock(value: &Value, ctx: &mut EvalContext<'_>) -> Option<(i64, i64, Time)> {
    let as_time = match value {
        Value::Time(_) => true,
        Value::Text(text) => {
            let text = text.to_str_lossy();
            text.contains(':') && !text.trim_start().trim_start_matches('-').contains('-')
        }
        _ => false,
    };
    if as_time {
        let time = cast::to_time(value, ctx.warnings)?;
        return Some((if time.is_negative() { -1 } else { 1 }, 0, time));
    }
    let at = moment(value, ctx)?;
    Some((1, i64::from(at.date().day()), at.time_of_day()))
}

/// TIMESTAMPDIFF: from `a` to `b` in whole units.
pub(super) fn difference(unit: TimeUnit, a: &Value, b: &Value, ctx: &mut EvalContext<'_>) -> Value {
    use TimeUnit as U;
    if a.is_null() || b.is_null() {
        return Value::Null;
    }
    let (Some(a), Some(b)) = (moment(a, ctx), moment(b, ctx)) else { return Value::Null };
    let months = |k: i64| {
        let (early, late, sign) = if a.packed() <= b.packed() { (a, b, 1) } else { (b, a, -1) };
        let month = |d: Date| i64::from(d.year()) * 12 + i64::from(d.month());
        let rest = |t: DateTime| (t.date().day(), t.micros_of_day());
        let incomplete = rest(late) < rest(early);
        sign * ((month(late.date()) - month(early.date()) - i64::from(incomplete)) / k)
    };
    let number = match unit {
        U::Year => months(12),
        U::Quarter => months(3),
        U::Month | U::YearMonth => months(1),
        _ => {
            let (Some(from), Some(to)) = (a.linear_micros(), b.linear_micros()) else { return Value::Null };
            let divisor = match unit {
                U::Week => 7 * 86_400 * MICROS_PER_SECOND,
                U::Day => 86_400 * MICROS_PER_SECOND,
                U::Hour => 3600 * MICROS_PER_SECOND,
                U::Minute => 60 * MICROS_PER_SECOND,
                U::Second => MICROS_PER_SECOND,
                _ => 1,
            };
            (to - from) / divisor
        }
    };
    Value::Int(number)
}

/// WEEK(date, mode): the year the week belongs to, and its number. Bit 0 of the mode: weeks begin on
/// Monday; bit 1: the first days may belong to the last week of the year before; bit 2: together with bit 0
/// it decides whether week 1 is the first with its first day in the year, or the first with four days in
/// it.
pub(super) fn week(date: Date, mode: u32) -> Option<(u32, u32)> {
    let monday_first = mode & 1 == 1;
    let by_first_day = (mode & 4 != 0) == monday_first;
    let day = i64::from(date.day_number()?);
    let first_week = |year: u32| -> Option<i64> {
        let new_year = Date::new(year, 1, 1)?;
        let number = i64::from(new_year.day_number()?);
        let weekday = i64::from(new_year.weekday()?);
        let offset = if monday_first { weekday } else { (weekday + 1) % 7 };
        Some(match (by_first_day, offset) {
            (true, offset) => number + (7 - offset) % 7,
            (false, 0..=3) => number - offset,
            (false, offset) => number + 7 - offset,
        })
    };
    let year = date.year();
    let start = first_week(year)?;
    if day < start {
        if mode & 2 == 0 {
            return Some((year, 0));
        }
        let before = year.checked_sub(1)?;
        return Some((before, ((day - first_week(before)?) / 7 + 1) as u32));
    }
    if mode & 2 != 0 && day >= first_week(year + 1).unwrap_or(i64::MAX) {
        return Some((year + 1, 1));
    }
    Some((year, ((day - start) / 7 + 1) as u32))
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The English name of a month, if it is one.
pub(super) fn month_name(month: u32) -> Option<&'static str> {
    MONTHS.get((month as usize).wrapping_sub(1)).copied()
}

/// The English name of a weekday (0 is Monday).
pub(super) fn day_name(weekday: u32) -> &'static str {
    DAYS[weekday as usize % 7]
}

/// The day of the year.
pub(super) fn day_of_year(date: Date) -> Option<u32> {
    let first = Date::new(date.year(), 1, 1)?.day_number()?;
    Some(date.day_number()? - first + 1)
}

/// DATE_FORMAT. `None` where MySQL returns NULL (a name of no month).
pub(super) fn format(at: DateTime, pattern: &str) -> Option<String> {
    use std::fmt::Write as _;
    let date = at.date();
    let hour12 = (at.hour() + 11) % 12 + 1;
    let half = if at.hour() % 24 < 12 { "AM" } else { "PM" };
    let mut out = String::with_capacity(pattern.len() * 2);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let Some(spec) = chars.next() else { break };
        // Writing to a String cannot fail.
        let _ = match spec {
            'Y' => write!(out, "{:04}", date.year()),
            'y' => write!(out, "{:02}", date.year() % 100),
            'm' => write!(out, "{:02}", date.month()),
            'c' => write!(out, "{}", date.month()),
            'M' => write!(out, "{}", month_name(date.month())?),
            'b' => write!(out, "{}", &month_name(date.month())?[..3]),
            'd' => write!(out, "{:02}", date.day()),
            'e' => write!(out, "{}", date.day()),
            'D' => write!(out, "{}{}", date.day(), ordinal(date.day())),
            'j' => write!(out, "{:03}", day_of_year(date)?),
            'H' => write!(out, "{:02}", at.hour()),
            'k' => write!(out, "{}", at.hour()),
            'h' | 'I' => write!(out, "{hour12:02}"),
            'l' => write!(out, "{hour12}"),
            'i' => write!(out, "{:02}", at.minute()),
            's' | 'S' => write!(out, "{:02}", at.second()),
            'f' => write!(out, "{:06}", at.micro()),
            'p' => write!(out, "{half}"),
            'r' => write!(out, "{hour12:02}:{:02}:{:02} {half}", at.minute(), at.second()),
            'T' => write!(out, "{:02}:{:02}:{:02}", at.hour(), at.minute(), at.second()),
            'W' => write!(out, "{}", day_name(date.weekday()?)),
            'a' => write!(out, "{}", &day_name(date.weekday()?)[..3]),
            'w' => write!(out, "{}", (date.weekday()? + 1) % 7),
            'U' => write!(out, "{:02}", week(date, 0)?.1),
            'u' => write!(out, "{:02}", week(date, 1)?.1),
            'V' => write!(out, "{:02}", week(date, 2)?.1),
            'v' => write!(out, "{:02}", week(date, 3)?.1),
            'X' => write!(out, "{:04}", week(date, 2)?.0),
            'x' => write!(out, "{:04}", week(date, 3)?.0),
            other => write!(out, "{other}"),
        };
    }
    Some(out)
}

fn ordinal(day: u32) -> &'static str {
    match (day, day % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// What STR_TO_DATE found.
#[derive(Default)]
struct Found {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    micro: u32,
    afternoon: Option<bool>,
    day_of_year: Option<u32>,
}

/// Which parts a format of STR_TO_DATE has: (date, time, fraction).
pub(super) fn format_parts(pattern: &str) -> (bool, bool, bool) {
    let specs: Vec<char> = pattern.split('%').skip(1).filter_map(|part| part.chars().next()).collect();
    let has = |set: &str| specs.iter().any(|c| set.contains(*c));
    (has("YymcMbdeDjUuVvXxWaw"), has("HkhIlisSpfrT"), has("f"))
}

/// STR_TO_DATE; `None` if the text does not fit the format.
pub(super) fn parse(text: &str, pattern: &str) -> Option<Value> {
    let mut found = Found::default();
    let mut rest = text;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        rest = rest.trim_start();
        if c == '%' {
            rest = parse_part(chars.next()?, rest, &mut found)?;
        } else if !c.is_whitespace() {
            rest = rest.strip_prefix(c)?;
        }
    }
    if let Some(afternoon) = found.afternoon {
        found.hour = found.hour % 12 + if afternoon { 12 } else { 0 };
    }
    if let (Some(n), true) = (found.day_of_year, found.year > 0) {
        let first = Date::new(found.year, 1, 1)?.day_number()?;
        if n == 0 || n > days_in_year(found.year) {
            return None;
        }
        let date = Date::from_day_number(i64::from(first) + i64::from(n) - 1);
        (found.month, found.day) = (date.month(), date.day());
    }
    let (has_date, has_time, fraction) = format_parts(pattern);
    let fsp = if fraction { 6 } else { 0 };
    let micros = i64::from((found.hour * 60 + found.minute) * 60 + found.second) * MICROS_PER_SECOND
        + i64::from(found.micro);
    if !has_date {
        return Time::from_micros(micros, fsp).map(Value::Time);
    }
    let date = Date::new(found.year, found.month, found.day)?;
    if !has_time {
        return Some(Value::Date(date));
    }
    DateTime::from_date_micros(date, micros, fsp).map(Value::DateTime)
}

fn parse_part<'t>(spec: char, rest: &'t str, found: &mut Found) -> Option<&'t str> {
    let number = |most: usize| -> Option<(u32, &'t str)> {
        let len = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        Some((rest.get(..len)?.parse().ok()?, &rest[len..]))
    };
    let mut set = |most: usize, to: fn(&mut Found) -> &mut u32, max: u32| -> Option<&'t str> {
        let (value, tail) = number(most)?;
        *to(found) = value;
        (value <= max).then_some(tail)
    };
    match spec {
        'Y' => set(4, |f| &mut f.year, 9999),
        'y' => {
            let (value, tail) = number(2)?;
            found.year = if value < 70 { 2000 + value } else { 1900 + value };
            Some(tail)
        }
        'm' | 'c' => set(2, |f| &mut f.month, 12),
        'd' | 'e' => set(2, |f| &mut f.day, 31),
        'D' => {
            let tail = set(2, |f| &mut f.day, 31)?;
            tail.get(2..)
        }
        'H' | 'k' => set(2, |f| &mut f.hour, 23),
        'h' | 'I' | 'l' => set(2, |f| &mut f.hour, 12),
        'i' => set(2, |f| &mut f.minute, 59),
        's' | 'S' => set(2, |f| &mut f.second, 59),
        'f' => {
            let (value, tail) = number(6)?;
            found.micro = value * 10u32.pow(6 - (rest.len() - tail.len()) as u32);
            Some(tail)
        }
        'j' => {
            let (value, tail) = number(3)?;
            found.day_of_year = Some(value);
            Some(tail)
        }
        'p' => {
            let half = rest.get(..2)?;
            found.afternoon = Some(half.eq_ignore_ascii_case("PM"));
            (half.eq_ignore_ascii_case("AM") || found.afternoon == Some(true)).then_some(&rest[2..])
        }
        'M' | 'b' => {
            let starts = |name: &&str| rest.get(..name.len()).is_some_and(|t| t.eq_ignore_ascii_case(name));
            let short = MONTHS.map(|name| &name[..3]);
            let names = if spec == 'M' { MONTHS } else { short };
            let at = names.iter().position(starts)?;
            found.month = at as u32 + 1;
            rest.get(names[at].len()..)
        }
        'W' | 'a' => Some(rest.trim_start_matches(|c: char| c.is_ascii_alphabetic())),
        'T' => "%H:%i:%S".split(':').enumerate().try_fold(rest, |rest, (i, part)| {
            let rest = if i > 0 { rest.strip_prefix(':')? } else { rest };
            parse_part(part.chars().nth(1)?, rest, found)
        }),
        'r' => {
            let rest = parse_part('h', rest, found)?.strip_prefix(':')?;
            let rest = parse_part('i', rest, found)?.strip_prefix(':')?;
            parse_part('p', parse_part('s', rest, found)?.trim_start(), found)
        }
        '%' => rest.strip_prefix('%'),
        _ => None,
    }
}
