//! System variables: the values clients and drivers ask for and set when they connect.
//!
//! One table holds every variable with its value in MySQL 8.0 and who may change it. Those that mean
//! something here (autocommit, sql_mode, time_zone, character sets) are kept in [`Facts`]; the others are
//! remembered for the session and read back, which is what connectors rely on.

use super::facts::Facts;
use crate::expr::SessionFacts;
use crate::parser::ast::VarScope;
use crate::protocol::SERVER_VERSION;
use crate::value::temporal::TimeZone;
use crate::value::{Charset, Collation, ErrorCode, MySqlError, Result, SqlMode, Value, cast};

/// Who may set a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Every session for itself.
    Session,
    /// Only globally; accepted and ignored.
    Global,
    /// Nobody.
    ReadOnly,
}

/// A variable's value as a constant.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Preset {
    Int(i64),
    Text(&'static str),
}

use Kind::{Global, ReadOnly, Session};
use Preset::{Int, Text};

/// Sorted by name; a test checks it.
static VARIABLES: &[(&str, Kind, Preset)] = &[
    ("auto_generate_certs", ReadOnly, Int(1)),
    ("auto_increment_increment", Session, Int(1)),
    ("auto_increment_offset", Session, Int(1)),
    ("autocommit", Session, Int(1)),
    ("automatic_sp_privileges", Global, Int(1)),
    ("back_log", ReadOnly, Int(151)),
    ("basedir", ReadOnly, Text("/")),
    ("big_tables", Session, Int(0)),
    ("bind_address", ReadOnly, Text("127.0.0.1")),
    ("binlog_format", Session, Text("ROW")),
    ("bulk_insert_buffer_size", Session, Int(8_388_608)),
    ("character_set_client", Session, Text("utf8mb4")),
    ("character_set_connection", Session, Text("utf8mb4")),
    ("character_set_database", Session, Text("utf8mb4")),
    ("character_set_filesystem", Session, Text("binary")),
    ("character_set_results", Session, Text("utf8mb4")),
    ("character_set_server", Session, Text("utf8mb4")),
    ("character_set_system", ReadOnly, Text("utf8mb3")),
    ("check_proxy_users", Global, Int(0)),
    ("collation_connection", Session, Text("utf8mb4_0900_ai_ci")),
    ("collation_database", Session, Text("utf8mb4_0900_ai_ci")),
    ("collation_server", Session, Text("utf8mb4_0900_ai_ci")),
    ("completion_type", Session, Text("NO_CHAIN")),
    ("concurrent_insert", Global, Text("AUTO")),
    ("connect_timeout", Global, Int(10)),
    ("cte_max_recursion_depth", Session, Int(1000)),
    ("datadir", ReadOnly, Text("/")),
    ("default_authentication_plugin", ReadOnly, Text("caching_sha2_password")),
    ("default_storage_engine", Session, Text("ndbcluster")),
    ("default_tmp_storage_engine", Session, Text("ndbcluster")),
    ("default_week_format", Session, Int(0)),
    ("div_precision_increment", Session, Int(4)),
    ("event_scheduler", Global, Text("OFF")),
    ("explicit_defaults_for_timestamp", Session, Int(1)),
    ("foreign_key_checks", Session, Int(1)),
    ("general_log", Global, Int(0)),
    ("group_concat_max_len", Session, Int(1024)),
    ("gtid_mode", Global, Text("OFF")),
    ("have_compress", ReadOnly, Text("NO")),
    ("have_openssl", ReadOnly, Text("YES")),
    ("have_profiling", ReadOnly, Text("NO")),
    ("have_ssl", ReadOnly, Text("YES")),
    ("hostname", ReadOnly, Text("localhost")),
    ("init_connect", Global, Text("")),
    ("innodb_lock_wait_timeout", Session, Int(50)),
    ("innodb_strict_mode", Session, Int(1)),
    ("interactive_timeout", Session, Int(28_800)),
    ("join_buffer_size", Session, Int(262_144)),
    ("key_buffer_size", Global, Int(8_388_608)),
    ("language", ReadOnly, Text("/")),
    ("lc_messages", Session, Text("en_US")),
    ("lc_time_names", Session, Text("en_US")),
    ("license", ReadOnly, Text("Apache-2.0")),
    ("local_infile", Global, Int(0)),
    ("lock_wait_timeout", Session, Int(31_536_000)),
    ("log_bin", ReadOnly, Int(0)),
    ("long_query_time", Session, Text("10.000000")),
    ("low_priority_updates", Session, Int(0)),
    ("lower_case_file_system", ReadOnly, Int(0)),
    ("lower_case_table_names", ReadOnly, Int(0)),
    ("max_allowed_packet", Session, Int(67_108_864)),
    ("max_connections", Global, Int(151)),
    ("max_error_count", Session, Int(1024)),
    ("max_execution_time", Session, Int(0)),
    ("max_heap_table_size", Session, Int(16_777_216)),
    ("max_join_size", Session, Text("18446744073709551615")),
    ("max_prepared_stmt_count", Global, Int(16_382)),
    ("max_sort_length", Session, Int(1024)),
    ("max_user_connections", Session, Int(0)),
    ("ndb_autoincrement_prefetch_sz", Session, Int(512)),
    ("ndb_batch_size", Session, Int(32_768)),
    ("ndb_join_pushdown", Session, Int(0)),
    ("ndb_read_backup", Global, Int(1)),
    ("ndb_version", ReadOnly, Int(0)),
    ("ndb_version_string", ReadOnly, Text("nucdb")),
    ("net_buffer_length", Session, Int(16_384)),
    ("net_read_timeout", Session, Int(30)),
    ("net_write_timeout", Session, Int(60)),
    ("old_passwords", Session, Int(0)),
    ("optimizer_prune_level", Session, Int(1)),
    ("optimizer_search_depth", Session, Int(62)),
    ("optimizer_switch", Session, Text("")),
    ("performance_schema", ReadOnly, Int(0)),
    ("port", ReadOnly, Int(3306)),
    ("profiling", Session, Int(0)),
    ("protocol_version", ReadOnly, Int(10)),
    ("pseudo_thread_id", Session, Int(0)),
    ("query_cache_size", Global, Int(0)),
    ("query_cache_type", Session, Text("OFF")),
    ("read_only", Global, Int(0)),
    ("require_secure_transport", Global, Int(0)),
    ("secure_auth", Global, Int(1)),
    ("secure_file_priv", ReadOnly, Text("")),
    ("server_id", Global, Int(1)),
    ("server_uuid", ReadOnly, Text("00000000-0000-0000-0000-000000000001")),
    ("session_track_gtids", Session, Text("OFF")),
    ("session_track_schema", Session, Int(1)),
    ("session_track_state_change", Session, Int(0)),
    ("session_track_system_variables", Session, Text("")),
    ("skip_networking", ReadOnly, Int(0)),
    ("socket", ReadOnly, Text("")),
    ("sort_buffer_size", Session, Int(262_144)),
    ("sql_auto_is_null", Session, Int(0)),
    ("sql_big_selects", Session, Int(1)),
    ("sql_log_bin", Session, Int(0)),
    ("sql_mode", Session, Text("")),
    ("sql_notes", Session, Int(1)),
    ("sql_quote_show_create", Session, Int(1)),
    ("sql_require_primary_key", Session, Int(0)),
    ("sql_safe_updates", Session, Int(0)),
    ("sql_select_limit", Session, Text("18446744073709551615")),
    ("sql_warnings", Session, Int(0)),
    ("super_read_only", Global, Int(0)),
    ("system_time_zone", ReadOnly, Text("UTC")),
    ("table_definition_cache", Global, Int(2000)),
    ("table_open_cache", Global, Int(4000)),
    ("thread_cache_size", Global, Int(9)),
    ("thread_handling", ReadOnly, Text("one-thread-per-connection")),
    ("time_zone", Session, Text("SYSTEM")),
    ("tls_version", ReadOnly, Text("TLSv1.2,TLSv1.3")),
    ("tmp_table_size", Session, Int(16_777_216)),
    ("tmpdir", ReadOnly, Text("/tmp")),
    ("transaction_isolation", Session, Text("READ-COMMITTED")),
    ("transaction_read_only", Session, Int(0)),
    ("tx_isolation", Session, Text("READ-COMMITTED")),
    ("tx_read_only", Session, Int(0)),
    ("unique_checks", Session, Int(1)),
    ("updatable_views_with_limit", Session, Text("YES")),
    ("use_secondary_engine", Session, Text("ON")),
    ("version", ReadOnly, Text(SERVER_VERSION)),
    ("version_comment", ReadOnly, Text("nucdb")),
    ("version_compile_machine", ReadOnly, Text(std::env::consts::ARCH)),
    ("version_compile_os", ReadOnly, Text("Linux")),
    ("wait_timeout", Session, Int(28_800)),
    ("windowing_use_high_precision", Session, Int(1)),
];

/// Variables whose values print as ON and OFF.
fn is_switch(name: &str) -> bool {
    matches!(find(name), Some((_, _, Int(0 | 1))))
        && !matches!(
            name,
            "auto_increment_increment"
                | "auto_increment_offset"
                | "server_id"
                | "optimizer_prune_level"
                | "default_week_format"
                | "max_execution_time"
                | "max_user_connections"
                | "old_passwords"
                | "lower_case_table_names"
                | "pseudo_thread_id"
                | "query_cache_size"
                | "ndb_version"
        )
}

fn find(name: &str) -> Option<&'static (&'static str, Kind, Preset)> {
    VARIABLES.binary_search_by(|(known, ..)| (*known).cmp(name)).ok().and_then(|at| VARIABLES.get(at))
}

fn unknown(name: &str) -> MySqlError {
    MySqlError::with(ErrorCode::UnknownSystemVariable, &[&name])
}

/// The value of `@@name`.
///
/// # Errors
/// 1193: there is no such variable.
pub fn read(facts: &Facts, scope: VarScope, name: &str) -> Result<Value> {
    let name = name.to_ascii_lowercase();
    let global = matches!(scope, VarScope::Global | VarScope::Persist | VarScope::PersistOnly);
    match name.as_str() {
        "autocommit" if !global => return Ok(Value::from_bool(facts.autocommit)),
        "sql_mode" => {
            let mode = if global { SqlMode::default() } else { facts.mode };
            return Ok(Value::text(&mode.to_string()));
        }
        "time_zone" if !global => return Ok(Value::text(&facts.zone.to_string())),
        "collation_connection" if !global => return Ok(Value::text(facts.collation.name())),
        "character_set_connection" if !global => return Ok(Value::text(facts.collation.charset().name())),
        "last_insert_id" | "identity" => return Ok(Value::UInt(facts.last_insert_id())),
        "warning_count" => return Ok(Value::UInt(facts.last_warnings.0)),
        "error_count" => return Ok(Value::UInt(facts.last_warnings.1)),
        "port" => return Ok(Value::Int(i64::from(facts.node.config.port))),
        "max_connections" => return Ok(Value::Int(facts.node.config.server.max_connections as i64)),
        "pseudo_thread_id" => return Ok(Value::UInt(facts.connection_id())),
        "timestamp" => {
            return Ok(Value::Double(facts.statement_micros as f64 / 1e6));
        }
        _ => {}
    }
    let (name, _, preset) = find(&name).ok_or_else(|| unknown(&name))?;
    if !global && let Some(value) = facts.overrides.get(name) {
        return Ok(value.clone());
    }
    Ok(match preset {
        Int(n) => Value::Int(*n),
        Text(text) => Value::text(text),
    })
}

/// All variables as SHOW VARIABLES prints them.
pub fn all(facts: &Facts, scope: VarScope) -> Vec<(&'static str, String)> {
    let text = |name: &'static str| {
        let value = read(facts, scope, name).unwrap_or_default();
        match value {
            Value::Int(n) if is_switch(name) => (if n == 0 { "OFF" } else { "ON" }).to_owned(),
            other => cast::to_text(&other, Collation::UTF8MB4_BIN).to_str_lossy().into_owned(),
        }
    };
    VARIABLES.iter().map(|(name, ..)| (*name, text(name))).collect()
}

/// Sets a variable; None for DEFAULT. Whether `autocommit` went on must be asked afterwards.
///
/// # Errors
/// 1193, 1238 for a read-only one, 1231 for a value it cannot have.
pub fn set(facts: &mut Facts, scope: VarScope, name: &str, value: Option<Value>) -> Result<()> {
    let name = name.to_ascii_lowercase();
    let global = matches!(scope, VarScope::Global | VarScope::Persist | VarScope::PersistOnly);
    if name == "timestamp" || name == "rand_seed1" || name == "rand_seed2" {
        return Ok(());
    }
    if matches!(name.as_str(), "last_insert_id" | "identity" | "insert_id") {
        if let Some(value) = value {
            facts.set_last_insert_id(cast::to_u64(&value, &mut crate::value::Warnings::new()));
        }
        return Ok(());
    }
    let (name, kind, preset) = *find(&name).ok_or_else(|| unknown(&name))?;
    if kind == ReadOnly {
        return Err(MySqlError::with(ErrorCode::IncorrectGlobalLocalVar, &[&name, &"read only"]));
    }
    if kind == Global && !global {
        return Err(MySqlError::with(ErrorCode::GlobalVariable, &[&name]));
    }
    if global {
        // Global values are those of every SQL node's configuration; a session cannot change them yet.
        return Ok(());
    }
    let value = match value {
        Some(value) => value,
        None => match preset {
            Int(n) => Value::Int(n),
            Text(_) if name == "sql_mode" => Value::text(&SqlMode::default().to_string()),
            Text(text) => Value::text(text),
        },
    };
    let text = cast::to_text(&value, Collation::UTF8MB4_BIN).to_str_lossy().into_owned();
    let wrong = || MySqlError::with(ErrorCode::WrongValueForVar, &[&name, &text]);
    match name {
        "autocommit" => facts.autocommit = switch(&value, &text).ok_or_else(wrong)?,
        "sql_mode" => facts.mode = SqlMode::parse(&text)?,
        "time_zone" => facts.zone = TimeZone::parse(&text)?,
        "character_set_client" | "character_set_results" | "character_set_connection" => {
            if !(value.is_null() && name == "character_set_results") {
                let charset = Charset::by_name(&text);
                let charset =
                    charset.ok_or_else(|| MySqlError::with(ErrorCode::UnknownCharacterSet, &[&text]))?;
                if name == "character_set_connection" {
                    facts.collation = charset.default_collation();
                }
            }
            facts.overrides.insert(name, value);
        }
        "collation_connection" => {
            let unknown = || MySqlError::with(ErrorCode::UnknownCollation, &[&text]);
            facts.collation = Collation::by_name(&text).ok_or_else(unknown)?;
        }
        _ => {
            let value = match (preset, switch(&value, &text)) {
                (Int(_), Some(on)) if is_switch(name) => Value::from_bool(on),
                (Int(_), _) if is_switch(name) => return Err(wrong()),
                (Int(_), _) if !value.is_numeric() => {
                    let parsed = crate::value::number::parse_int(text.as_bytes());
                    if !parsed.clean {
                        return Err(MySqlError::with(ErrorCode::WrongValueForVar, &[&name, &text]));
                    }
                    Value::Int(i64::try_from(parsed.value).map_err(|_| wrong())?)
                }
                _ => value,
            };
            facts.overrides.insert(name, value);
        }
    }
    Ok(())
}

fn switch(value: &Value, text: &str) -> Option<bool> {
    match value {
        Value::Int(0) | Value::UInt(0) => Some(false),
        Value::Int(1) | Value::UInt(1) => Some(true),
        Value::Text(_) if text.eq_ignore_ascii_case("on") || text == "1" => Some(true),
        Value::Text(_) if text.eq_ignore_ascii_case("off") || text == "0" => Some(false),
        Value::Text(_) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::Text(_) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// SET NAMES.
///
/// # Errors
/// 1115, 1273, 1253.
pub fn set_names(facts: &mut Facts, charset: Option<&str>, collation: Option<&str>) -> Result<()> {
    let name = charset.unwrap_or("utf8mb4");
    let unknown = || MySqlError::with(ErrorCode::UnknownCharacterSet, &[&name]);
    let charset = Charset::by_name(name).ok_or_else(unknown)?;
    facts.collation = match collation {
        None => charset.default_collation(),
        Some(name) => {
            let found = Collation::by_name(name);
            let found = found.ok_or_else(|| MySqlError::with(ErrorCode::UnknownCollation, &[&name]))?;
            if found.charset() != charset {
                return Err(MySqlError::with(ErrorCode::CollationCharsetMismatch, &[&name, &charset.name()]));
            }
            found
        }
    };
    for variable in ["character_set_client", "character_set_results"] {
        facts.overrides.insert(variable, Value::text(charset.name()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_for_its_search() {
        assert!(VARIABLES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(VARIABLES.iter().all(|(name, ..)| find(name).is_some()));
    }
}
