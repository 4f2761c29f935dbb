//! Functions of control flow, of the session, digests, and the rest.

use super::digest;
use super::func::{Args, FuncDef, Returns, def, def_null, def_session, some};
use crate::value::{ErrorCode, MySqlError, Result, Text, Value, cast, compare};
use sha2::Digest as _;
use std::fmt::Write as _;

pub(super) static TABLE: &[FuncDef] = &[
    def("if", 3, 3, Returns::Common(1), |a| {
        let yes = match a.exprs.first() {
            Some(condition) => condition.truth(a.row, a.ctx)? == Some(true),
            None => false,
        };
        a.result(if yes { 1 } else { 2 })
    }),
    def("ifnull", 2, 2, Returns::Common(0), coalesce),
    def_null("coalesce", 1, 255, Returns::Common(0), coalesce),
    def_null(
        "nullif",
        2,
        2,
        Returns::By(|a, _| a.first().map_or(crate::value::SqlType::Null, |e| e.ty.clone())),
        nullif,
    ),
    def("isnull", 1, 1, Returns::Int, |a| Ok(Value::from_bool(a.val(0)?.is_null()))),
    def("interval", 2, 255, Returns::Int, interval),
    def("any_value", 1, 1, Returns::Common(0), |a| a.result(0)),
    def_session("database", 0, 0, Returns::Ascii(64), |a| {
        let name = some!(a.ctx.facts.database());
        Ok(Value::Text(Text::new(name.as_bytes(), a.connection())))
    }),
    def_session("schema", 0, 0, Returns::Ascii(64), |a| {
        let name = some!(a.ctx.facts.database());
        Ok(Value::Text(Text::new(name.as_bytes(), a.connection())))
    }),
    def_session("user", 0, 0, Returns::Ascii(288), |a| Ok(a.string(a.ctx.facts.user().as_bytes()))),
    def_session("session_user", 0, 0, Returns::Ascii(288), |a| Ok(a.string(a.ctx.facts.user().as_bytes()))),
    def_session("system_user", 0, 0, Returns::Ascii(288), |a| Ok(a.string(a.ctx.facts.user().as_bytes()))),
    def_session("current_user", 0, 0, Returns::Ascii(288), |a| {
        Ok(a.string(a.ctx.facts.current_user().as_bytes()))
    }),
    def_session("current_role", 0, 0, Returns::Ascii(64), |a| Ok(a.string(b"NONE"))),
    def_session("version", 0, 0, Returns::Ascii(60), |a| Ok(a.string(a.ctx.facts.version().as_bytes()))),
    def_session("connection_id", 0, 0, Returns::UInt, |a| Ok(Value::UInt(a.ctx.facts.connection_id()))),
    def_session("last_insert_id", 0, 1, Returns::UInt, last_insert_id),
    def_session("row_count", 0, 0, Returns::Int, |a| Ok(Value::Int(a.ctx.facts.row_count()))),
    def_session("found_rows", 0, 0, Returns::UInt, |a| Ok(Value::UInt(a.ctx.facts.found_rows()))),
    def_session("sleep", 1, 1, Returns::Int, sleep),
    def_session("benchmark", 2, 2, Returns::Int, |_| Err(MySqlError::not_supported("BENCHMARK"))),
    def_session("uuid", 0, 0, Returns::Ascii(36), uuid),
    def_session("uuid_short", 0, 0, Returns::UInt, |a| Ok(Value::UInt(a.ctx.facts.random() >> 1))),
    def_null("md5", 1, 1, Returns::Ascii(32), |a| {
        let text = some!(a.own_text(0)?);
        Ok(a.string(hex(&digest::md5(text.as_bytes())).as_bytes()))
    }),
    def_null("sha1", 1, 1, Returns::Ascii(40), sha1),
    def_null("sha", 1, 1, Returns::Ascii(40), sha1),
    def_null("sha2", 2, 2, Returns::Ascii(128), sha2),
    def_null("inet_aton", 1, 1, Returns::UInt, inet_aton),
    def_null("inet_ntoa", 1, 1, Returns::Ascii(15), |a| {
        let n = some!(a.int(0)?);
        let address = some!(u32::try_from(n).ok());
        Ok(a.string(std::net::Ipv4Addr::from(address).to_string().as_bytes()))
    }),
    def_null("is_ipv4", 1, 1, Returns::Int, |a| {
        let text = some!(a.own_text(0)?);
        Ok(Value::from_bool(text.to_str_lossy().parse::<std::net::Ipv4Addr>().is_ok()))
    }),
    def_null("is_ipv6", 1, 1, Returns::Int, |a| {
        let text = some!(a.own_text(0)?);
        Ok(Value::from_bool(text.to_str_lossy().parse::<std::net::Ipv6Addr>().is_ok()))
    }),
    def_session("get_lock", 2, 2, Returns::Int, |_| Err(MySqlError::not_supported("GET_LOCK"))),
    def_session("release_lock", 1, 1, Returns::Int, |_| Err(MySqlError::not_supported("RELEASE_LOCK"))),
];

fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for b in bytes {
        // Writing to a String cannot fail.
        let _ = write!(out, "{b:02x}");
    }
    out
}

fn coalesce(a: &mut Args<'_, '_>) -> Result<Value> {
    for at in 0..a.len() {
        let value = a.result(at)?;
        if !value.is_null() {
            return Ok(value);
        }
    }
    Ok(Value::Null)
}

fn nullif(a: &mut Args<'_, '_>) -> Result<Value> {
    let value = a.val(0)?;
    let other = a.val(1)?;
    let equal = compare::compare(&value, &other).is_some_and(std::cmp::Ordering::is_eq);
    Ok(if equal { Value::Null } else { value })
}

/// INTERVAL(n, a, b, ..): how many of the ascending numbers are at most n.
fn interval(a: &mut Args<'_, '_>) -> Result<Value> {
    let n = a.val(0)?;
    if n.is_null() {
        return Ok(Value::Int(-1));
    }
    for at in 1..a.len() {
        if compare::compare(&n, &a.val(at)?).is_some_and(std::cmp::Ordering::is_lt) {
            return Ok(Value::Int(at as i64 - 1));
        }
    }
    Ok(Value::Int(a.len() as i64 - 1))
}

fn last_insert_id(a: &mut Args<'_, '_>) -> Result<Value> {
    if a.len() == 0 {
        return Ok(Value::UInt(a.ctx.facts.last_insert_id()));
    }
    let value = a.val(0)?;
    let id = cast::to_int(&value, a.ctx.warnings) as u64;
    a.ctx.facts.set_last_insert_id(id);
    Ok(if value.is_null() { Value::Null } else { Value::UInt(id) })
}

fn sleep(a: &mut Args<'_, '_>) -> Result<Value> {
    let wrong = || MySqlError::with(ErrorCode::WrongArguments, &[&"sleep."]);
    let seconds = a.double(0)?.filter(|s| *s >= 0.0).ok_or_else(wrong)?;
    Ok(Value::from_bool(a.ctx.facts.sleep(seconds)))
}

fn uuid(a: &mut Args<'_, '_>) -> Result<Value> {
    // Random bits with the version and variant of a random UUID.
    let high = a.ctx.facts.random() & !0xf000 | 0x4000;
    let low = a.ctx.facts.random() & !(0b11 << 62) | 0b10 << 62;
    let text = format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    );
    Ok(a.string(text.as_bytes()))
}

fn sha1(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.own_text(0)?);
    Ok(a.string(hex(&sha1::Sha1::digest(text.as_bytes())).as_bytes()))
}

fn sha2(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.own_text(0)?);
    let bytes = text.as_bytes();
    let out = match some!(a.int(1)?) {
        224 => hex(&sha2::Sha224::digest(bytes)),
        0 | 256 => hex(&sha2::Sha256::digest(bytes)),
        384 => hex(&sha2::Sha384::digest(bytes)),
        512 => hex(&sha2::Sha512::digest(bytes)),
        _ => return Ok(Value::Null),
    };
    Ok(a.string(out.as_bytes()))
}

/// INET_ATON takes short forms: `127.1` is 127.0.0.1.
fn inet_aton(a: &mut Args<'_, '_>) -> Result<Value> {
    let text = some!(a.own_text(0)?);
    let text = text.to_str_lossy();
    let parts: Vec<Option<u64>> = text.split('.').map(|p| p.parse().ok().filter(|v| *v <= 255)).collect();
    let parts: Vec<u64> = some!(parts.into_iter().collect());
    let (last, front) = some!(parts.split_last());
    if front.len() > 3 {
        return Ok(Value::Null);
    }
    let high = front.iter().enumerate().fold(0, |n, (i, part)| n | part << (24 - 8 * i));
    Ok(Value::UInt(high | last))
}
