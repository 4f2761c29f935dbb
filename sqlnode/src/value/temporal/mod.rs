//! Dates and times as MySQL has them: with zero dates, zero months and days, and times beyond a day.
//!
//! Role: three packed types whose integers sort as time does, and the calendar under them. No calendar crate
//! can hold '0000-00-00' or '2020-00-00' or '838:59:59', so the arithmetic is here; `jiff` is asked only what
//! a named time zone's offset is ([`zone`]).
//!
//! * [`Date`]: year, month, day in one integer. Month and day may be 0.
//! * [`DateTime`]: MySQL's packed form, microseconds at the bottom, plus how many digits of them to show.
//! * [`Time`]: a signed number of microseconds up to 838:59:59, plus digits to show.
//!
//! Day numbers count as TO_DAYS does: 1 is '0000-01-01', and the year 0 has 365 days.

mod format;
mod parse;
mod weeks;
pub mod zone;

pub use format::{FormatParts, date_format, month_name, str_to_date, time_format, weekday_name};
pub use parse::{
    DateRules, Parsed, parse_date, parse_datetime, parse_datetime_number, parse_datetime_offset, parse_time,
    parse_time_number,
};
pub use weeks::{WeekMode, week_of};
pub use zone::TimeZone;

use std::fmt;

/// Microseconds of a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds of a day.
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// The greatest TIME, 838:59:59, in microseconds.
pub const TIME_MICROS_MAX: i64 = ((838 * 60 + 59) * 60 + 59) * MICROS_PER_SECOND;

/// A DATE.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date(u32);

impl Date {
    /// '0000-00-00'.
    pub const ZERO: Date = Date(0);

    /// A date from its parts; month and day may be 0. `None` if a part is out of its range at all
    /// (year 9999, month 12, day 31); whether the month has that day is [`Date::is_valid`]'s question.
    pub const fn new(year: u32, month: u32, day: u32) -> Option<Date> {
        if year > 9999 || month > 12 || day > 31 {
            return None;
        }
        Some(Date(year << 9 | month << 5 | day))
    }

    /// The year, 0 to 9999.
    pub const fn year(self) -> u32 {
        self.0 >> 9
    }

    /// The month, 0 to 12.
    pub const fn month(self) -> u32 {
        self.0 >> 5 & 15
    }

    /// The day of the month, 0 to 31.
    pub const fn day(self) -> u32 {
        self.0 & 31
    }

    /// Whether it is '0000-00-00'.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether the month or the day is 0: such a date has no day number.
    pub const fn has_zero_part(self) -> bool {
        self.month() == 0 || self.day() == 0
    }

    /// Whether the month has that day.
    pub const fn is_valid(self) -> bool {
        !self.has_zero_part() && self.day() <= days_in_month(self.year(), self.month())
    }

    /// The integer that is stored; dates sort as it does.
    pub const fn packed(self) -> u32 {
        self.0
    }

    /// A date from a stored integer; `None` if it is none.
    pub const fn from_packed(packed: u32) -> Option<Date> {
        Date::new(packed >> 9, packed >> 5 & 15, packed & 31)
    }

    /// The date as the number 20200131.
    pub const fn to_number(self) -> u32 {
        self.year() * 10_000 + self.month() * 100 + self.day()
    }

    /// TO_DAYS(); `None` when month or day is 0.
    pub const fn day_number(self) -> Option<u32> {
        if self.has_zero_part() {
            return None;
        }
        Some(day_number(self.year(), self.month(), self.day()))
    }

    /// FROM_DAYS(); '0000-00-00' outside the years 1 to 9999.
    pub const fn from_day_number(days: i64) -> Date {
        match civil_from_day_number(days) {
            Some(date) => date,
            None => Date::ZERO,
        }
    }

    /// 0 for Monday to 6 for Sunday; `None` when month or day is 0.
    pub fn weekday(self) -> Option<u32> {
        self.day_number().map(|days| (days + 5) % 7)
    }

    /// Midnight of the date.
    pub const fn at_midnight(self) -> DateTime {
        DateTime::from_parts_unchecked(self, 0, 0)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year(), self.month(), self.day())
    }
}

impl fmt::Debug for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A DATETIME, or a TIMESTAMP in some time zone.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DateTime {
    packed: u64,
    fsp: u8,
}

impl DateTime {
    /// '0000-00-00 00:00:00'.
    pub const ZERO: DateTime = DateTime { packed: 0, fsp: 0 };

    /// A date and a time of day; `None` if the time is past 23:59:59.999999.
    pub const fn new(
        date: Date,
        hour: u32,
        minute: u32,
        second: u32,
        micro: u32,
        fsp: u8,
    ) -> Option<DateTime> {
        if hour > 23 || minute > 59 || second > 59 || micro > 999_999 || fsp > 6 {
            return None;
        }
        Some(Self::from_parts_unchecked(date, hour << 12 | minute << 6 | second, micro).with_fsp(fsp))
    }

    const fn from_parts_unchecked(date: Date, hms: u32, micro: u32) -> DateTime {
        let ymd = ((date.year() * 13 + date.month()) << 5 | date.day()) as u64;
        DateTime { packed: (ymd << 17 | hms as u64) << 24 | micro as u64, fsp: 0 }
    }

    /// From a date and the microseconds since its midnight (below one day).
    pub const fn from_date_micros(date: Date, micros: i64, fsp: u8) -> Option<DateTime> {
        if micros < 0 || micros >= MICROS_PER_DAY {
            return None;
        }
        let seconds = (micros / MICROS_PER_SECOND) as u32;
        let micro = (micros % MICROS_PER_SECOND) as u32;
        DateTime::new(date, seconds / 3600, seconds / 60 % 60, seconds % 60, micro, fsp)
    }

    /// The integer that is stored; moments sort as it does.
    pub const fn packed(self) -> u64 {
        self.packed
    }

    /// A moment from a stored integer; `None` if it is none.
    pub const fn from_packed(packed: u64, fsp: u8) -> Option<DateTime> {
        if packed >> 24 >> 17 >> 5 > 9999 * 13 + 12 {
            return None;
        }
        let (micro, hms) = ((packed & 0xFF_FFFF) as u32, (packed >> 24 & 0x1_FFFF) as u32);
        let year_month = (packed >> 46) as u32;
        let day = (packed >> 41 & 31) as u32;
        match Date::new(year_month / 13, year_month % 13, day) {
            Some(date) => DateTime::new(date, hms >> 12, hms >> 6 & 63, hms & 63, micro, fsp),
            None => None,
        }
    }

    /// The date part.
    pub const fn date(self) -> Date {
        let year_month = (self.packed >> 46) as u32;
        let day = (self.packed >> 41 & 31) as u32;
        Date((year_month / 13) << 9 | (year_month % 13) << 5 | day)
    }

    /// The hour, 0 to 23.
    pub const fn hour(self) -> u32 {
        (self.packed >> 36 & 31) as u32
    }

    /// The minute.
    pub const fn minute(self) -> u32 {
        (self.packed >> 30 & 63) as u32
    }

    /// The second.
    pub const fn second(self) -> u32 {
        (self.packed >> 24 & 63) as u32
    }

    /// The microsecond.
    pub const fn micro(self) -> u32 {
        (self.packed & 0xFF_FFFF) as u32
    }

    /// Digits of the fraction that are shown.
    pub const fn fsp(self) -> u8 {
        self.fsp
    }

    /// The same moment showing another number of digits (at most 6); nothing is rounded.
    #[must_use]
    pub const fn with_fsp(mut self, fsp: u8) -> DateTime {
        self.fsp = if fsp > 6 { 6 } else { fsp };
        self
    }

    /// Microseconds since midnight.
    pub const fn micros_of_day(self) -> i64 {
        let seconds = (self.hour() * 60 + self.minute()) * 60 + self.second();
        seconds as i64 * MICROS_PER_SECOND + self.micro() as i64
    }

    /// The time of day.
    pub const fn time_of_day(self) -> Time {
        Time { micros: self.micros_of_day(), fsp: self.fsp }
    }

    /// Microseconds on a line that starts at day number 0; `None` when month or day is 0.
    pub fn linear_micros(self) -> Option<i64> {
        let days = self.date().day_number()?;
        Some(i64::from(days) * MICROS_PER_DAY + self.micros_of_day())
    }

    /// The moment at a point of that line; `None` outside the years 1 to 9999.
    pub fn from_linear_micros(micros: i64, fsp: u8) -> Option<DateTime> {
        let date = civil_from_day_number(micros.div_euclid(MICROS_PER_DAY))?;
        DateTime::from_date_micros(date, micros.rem_euclid(MICROS_PER_DAY), fsp)
    }

    /// Rounded half up to `fsp` digits; `None` if that leaves the year 9999, or a date without a day number
    /// would need a carry into the next day.
    pub fn round(self, fsp: u8) -> Option<DateTime> {
        let micros = round_micros(self.micros_of_day(), fsp);
        if micros < MICROS_PER_DAY {
            return DateTime::from_date_micros(self.date(), micros, fsp);
        }
        let date = civil_from_day_number(i64::from(self.date().day_number()?) + 1)?;
        Some(date.at_midnight().with_fsp(fsp))
    }

    /// The moment as the number 20200131235959, without the fraction.
    pub const fn to_number(self) -> u64 {
        let time = self.hour() * 10_000 + self.minute() * 100 + self.second();
        self.date().to_number() as u64 * 1_000_000 + time as u64
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:02}:{:02}:{:02}", self.date(), self.hour(), self.minute(), self.second())?;
        write_fraction(f, self.micro(), self.fsp)
    }
}

impl fmt::Debug for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A TIME: a duration with a sign.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Time {
    micros: i64,
    fsp: u8,
}

impl Time {
    /// '00:00:00'.
    pub const ZERO: Time = Time { micros: 0, fsp: 0 };

    /// A duration in microseconds; `None` beyond 838:59:59 either way.
    pub const fn from_micros(micros: i64, fsp: u8) -> Option<Time> {
        if micros > TIME_MICROS_MAX || micros < -TIME_MICROS_MAX || fsp > 6 {
            return None;
        }
        Some(Time { micros, fsp })
    }

    /// A duration in microseconds, cut to 838:59:59 either way.
    pub fn from_micros_clamped(micros: i64, fsp: u8) -> Time {
        Time { micros: micros.clamp(-TIME_MICROS_MAX, TIME_MICROS_MAX), fsp: fsp.min(6) }
    }

    /// The duration in microseconds; times sort as it does.
    pub const fn micros(self) -> i64 {
        self.micros
    }

    /// Whether it is below zero.
    pub const fn is_negative(self) -> bool {
        self.micros < 0
    }

    /// The hours, 0 to 838, without sign.
    pub const fn hour(self) -> u32 {
        (self.micros.unsigned_abs() / 3_600_000_000) as u32
    }

    /// The minute, without sign.
    pub const fn minute(self) -> u32 {
        (self.micros.unsigned_abs() / 60_000_000 % 60) as u32
    }

    /// The second, without sign.
    pub const fn second(self) -> u32 {
        (self.micros.unsigned_abs() / 1_000_000 % 60) as u32
    }

    /// The microsecond, without sign.
    pub const fn micro(self) -> u32 {
        (self.micros.unsigned_abs() % 1_000_000) as u32
    }

    /// Digits of the fraction that are shown.
    pub const fn fsp(self) -> u8 {
        self.fsp
    }

    /// The same time showing another number of digits (at most 6); nothing is rounded.
    #[must_use]
    pub const fn with_fsp(mut self, fsp: u8) -> Time {
        self.fsp = if fsp > 6 { 6 } else { fsp };
        self
    }

    /// Rounded half away from zero to `fsp` digits, and cut at 838:59:59.
    #[must_use]
    pub fn round(self, fsp: u8) -> Time {
        let magnitude = round_micros(self.micros.abs(), fsp);
        Time::from_micros_clamped(magnitude * self.micros.signum(), fsp)
    }

    /// The time as the number -8385959, without the fraction.
    pub fn to_number(self) -> i64 {
        let magnitude = i64::from(self.hour() * 10_000 + self.minute() * 100 + self.second());
        if self.is_negative() { -magnitude } else { magnitude }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative() { "-" } else { "" };
        write!(f, "{sign}{:02}:{:02}:{:02}", self.hour(), self.minute(), self.second())?;
        write_fraction(f, self.micro(), self.fsp)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

fn write_fraction(f: &mut fmt::Formatter<'_>, micro: u32, fsp: u8) -> fmt::Result {
    if fsp == 0 {
        return Ok(());
    }
    let shown = micro / 10u32.pow(6 - u32::from(fsp.min(6)));
    write!(f, ".{shown:00$}", usize::from(fsp))
}

/// Rounds microseconds (not negative) half up to `fsp` digits.
fn round_micros(micros: i64, fsp: u8) -> i64 {
    let step = 10i64.pow(6 - u32::from(fsp.min(6)));
    (micros + step / 2) / step * step
}

/// Whether February has 29 days. The year 0 counts as a common year, as in MySQL.
pub const fn is_leap_year(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || (year.is_multiple_of(400) && year != 0))
}

/// Days of a month; 31 for month 0, so that any day may stand beside an unknown month.
pub const fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap_year(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days of a year.
pub const fn days_in_year(year: u32) -> u32 {
    if is_leap_year(year) { 366 } else { 365 }
}

/// The day number of a date whose month and day are not 0.
const fn day_number(year: u32, month: u32, day: u32) -> u32 {
    // Count years from March, so that the leap day is the last of its year. Dates before March of year 0 are
    // counted in months alone.
    let before_march = month <= 2;
    if year == 0 && before_march {
        return (month - 1) * 31 + day;
    }
    let (year, month) = if before_march { (year - 1, month + 9) } else { (year, month - 3) };
    let days_of_years = year * 365 + year / 4 - year / 100 + year / 400;
    days_of_years + (month * 153 + 2) / 5 + day + 59
}

/// The date of a day number in the years 1 to 9999.
const fn civil_from_day_number(days: i64) -> Option<Date> {
    if days < 366 || days > 3_652_424 {
        return None;
    }
    let days = days as u32 - 60;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let (month, carry) = if from_march < 10 { (from_march + 3, 0) } else { (from_march - 9, 1) };
    Date::new(era * 400 + year_of_era + carry, month, day)
}

#[cfg(test)]
mod tests;
