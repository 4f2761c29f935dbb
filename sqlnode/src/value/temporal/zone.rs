//! Time zones: from a session's local time to UTC and back.
//!
//! Role: `SET time_zone` takes an offset (`+02:00`), `SYSTEM`, `UTC` or a name (`Europe/Stockholm`); names
//! and the system's zone come from the host's zone data through `jiff`. A local time that a clock change
//! skips becomes the moment of the change; one that happens twice is the first of the two, as in MySQL.

use super::{Date, DateTime, MICROS_PER_DAY, MICROS_PER_SECOND};
use crate::error::{ErrorCode, MySqlError};
use std::fmt;

/// Day number of 1970-01-01.
const EPOCH_DAY: i64 = 719_528;
/// The greatest TIMESTAMP in seconds: 2038-01-19 03:14:07 UTC.
pub const TIMESTAMP_SECONDS_MAX: i64 = i32::MAX as i64;

/// A session's time zone.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum TimeZone {
    /// Universal time.
    Utc,
    /// The host's zone.
    #[default]
    System,
    /// Minutes east of UTC.
    Offset(i32),
    /// A zone of the host's zone data.
    Named {
        /// The name as it was set.
        name: Box<str>,
        /// Its rules.
        rules: jiff::tz::TimeZone,
    },
}

impl TimeZone {
    /// The zone of a setting.
    ///
    /// # Errors
    /// 1298 for an unknown name or an offset outside -13:59 to +14:00.
    pub fn parse(text: &str) -> Result<TimeZone, MySqlError> {
        let unknown = || MySqlError::with(ErrorCode::UnknownTimeZone, &[&text]);
        if text.eq_ignore_ascii_case("SYSTEM") {
            return Ok(TimeZone::System);
        }
        if text.eq_ignore_ascii_case("UTC") {
            return Ok(TimeZone::Utc);
        }
        if text.starts_with(['+', '-']) {
            let negative = text.starts_with('-');
            let (hours, minutes) = text[1..].split_once(':').ok_or_else(unknown)?;
            let digits = |part: &str| {
                let fine = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
                fine.then(|| part.parse::<i32>().ok()).flatten()
            };
            let (hours, minutes) =
                digits(hours).zip(digits(minutes)).filter(|(_, m)| *m < 60).ok_or_else(unknown)?;
            let total = if negative { -(hours * 60 + minutes) } else { hours * 60 + minutes };
            if !(-839..=840).contains(&total) {
                return Err(unknown());
            }
            return Ok(TimeZone::Offset(total));
        }
        let rules = jiff::tz::TimeZone::get(text).map_err(|_| unknown())?;
        Ok(TimeZone::Named { name: text.into(), rules })
    }

    /// Seconds east of UTC at a moment in seconds since 1970.
    pub fn offset_at(&self, unix_seconds: i64) -> i64 {
        let from_rules = |rules: &jiff::tz::TimeZone| {
            jiff::Timestamp::from_second(unix_seconds)
                .map_or(0, |at| i64::from(rules.to_offset(at).seconds()))
        };
        match self {
            TimeZone::Utc => 0,
            TimeZone::System => from_rules(&jiff::tz::TimeZone::system()),
            TimeZone::Offset(minutes) => i64::from(*minutes) * 60,
            TimeZone::Named { rules, .. } => from_rules(rules),
        }
    }

    /// The local time of a moment in microseconds since 1970; `None` outside the years 1 to 9999.
    pub fn local_from_unix(&self, unix_micros: i64, fsp: u8) -> Option<DateTime> {
        let offset = self.offset_at(unix_micros.div_euclid(MICROS_PER_SECOND));
        let shift = offset * MICROS_PER_SECOND + EPOCH_DAY * MICROS_PER_DAY;
        let linear = unix_micros.checked_add(shift)?;
        DateTime::from_linear_micros(linear, fsp)
    }

    /// The moment of a local time in microseconds since 1970; `None` for dates with zero parts.
    pub fn unix_from_local(&self, local: DateTime) -> Option<i64> {
        let naive = local.linear_micros()? - EPOCH_DAY * MICROS_PER_DAY;
        let seconds = naive.div_euclid(MICROS_PER_SECOND);
        // The offsets a day before and a day after are the only two that can be in force.
        let before = self.offset_at(seconds - 86_400);
        let after = self.offset_at(seconds + 86_400);
        for offset in [before, after] {
            if self.offset_at(seconds - offset) == offset {
                return Some(naive - offset * MICROS_PER_SECOND);
            }
        }
        // Skipped by a change of the clock: the moment of the change, where the offset steps up.
        let (mut low, mut high) = (seconds - 86_400, seconds + 86_400);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.offset_at(middle) == before { low = middle } else { high = middle }
        }
        Some(high * MICROS_PER_SECOND)
    }

    /// A local time as the UTC date and time that a TIMESTAMP column keeps; '0000-00-00 00:00:00' stays.
    /// `None` outside 1970-01-01 00:00:01 to 2038-01-19 03:14:07 UTC.
    pub fn timestamp_to_utc(&self, local: DateTime) -> Option<DateTime> {
        if local.packed() == 0 {
            return Some(local);
        }
        let unix = self.unix_from_local(local)?;
        let seconds = unix.div_euclid(MICROS_PER_SECOND);
        if !(1..=TIMESTAMP_SECONDS_MAX).contains(&seconds) {
            return None;
        }
        TimeZone::Utc.local_from_unix(unix, local.fsp())
    }

    /// The local time of a stored TIMESTAMP.
    pub fn timestamp_from_utc(&self, utc: DateTime) -> DateTime {
        if utc.date() == Date::ZERO {
            return utc;
        }
        TimeZone::Utc
            .unix_from_local(utc)
            .and_then(|unix| self.local_from_unix(unix, utc.fsp()))
            .unwrap_or(utc)
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeZone::Utc => f.write_str("UTC"),
            TimeZone::System => f.write_str("SYSTEM"),
            TimeZone::Offset(minutes) => {
                let sign = if *minutes < 0 { '-' } else { '+' };
                write!(f, "{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
            }
            TimeZone::Named { name, .. } => f.write_str(name),
        }
    }
}
