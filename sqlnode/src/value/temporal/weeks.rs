//! Weeks: which week of which year a date falls in, by the eight modes of WEEK().
//!
//! A mode says three things: whether a week starts on Sunday or Monday, whether week 1 is the first week that
//! has at least four days in the year or the first that starts in it, and whether days before week 1 are week
//! 0 of this year or the last week of the year before.

use super::{Date, day_number};

/// A mode of WEEK(), taken modulo 8 as MySQL does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeekMode(pub u8);

impl WeekMode {
    fn monday_first(self) -> bool {
        self.0 & 1 == 1
    }

    /// Weeks 1 to 53: days outside belong to the neighbouring year.
    fn by_week_year(self) -> bool {
        self.0 & 2 == 2
    }

    fn four_days(self) -> bool {
        matches!(self.0 & 7, 1 | 3 | 4 | 6)
    }
}

/// The year and the week of a date; `None` when month or day is 0.
pub fn week_of(date: Date, mode: WeekMode) -> Option<(u32, u32)> {
    let day = i64::from(date.day_number()?);
    let year = date.year();
    let start = week_one(year, mode);
    let number = |start: i64| ((day - start) / 7 + 1) as u32;
    if day < start {
        if !mode.by_week_year() {
            return Some((year, 0));
        }
        let before = year.saturating_sub(1);
        return Some((before, number(week_one(before, mode))));
    }
    if mode.by_week_year() && day >= week_one(year + 1, mode) {
        return Some((year + 1, 1));
    }
    Some((year, number(start)))
}

/// The day number on which week 1 of a year starts.
fn week_one(year: u32, mode: WeekMode) -> i64 {
    let new_year = i64::from(day_number(year, 1, 1));
    // Days since the week that holds the 1st of January began.
    let into_week = if mode.monday_first() { (new_year + 5) % 7 } else { (new_year + 6) % 7 };
    let counts = if mode.four_days() { into_week <= 3 } else { into_week == 0 };
    if counts { new_year - into_week } else { new_year + 7 - into_week }
}
