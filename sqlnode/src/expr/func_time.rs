//! Functions of dates and times. "Now" is the moment the statement began; only SYSDATE() asks the clock.

use super::func::{Args, FuncDef, Returns, def, def_null, def_session, some};
use super::{BoundExpr, dates, local, types};
use crate::value::temporal::{
    self, Date, DateRules, DateTime, FormatParts, MICROS_PER_SECOND, Time, TimeZone, WeekMode, days_in_month,
    month_name, week_of, weekday_name,
};
use crate::value::{Collation, Decimal, Result, SqlMode, SqlType, Value, cast};

pub(super) static TABLE: &[FuncDef] = &[
    def_session("now", 0, 1, Returns::Now(false), now),
    def_session("current_timestamp", 0, 1, Returns::Now(false), now),
    def_session("localtime", 0, 1, Returns::Now(false), now),
    def_session("localtimestamp", 0, 1, Returns::Now(false), now),
    def_session("sysdate", 0, 1, Returns::Now(false), |a| {
        let fsp = fsp(a)?;
        Ok(Value::DateTime(local(a.ctx.facts.time_zone(), a.ctx.facts.clock_micros(), fsp)))
    }),
    def_session("utc_timestamp", 0, 1, Returns::Now(false), |a| Ok(Value::DateTime(utc(a)?))),
    def_session("utc_date", 0, 0, Returns::Date, |a| Ok(Value::Date(utc(a)?.date()))),
    def_session("utc_time", 0, 1, Returns::Now(true), |a| Ok(Value::Time(utc(a)?.time_of_day()))),
    def_session("curdate", 0, 0, Returns::Date, |a| Ok(Value::Date(a.ctx.today()))),
    def_session("current_date", 0, 0, Returns::Date, |a| Ok(Value::Date(a.ctx.today()))),
    def_session("curtime", 0, 1, Returns::Now(true), curtime),
    def_session("current_time", 0, 1, Returns::Now(true), curtime),
    def_null("date", 1, 1, Returns::Date, |a| Ok(Value::Date(some!(a.moment(0)?).date()))),
    def_null("time", 1, 1, Returns::By(time_type), time),
    def_null("year", 1, 1, Returns::Int, |a| date_part(a, |d| Some(d.year()))),
    def_null("month", 1, 1, Returns::Int, |a| date_part(a, |d| Some(d.month()))),
    def_null("quarter", 1, 1, Returns::Int, |a| date_part(a, |d| Some(d.month().div_ceil(3)))),
    def_null("day", 1, 1, Returns::Int, |a| date_part(a, |d| Some(d.day()))),
    def_null("dayofmonth", 1, 1, Returns::Int, |a| date_part(a, |d| Some(d.day()))),
    def_null("dayofweek", 1, 1, Returns::Int, |a| date_part(a, |d| d.weekday().map(|w| (w + 1) % 7 + 1))),
    def_null("weekday", 1, 1, Returns::Int, |a| date_part(a, Date::weekday)),
    def_null("dayofyear", 1, 1, Returns::Int, |a| date_part(a, day_of_year)),
    def_null("to_days", 1, 1, Returns::Int, |a| date_part(a, Date::day_number)),
    def_null("to_seconds", 1, 1, Returns::Int, |a| {
        let micros = some!(some!(a.moment(0)?).linear_micros());
        Ok(Value::Int(micros / MICROS_PER_SECOND))
    }),
    def_null("weekofyear", 1, 1, Returns::Int, |a| date_part(a, |d| week_of(d, WeekMode(3)).map(|w| w.1))),
    def_null("week", 1, 2, Returns::Int, week),
    def_null("yearweek", 1, 2, Returns::Int, yearweek),
    def_null("dayname", 1, 1, Returns::Ascii(9), |a| {
        let weekday = some!(some!(a.moment(0)?).date().weekday());
        Ok(a.string(some!(weekday_name(weekday)).as_bytes()))
    }),
    def_null("monthname", 1, 1, Returns::Ascii(9), |a| {
        let name = some!(month_name(some!(a.moment(0)?).date().month()));
        Ok(a.string(name.as_bytes()))
    }),
    def_null("hour", 1, 1, Returns::Int, |a| time_part(a, Time::hour)),
    def_null("minute", 1, 1, Returns::Int, |a| time_part(a, Time::minute)),
    def_null("second", 1, 1, Returns::Int, |a| time_part(a, Time::second)),
    def_null("microsecond", 1, 1, Returns::Int, |a| time_part(a, Time::micro)),
    def_null("datediff", 2, 2, Returns::Int, datediff),
    def_null("timediff", 2, 2, Returns::By(time_type), timediff),
    def_null("addtime", 2, 2, Returns::By(addtime_type), |a| addtime(a, 1)),
    def_null("subtime", 2, 2, Returns::By(addtime_type), |a| addtime(a, -1)),
    def_null("last_day", 1, 1, Returns::Date, last_day),
    def_null("from_days", 1, 1, Returns::Date, |a| Ok(Value::Date(Date::from_day_number(some!(a.int(0)?))))),
    def_null("makedate", 2, 2, Returns::Date, makedate),
    def_null("maketime", 3, 3, Returns::By(time_type), maketime),
    def_null("sec_to_time", 1, 1, Returns::By(time_type), sec_to_time),
    def_null("time_to_sec", 1, 1, Returns::Int, |a| {
        let value = a.val(0)?;
        Ok(Value::Int(some!(cast::to_time(&value, a.ctx.warnings)).micros() / MICROS_PER_SECOND))
    }),
    def_null("date_format", 2, 2, Returns::Ascii(255), date_format),
    def_null("time_format", 2, 2, Returns::Ascii(255), time_format),
    def_null("str_to_date", 2, 2, Returns::By(str_to_date_type), str_to_date),
    def_session("unix_timestamp", 0, 1, Returns::By(unix_type), unix_timestamp),
    def_session("from_unixtime", 1, 2, Returns::By(from_unix_type), from_unixtime),
    def_null("timestamp", 1, 2, Returns::By(|a, _| SqlType::DateTime { fsp: max_fsp(a) }), timestamp),
    def_null("convert_tz", 3, 3, Returns::By(|a, _| SqlType::DateTime { fsp: max_fsp(a) }), convert_tz),
    def_null("period_add", 2, 2, Returns::Int, |a| {
        let (period, add) = (some!(a.int(0)?), some!(a.int(1)?));
        Ok(Value::Int(to_period(months_of(period).saturating_add(add))))
    }),
    def("period_diff", 2, 2, Returns::Int, |a| {
        let (x, y) = (some!(a.int(0)?), some!(a.int(1)?));
        Ok(Value::Int(months_of(x).saturating_sub(months_of(y))))
    }),
];

fn max_fsp(args: &[BoundExpr]) -> u8 {
    let fsp = |e: &BoundExpr| match (&e.ty, e.as_const()) {
        (ty, _) if ty.is_temporal() => ty.decimals(),
        (SqlType::Decimal { scale, .. }, _) => (*scale).min(6),
        (SqlType::Double { .. } | SqlType::Float { .. }, _) => 6,
        (_, Some(Value::Text(text))) => {
            let text = text.to_str_lossy();
            text.rsplit_once('.').map_or(0, |(_, f)| f.len().min(6) as u8)
        }
        (ty, _) if ty.is_string() => 6,
        _ => 0,
    };
    args.iter().map(fsp).max().unwrap_or(0)
}

fn time_type(args: &[BoundExpr], _: Collation) -> SqlType {
    SqlType::Time { fsp: max_fsp(args) }
}

fn fsp(a: &mut Args<'_, '_>) -> Result<u8> {
    Ok(a.int(0)?.unwrap_or(0).clamp(0, 6) as u8)
}

fn now(a: &mut Args<'_, '_>) -> Result<Value> {
    let fsp = fsp(a)?;
    Ok(Value::DateTime(a.ctx.now(fsp)))
}

fn curtime(a: &mut Args<'_, '_>) -> Result<Value> {
    let fsp = fsp(a)?;
    Ok(Value::Time(a.ctx.now(fsp).time_of_day()))
}

fn utc(a: &mut Args<'_, '_>) -> Result<DateTime> {
    let fsp = fsp(a)?;
    Ok(local(&TimeZone::Utc, a.ctx.facts.statement_micros(), fsp))
}

fn date_part(a: &mut Args<'_, '_>, part: fn(Date) -> Option<u32>) -> Result<Value> {
    let date = some!(a.moment(0)?).date();
    Ok(Value::Int(i64::from(some!(part(date)))))
}

/// The argument as a time: of a date and time its clock, of a text that reads as a date and time too.
fn clock(a: &mut Args<'_, '_>, at: usize) -> Result<Option<Time>> {
    let mut value = a.val(at)?;
    if matches!(value, Value::Decimal(_) | Value::Double(_) | Value::Float(_)) {
        // Through the text, which keeps the fraction.
        value = Value::Text(cast::to_text(&value, Collation::default()));
    }
    Ok(cast::to_time(&value, a.ctx.warnings))
}

fn time(a: &mut Args<'_, '_>) -> Result<Value> {
    Ok(Value::Time(some!(clock(a, 0)?)))
}

fn time_part(a: &mut Args<'_, '_>, part: fn(Time) -> u32) -> Result<Value> {
    Ok(Value::Int(i64::from(part(some!(clock(a, 0)?)))))
}

fn week(a: &mut Args<'_, '_>) -> Result<Value> {
    let date = some!(a.moment(0)?).date();
    let mode = if a.len() > 1 { some!(a.int(1)?) } else { 0 };
    Ok(Value::Int(i64::from(some!(week_of(date, WeekMode(mode as u8 & 7))).1)))
}

fn yearweek(a: &mut Args<'_, '_>) -> Result<Value> {
    let date = some!(a.moment(0)?).date();
    let mode = if a.len() > 1 { some!(a.int(1)?) } else { 0 };
    let (year, week) = some!(week_of(date, WeekMode(mode as u8 & 7 | 2)));
    Ok(Value::Int(i64::from(year * 100 + week)))
}

fn datediff(a: &mut Args<'_, '_>) -> Result<Value> {
    let days = |d: DateTime| d.date().day_number().map(i64::from);
    let (x, y) = (some!(some!(a.moment(0)?.map(days))), some!(some!(a.moment(1)?.map(days))));
    Ok(Value::Int(x - y))
}

fn timediff(a: &mut Args<'_, '_>) -> Result<Value> {
    let (x, y) = (a.val(0)?, a.val(1)?);
    let is_date = |v: &Value| match v {
        Value::Date(_) | Value::DateTime(_) => true,
        Value::Text(text) => text.to_str_lossy().trim_start_matches('-').contains('-'),
        _ => false,
    };
    if x.is_null() || y.is_null() || is_date(&x) != is_date(&y) {
        return Ok(Value::Null);
    }
    let micros = |v: &Value, a: &mut Args<'_, '_>| {
        if is_date(v) {
            dates::moment(v, a.ctx).and_then(DateTime::linear_micros)
        } else {
            cast::to_time(v, a.ctx.warnings).map(Time::micros)
        }
    };
    let difference = some!(micros(&x, a)) - some!(micros(&y, a));
    Ok(Value::Time(Time::from_micros_clamped(difference, a.ty.decimals())))
}

fn addtime_type(args: &[BoundExpr], connection: Collation) -> SqlType {
    match args.first().map(|e| &e.ty) {
        Some(SqlType::Date | SqlType::DateTime { .. } | SqlType::Timestamp { .. }) => {
            SqlType::DateTime { fsp: max_fsp(args) }
        }
        Some(SqlType::Time { .. }) => SqlType::Time { fsp: max_fsp(args) },
        _ => types::string(29, connection),
    }
}

fn addtime(a: &mut Args<'_, '_>, sign: i64) -> Result<Value> {
    let x = a.val(0)?;
    if matches!(a.val(1)?, Value::Date(_) | Value::DateTime(_)) {
        return Ok(Value::Null);
    }
    let delta = some!(clock(a, 1)?);
    let is_date = match &x {
        Value::Null => return Ok(Value::Null),
        Value::Date(_) | Value::DateTime(_) => true,
        Value::Text(text) => text.to_str_lossy().trim_start_matches('-').contains('-'),
        _ => false,
    };
    let value = if is_date {
        let at = some!(dates::moment(&x, a.ctx));
        let fsp = at.fsp().max(delta.fsp());
        let moved = some!(at.linear_micros()) + sign * delta.micros();
        DateTime::from_linear_micros(moved, fsp).map_or(Value::Null, Value::DateTime)
    } else {
        let time = some!(clock(a, 0)?);
        Value::Time(Time::from_micros_clamped(
            time.micros() + sign * delta.micros(),
            time.fsp().max(delta.fsp()),
        ))
    };
    Ok(types::coerce(value, a.ty))
}

fn last_day(a: &mut Args<'_, '_>) -> Result<Value> {
    let date = some!(a.moment(0)?).date();
    if date.month() == 0 {
        return Ok(Value::Null);
    }
    let last = Date::new(date.year(), date.month(), days_in_month(date.year(), date.month()));
    Ok(last.map_or(Value::Null, Value::Date))
}

fn makedate(a: &mut Args<'_, '_>) -> Result<Value> {
    let (year, day) = (some!(a.int(0)?), some!(a.int(1)?));
    let year = match year {
        0..=69 => 2000 + year,
        70..=99 => 1900 + year,
        other => other,
    };
    if !(0..=9999).contains(&year) || !(1..=4_000_000).contains(&day) {
        return Ok(Value::Null);
    }
    let first = some!(Date::new(year as u32, 1, 1).and_then(Date::day_number));
    let date = Date::from_day_number(i64::from(first) + day - 1);
    Ok(if date.is_zero() { Value::Null } else { Value::Date(date) })
}

fn maketime(a: &mut Args<'_, '_>) -> Result<Value> {
    let (hour, minute, second) = (some!(a.int(0)?), some!(a.int(1)?), some!(a.double(2)?));
    if !(0..60).contains(&minute) || !(0.0..60.0).contains(&second) {
        return Ok(Value::Null);
    }
    let micros = (hour.unsigned_abs().min(9999) as i64 * 60 + minute) * 60 * MICROS_PER_SECOND
        + (second * MICROS_PER_SECOND as f64).round() as i64;
    let signed = if hour < 0 { -micros } else { micros };
    Ok(Value::Time(Time::from_micros_clamped(signed, a.ty.decimals())))
}

fn sec_to_time(a: &mut Args<'_, '_>) -> Result<Value> {
    let value = a.val(0)?;
    if value.is_null() {
        return Ok(Value::Null);
    }
    let seconds = cast::to_decimal(&value, a.ctx.warnings);
    let micros =
        seconds.mul(&Decimal::from(MICROS_PER_SECOND)).ok().and_then(|v| v.to_i128()).unwrap_or(i128::MAX);
    let micros = micros.clamp(-i128::from(i64::MAX), i128::from(i64::MAX)) as i64;
    Ok(Value::Time(Time::from_micros_clamped(micros, a.ty.decimals())))
}

/// The day of the year.
fn day_of_year(date: Date) -> Option<u32> {
    let first = Date::new(date.year(), 1, 1)?.day_number()?;
    Some(date.day_number()? - first + 1)
}

fn date_format(a: &mut Args<'_, '_>) -> Result<Value> {
    let at = some!(a.moment(0)?);
    let pattern = some!(a.own_text(1)?);
    let text = some!(temporal::date_format(at, &pattern.to_str_lossy()));
    Ok(a.string(text.as_bytes()))
}

fn time_format(a: &mut Args<'_, '_>) -> Result<Value> {
    let time = some!(clock(a, 0)?);
    let pattern = some!(a.own_text(1)?);
    let text = some!(temporal::time_format(time, &pattern.to_str_lossy()));
    Ok(a.string(text.as_bytes()))
}

fn str_to_date_type(args: &[BoundExpr], _: Collation) -> SqlType {
    let Some(Value::Text(pattern)) = args.get(1).and_then(BoundExpr::as_const) else {
        return SqlType::DateTime { fsp: 6 };
    };
    let parts = FormatParts::of(&pattern.to_str_lossy());
    let fsp = if parts.fraction { 6 } else { 0 };
    match (parts.date, parts.time) {
        (true, false) => SqlType::Date,
        (false, _) => SqlType::Time { fsp },
        (true, true) => SqlType::DateTime { fsp },
    }
}

fn str_to_date(a: &mut Args<'_, '_>) -> Result<Value> {
    use crate::value::{ErrorCode, MySqlError};
    let (text, pattern) = (some!(a.own_text(0)?), some!(a.own_text(1)?));
    let (text, pattern) = (text.to_str_lossy(), pattern.to_str_lossy());
    let parts = FormatParts::of(&pattern);
    let mode = if parts.date { a.ctx.facts.sql_mode() } else { SqlMode::EMPTY };
    let Some((at, clean)) = temporal::str_to_date(&text, &pattern, DateRules::from_mode(mode)) else {
        let args: [&dyn std::fmt::Display; 3] = [&"datetime", &text, &"str_to_date"];
        a.ctx.warnings.warn(MySqlError::with(ErrorCode::WrongValueForType, &args));
        return Ok(Value::Null);
    };
    if !clean {
        let args: [&dyn std::fmt::Display; 2] = [&"datetime", &text];
        a.ctx.warnings.warn(MySqlError::with(ErrorCode::TruncatedWrongValue, &args));
    }
    let value = match (parts.date, parts.time) {
        (true, true) => Value::DateTime(at),
        (true, false) => Value::Date(at.date()),
        (false, _) => Value::Time(at.time_of_day()),
    };
    Ok(types::coerce(value, a.ty))
}

fn unix_type(args: &[BoundExpr], _: Collation) -> SqlType {
    match max_fsp(args) {
        0 => SqlType::BIGINT,
        fsp => types::decimal(11, u32::from(fsp)),
    }
}

fn unix_timestamp(a: &mut Args<'_, '_>) -> Result<Value> {
    if a.len() == 0 {
        return Ok(Value::Int(a.ctx.facts.statement_micros() / MICROS_PER_SECOND));
    }
    let at = some!(a.moment(0)?);
    let micros = a.ctx.facts.time_zone().unix_from_local(at).unwrap_or(0).max(0);
    Ok(types::coerce(
        Value::Decimal(
            Decimal::from_unscaled(i128::from(micros), 6).truncate_places(i32::from(a.ty.decimals())),
        ),
        a.ty,
    ))
}

fn from_unix_type(args: &[BoundExpr], connection: Collation) -> SqlType {
    if args.len() > 1 { types::string(255, connection) } else { SqlType::DateTime { fsp: max_fsp(args) } }
}

fn from_unixtime(a: &mut Args<'_, '_>) -> Result<Value> {
    let value = a.val(0)?;
    if value.is_null() {
        return Ok(Value::Null);
    }
    let seconds = cast::to_decimal(&value, a.ctx.warnings);
    let micros = some!(seconds.mul(&Decimal::from(MICROS_PER_SECOND)).ok().and_then(|v| v.to_i128()));
    let micros = some!(i64::try_from(micros).ok().filter(|m| *m >= 0));
    let fsp = if a.len() > 1 { 6 } else { a.ty.decimals() };
    let at = some!(a.ctx.facts.time_zone().local_from_unix(micros, fsp));
    if a.len() == 1 {
        return Ok(Value::DateTime(at));
    }
    let pattern = some!(a.own_text(1)?);
    let text = some!(temporal::date_format(at, &pattern.to_str_lossy()));
    Ok(a.string(text.as_bytes()))
}

fn timestamp(a: &mut Args<'_, '_>) -> Result<Value> {
    let at = some!(a.moment(0)?);
    let fsp = a.ty.decimals();
    let add = if a.len() > 1 { some!(clock(a, 1)?).micros() } else { 0 };
    if add == 0 {
        return Ok(Value::DateTime(at.with_fsp(fsp)));
    }
    let moved = some!(at.linear_micros()) + add;
    Ok(DateTime::from_linear_micros(moved, fsp).map_or(Value::Null, Value::DateTime))
}

fn convert_tz(a: &mut Args<'_, '_>) -> Result<Value> {
    let at = some!(a.moment(0)?);
    let (from, to) = (some!(a.own_text(1)?), some!(a.own_text(2)?));
    let (Ok(from), Ok(to)) = (TimeZone::parse(&from.to_str_lossy()), TimeZone::parse(&to.to_str_lossy()))
    else {
        return Ok(Value::Null);
    };
    let unix = some!(from.unix_from_local(at));
    Ok(to.local_from_unix(unix, at.fsp()).map_or(Value::Null, Value::DateTime))
}

fn months_of(period: i64) -> i64 {
    let (year, month) = (period / 100, period % 100);
    let year = match year {
        0..=69 => 2000 + year,
        70..=99 => 1900 + year,
        other => other,
    };
    year.saturating_mul(12).saturating_add(month - 1)
}

fn to_period(months: i64) -> i64 {
    (months / 12).saturating_mul(100).saturating_add(months % 12 + 1)
}
