//! Arithmetic on dates: intervals, EXTRACT and differences.
//!
//! An interval is months and microseconds, the two things that do not convert into each other. The units are
//! the parser's. Calendar, week numbers and formats are `value::temporal`'s.

use super::EvalContext;
use crate::parser::ast::TimeUnit;
use crate::value::temporal::{
    Date, DateRules, DateTime, MICROS_PER_SECOND, Time, WeekMode, days_in_month, week_of,
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
            U::Week => week_of(date, WeekMode(0)).map_or(0, |(_, week)| week),
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
