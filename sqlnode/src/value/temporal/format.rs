//! DATE_FORMAT, TIME_FORMAT and STR_TO_DATE: dates to text and back by a pattern of `%` specifiers.

use super::{Date, DateRules, DateTime, MICROS_PER_DAY, Time, WeekMode, week_of};
use std::fmt::Write as _;

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
/// From Monday.
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The English name of a month from 1.
pub fn month_name(month: u32) -> Option<&'static str> {
    MONTHS.get((month as usize).checked_sub(1)?).copied()
}

/// The English name of a weekday, 0 for Monday.
pub fn weekday_name(weekday: u32) -> Option<&'static str> {
    WEEKDAYS.get(weekday as usize).copied()
}

/// DATE_FORMAT(); `None` (NULL) when a specifier asks for what a date with zero parts does not have.
pub fn date_format(moment: DateTime, format: &str) -> Option<String> {
    render(moment, moment.hour(), format)
}

/// TIME_FORMAT(): hours may exceed 23; specifiers of dates give zeros or NULL.
pub fn time_format(time: Time, format: &str) -> Option<String> {
    let micros = time.micros().abs() % MICROS_PER_DAY;
    let moment = DateTime::from_date_micros(Date::ZERO, micros, 6)?;
    let text = render(moment, time.hour(), format)?;
    Some(if time.is_negative() { format!("-{text}") } else { text })
}

fn render(moment: DateTime, hour: u32, format: &str) -> Option<String> {
    let mut out = String::with_capacity(format.len() * 2);
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some(specifier) => render_one(moment, hour, specifier, &mut out)?,
            None => out.push('%'),
        }
    }
    Some(out)
}

fn render_one(moment: DateTime, hour: u32, specifier: char, out: &mut String) -> Option<()> {
    let date = moment.date();
    let twelve = (hour % 24 + 11) % 12 + 1;
    let half = if hour % 24 < 12 { "AM" } else { "PM" };
    let (minute, second) = (moment.minute(), moment.second());
    let week = |mode| week_of(date, WeekMode(mode));
    // Writing to a String cannot fail.
    let _ = match specifier {
        'a' => write!(out, "{}", &weekday_name(date.weekday()?)?[..3]),
        'b' => write!(out, "{}", &month_name(date.month())?[..3]),
        'c' => write!(out, "{}", date.month()),
        'D' => write!(out, "{}{}", date.day(), ordinal(date.day())),
        'd' => write!(out, "{:02}", date.day()),
        'e' => write!(out, "{}", date.day()),
        'f' => write!(out, "{:06}", moment.micro()),
        'H' => write!(out, "{hour:02}"),
        'h' | 'I' => write!(out, "{twelve:02}"),
        'i' => write!(out, "{minute:02}"),
        'j' => {
            let new_year = Date::new(date.year(), 1, 1)?.day_number()?;
            write!(out, "{:03}", date.day_number()? - new_year + 1)
        }
        'k' => write!(out, "{hour}"),
        'l' => write!(out, "{twelve}"),
        'M' => write!(out, "{}", month_name(date.month())?),
        'm' => write!(out, "{:02}", date.month()),
        'p' => write!(out, "{half}"),
        'r' => write!(out, "{twelve:02}:{minute:02}:{second:02} {half}"),
        'S' | 's' => write!(out, "{second:02}"),
        'T' => write!(out, "{hour:02}:{minute:02}:{second:02}"),
        'U' => write!(out, "{:02}", week(0)?.1),
        'u' => write!(out, "{:02}", week(1)?.1),
        'V' => write!(out, "{:02}", week(2)?.1),
        'v' => write!(out, "{:02}", week(3)?.1),
        'W' => write!(out, "{}", weekday_name(date.weekday()?)?),
        'w' => write!(out, "{}", (date.weekday()? + 1) % 7),
        'X' => write!(out, "{:04}", week(2)?.0),
        'x' => write!(out, "{:04}", week(3)?.0),
        'Y' => write!(out, "{:04}", date.year()),
        'y' => write!(out, "{:02}", date.year() % 100),
        other => {
            out.push(other);
            Ok(())
        }
    };
    Some(())
}

const fn ordinal(day: u32) -> &'static str {
    match (day % 10, day) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}

/// Which parts of a moment a format has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatParts {
    /// Year, month, day or week.
    pub date: bool,
    /// Hour, minute, second or less.
    pub time: bool,
    /// Microseconds.
    pub fraction: bool,
}

impl FormatParts {
    /// The parts of a format.
    pub fn of(format: &str) -> FormatParts {
        let (mut date, mut time, mut fraction) = (false, false, false);
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c == '%'
                && let Some(specifier) = chars.next()
            {
                date |= "YymcMbdeDjUuVvXxWaw".contains(specifier);
                time |= "HkhIlisSpfrT".contains(specifier);
                fraction |= specifier == 'f';
            }
        }
        FormatParts { date, time, fraction }
    }
}

/// What STR_TO_DATE has read so far.
#[derive(Default)]
struct Scan {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    micro: u32,
    fsp: u8,
    day_of_year: Option<u32>,
    afternoon: Option<bool>,
    twelve_hours: bool,
}

/// STR_TO_DATE(); `None` if the text does not follow the format or is no valid date. Parts without a
/// specifier are 0. Text after the format is ignored, and reported by the flag (false: something was left).
pub fn str_to_date(text: &str, format: &str, rules: DateRules) -> Option<(DateTime, bool)> {
    let mut scan = Scan::default();
    let mut rest = text.trim_start();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c.is_whitespace() {
            rest = rest.trim_start();
        } else if c == '%' {
            let specifier = chars.next()?;
            if specifier != '%' {
                // A format may be longer than the text.
                if rest.is_empty() {
                    break;
                }
                rest = scan_one(rest.trim_start(), specifier, &mut scan)?;
                continue;
            }
            rest = rest.strip_prefix('%')?;
        } else {
            if rest.is_empty() {
                break;
            }
            rest = rest.trim_start().strip_prefix(c)?;
        }
    }
    Some((scan.finish(rules)?, rest.trim().is_empty()))
}

fn digits(text: &str, max: usize) -> Option<(u32, &str)> {
    let len = text.bytes().take(max).take_while(u8::is_ascii_digit).count();
    Some((text.get(..len)?.parse().ok()?, &text[len..]))
}

/// The number from 1 of the name that starts a text, whole or by its first three letters.
fn name<'a>(text: &'a str, names: &[&str], whole: bool) -> Option<(u32, &'a str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        let name = if whole { name } else { &name[..3] };
        let head = text.get(..name.len())?;
        head.eq_ignore_ascii_case(name).then(|| (index as u32 + 1, &text[name.len()..]))
    })
}

fn scan_one<'a>(text: &'a str, specifier: char, scan: &mut Scan) -> Option<&'a str> {
    let mut take = |slot: fn(&mut Scan) -> &mut u32, max: usize| {
        let (value, rest) = digits(text, max)?;
        *slot(scan) = value;
        Some(rest)
    };
    match specifier {
        'Y' => take(|s| &mut s.year, 4),
        'y' => {
            let rest = take(|s| &mut s.year, 2)?;
            scan.year += if scan.year < 70 { 2000 } else { 1900 };
            Some(rest)
        }
        'm' | 'c' => take(|s| &mut s.month, 2),
        'd' | 'e' => take(|s| &mut s.day, 2),
        'D' => {
            let rest = take(|s| &mut s.day, 2)?;
            rest.get(2..)
        }
        'H' | 'k' => take(|s| &mut s.hour, 2),
        'h' | 'I' | 'l' => {
            let rest = take(|s| &mut s.hour, 2)?;
            scan.twelve_hours = true;
            (1..=12).contains(&scan.hour).then_some(rest)
        }
        'i' => take(|s| &mut s.minute, 2),
        's' | 'S' => take(|s| &mut s.second, 2),
        'f' => {
            let (value, rest) = digits(text, 6)?;
            let len = text.len() - rest.len();
            scan.micro = value * 10u32.pow(6 - len.min(6) as u32);
            scan.fsp = 6;
            Some(rest)
        }
        'j' => {
            let (value, rest) = digits(text, 3)?;
            scan.day_of_year = Some(value);
            Some(rest)
        }
        'M' | 'b' => {
            let (value, rest) = name(text, &MONTHS, specifier == 'M')?;
            scan.month = value;
            Some(rest)
        }
        'W' => name(text, &WEEKDAYS, true).map(|(_, rest)| rest),
        'a' => name(text, &WEEKDAYS, false).map(|(_, rest)| rest),
        'p' => {
            scan.afternoon = Some(text.get(..2)?.eq_ignore_ascii_case("PM"));
            let known = text[..2].eq_ignore_ascii_case("PM") || text[..2].eq_ignore_ascii_case("AM");
            known.then_some(&text[2..])
        }
        'T' => ['H', ':', 'i', ':', 's'].into_iter().try_fold(text, |rest, c| scan_piece(rest, c, scan)),
        'r' => ['h', ':', 'i', ':', 's', 'p']
            .into_iter()
            .try_fold(text, |rest, c| scan_piece(rest.trim_start(), c, scan)),
        '.' => Some(text.trim_start_matches(|c: char| c.is_ascii_punctuation())),
        '@' => Some(text.trim_start_matches(|c: char| c.is_alphabetic())),
        '#' => Some(text.trim_start_matches(|c: char| c.is_ascii_digit())),
        _ => None,
    }
}

fn scan_piece<'a>(text: &'a str, piece: char, scan: &mut Scan) -> Option<&'a str> {
    if piece == ':' { text.strip_prefix(':') } else { scan_one(text, piece, scan) }
}

impl Scan {
    fn finish(mut self, rules: DateRules) -> Option<DateTime> {
        if self.twelve_hours {
            self.hour = self.hour % 12 + if self.afternoon == Some(true) { 12 } else { 0 };
        } else if self.afternoon.is_some() {
            return None;
        }
        let mut date = Date::new(self.year, self.month, self.day)?;
        if let Some(day) = self.day_of_year {
            let last = super::days_in_year(self.year);
            if self.year == 0 || day == 0 || day > last {
                return None;
            }
            let new_year = Date::new(self.year, 1, 1)?.day_number()?;
            date = Date::from_day_number(i64::from(new_year + day - 1));
        }
        if !rules.allows(date) {
            return None;
        }
        DateTime::new(date, self.hour, self.minute, self.second, self.micro, self.fsp)
    }
}
