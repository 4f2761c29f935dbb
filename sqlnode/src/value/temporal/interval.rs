//! Intervals: what DATE_ADD and `+ INTERVAL` add, and the adding.
//!
//! Role: an interval is months and microseconds, because those are the two things that do not convert into
//! each other. Compound units (`'1:30' MINUTE_SECOND`) are read leniently: any text between the numbers
//! separates them, and with too few numbers the leftmost units are missing.

use super::{Date, DateTime, MICROS_PER_DAY, MICROS_PER_SECOND, days_in_month};
use crate::value::{Value, cast, number};

/// The unit of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are SQL's words")]
pub enum IntervalUnit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

/// What a unit is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Micros(i64),
    /// Digits of a fraction: `5` means half a second.
    Fraction,
    Months(i64),
}

use Part::{Fraction, Micros, Months};

const SECOND: Part = Micros(MICROS_PER_SECOND);
const MINUTE: Part = Micros(60 * MICROS_PER_SECOND);
const HOUR: Part = Micros(3600 * MICROS_PER_SECOND);
const DAY: Part = Micros(MICROS_PER_DAY);

impl IntervalUnit {
    /// The unit of a word such as `DAY_SECOND`, in any case.
    pub fn by_name(name: &str) -> Option<IntervalUnit> {
        use IntervalUnit as U;
        Some(match name.to_ascii_uppercase().as_str() {
            "MICROSECOND" => U::Microsecond,
            "SECOND" => U::Second,
            "MINUTE" => U::Minute,
            "HOUR" => U::Hour,
            "DAY" => U::Day,
            "WEEK" => U::Week,
            "MONTH" => U::Month,
            "QUARTER" => U::Quarter,
            "YEAR" => U::Year,
            "SECOND_MICROSECOND" => U::SecondMicrosecond,
            "MINUTE_MICROSECOND" => U::MinuteMicrosecond,
            "MINUTE_SECOND" => U::MinuteSecond,
            "HOUR_MICROSECOND" => U::HourMicrosecond,
            "HOUR_SECOND" => U::HourSecond,
            "HOUR_MINUTE" => U::HourMinute,
            "DAY_MICROSECOND" => U::DayMicrosecond,
            "DAY_SECOND" => U::DaySecond,
            "DAY_MINUTE" => U::DayMinute,
            "DAY_HOUR" => U::DayHour,
            "YEAR_MONTH" => U::YearMonth,
            _ => return None,
        })
    }

    const fn parts(self) -> &'static [Part] {
        use IntervalUnit as U;
        match self {
            U::Microsecond => &[Micros(1)],
            U::Second => &[SECOND],
            U::Minute => &[MINUTE],
            U::Hour => &[HOUR],
            U::Day => &[DAY],
            U::Week => &[Micros(7 * MICROS_PER_DAY)],
            U::Month => &[Months(1)],
            U::Quarter => &[Months(3)],
            U::Year => &[Months(12)],
            U::SecondMicrosecond => &[SECOND, Fraction],
            U::MinuteMicrosecond => &[MINUTE, SECOND, Fraction],
            U::MinuteSecond => &[MINUTE, SECOND],
            U::HourMicrosecond => &[HOUR, MINUTE, SECOND, Fraction],
            U::HourSecond => &[HOUR, MINUTE, SECOND],
            U::HourMinute => &[HOUR, MINUTE],
            U::DayMicrosecond => &[DAY, HOUR, MINUTE, SECOND, Fraction],
            U::DaySecond => &[DAY, HOUR, MINUTE, SECOND],
            U::DayMinute => &[DAY, HOUR, MINUTE],
            U::DayHour => &[DAY, HOUR],
            U::YearMonth => &[Months(12), Months(1)],
        }
    }

    /// Whether it has a part below a day: adding it to a DATE gives a DATETIME.
    pub fn has_time(self) -> bool {
        self.parts().iter().any(|p| matches!(p, Fraction) || matches!(p, Micros(m) if *m < MICROS_PER_DAY))
    }

    /// Whether it has a part below a second.
    pub fn has_fraction(self) -> bool {
        self == IntervalUnit::Microsecond || self.parts().contains(&Fraction)
    }
}

/// An amount of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Calendar months.
    pub months: i64,
    /// Microseconds.
    pub micros: i64,
}

impl Interval {
    /// The interval of a value in a unit; `None` for NULL and for amounts beyond any date.
    pub fn new(value: &Value, unit: IntervalUnit) -> Option<Interval> {
        if value.is_null() {
            return None;
        }
        let parts = unit.parts();
        if let [part] = parts {
            return single(value, *part);
        }
        let text = cast::to_text(value, crate::value::Collation::default());
        compound(&text.to_str_lossy(), parts)
    }

    /// The interval in the other direction.
    #[must_use]
    pub const fn negated(self) -> Interval {
        Interval { months: self.months.saturating_neg(), micros: self.micros.saturating_neg() }
    }
}

fn single(value: &Value, part: Part) -> Option<Interval> {
    // Only seconds keep a fraction; other units round numbers and cut texts.
    if part == SECOND {
        let exact = cast::as_decimal(value).round(6).ok()?;
        let micros = exact.mul(&crate::value::Decimal::from(MICROS_PER_SECOND)).ok()?.to_i128()?;
        return Some(Interval { months: 0, micros: i64::try_from(micros).ok()? });
    }
    let amount = match value {
        Value::Text(text) => number::parse_int(text.as_bytes()).value,
        other => cast::as_decimal(other).to_i128()?,
    };
    scaled(i64::try_from(amount).ok()?, part)
}

fn scaled(amount: i64, part: Part) -> Option<Interval> {
    Some(match part {
        Micros(unit) => Interval { months: 0, micros: amount.checked_mul(unit)? },
        Months(unit) => Interval { months: amount.checked_mul(unit)?, micros: 0 },
        Fraction => Interval { months: 0, micros: amount },
    })
}

fn compound(text: &str, parts: &[Part]) -> Option<Interval> {
    let text = text.trim_start();
    let negative = text.starts_with('-');
    let numbers: Vec<&str> = text.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty()).collect();
    let missing = parts.len().saturating_sub(numbers.len());
    let mut sum = Interval::default();
    for (digits, part) in numbers.iter().zip(&parts[missing..]) {
        let amount = if *part == Fraction {
            format!("{digits:0<6}").get(..6)?.parse().ok()?
        } else {
            digits.parse().ok()?
        };
        let piece = scaled(amount, *part)?;
        sum.months = sum.months.checked_add(piece.months)?;
        sum.micros = sum.micros.checked_add(piece.micros)?;
    }
    Some(if negative { sum.negated() } else { sum })
}

/// The moment after an interval; `None` outside the years 0 to 9999 or for dates with zero parts. A day past
/// the end of the target month becomes its last day.
pub fn add_interval(moment: DateTime, interval: Interval) -> Option<DateTime> {
    let mut date = moment.date();
    if interval.months != 0 {
        let months =
            i64::from(date.year() * 12 + date.month().checked_sub(1)?).checked_add(interval.months)?;
        let (year, month) = (u32::try_from(months.div_euclid(12)).ok()?, months.rem_euclid(12) as u32 + 1);
        date = Date::new(year, month, date.day().min(days_in_month(year, month)))?;
    }
    let fsp = if interval.micros % MICROS_PER_SECOND == 0 { moment.fsp() } else { 6 };
    if interval.micros == 0 {
        return DateTime::from_date_micros(date, moment.micros_of_day(), fsp);
    }
    let start = i64::from(date.day_number()?) * MICROS_PER_DAY + moment.micros_of_day();
    DateTime::from_linear_micros(start.checked_add(interval.micros)?, fsp)
}
