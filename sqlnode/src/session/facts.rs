//! Facts: what expressions and plans may ask about their session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::node::SqlNode;
use super::vars;
use crate::error::{ErrorCode, MySqlError};
use crate::expr::SessionFacts;
use crate::parser::ParseMode;
use crate::parser::ast::VarScope;
use crate::protocol::{Capabilities, LoginInfo, SERVER_VERSION};
use crate::value::{Collation, Result, SqlMode, Value, temporal::TimeZone};

/// The facts of one session.
pub struct Facts {
    /// The SQL node.
    pub node: Arc<SqlNode>,
    /// The client.
    pub login: LoginInfo,
    /// USE.
    pub database: Option<String>,
    /// `user@host`.
    pub user_at_host: String,
    /// `user@%`.
    pub account: String,
    /// sql_mode.
    pub mode: SqlMode,
    /// time_zone.
    pub zone: TimeZone,
    /// collation_connection.
    pub collation: Collation,
    /// autocommit.
    pub autocommit: bool,
    /// The statement under way is a transaction of its own.
    pub own_transaction: bool,
    /// ROW_COUNT().
    pub row_count: i64,
    /// FOUND_ROWS().
    pub found_rows: u64,
    /// When the statement began.
    pub statement_micros: i64,
    /// How many warnings and errors the last statement left.
    pub last_warnings: (u64, u64),
    /// Session values of system variables that differ from the global ones.
    pub overrides: HashMap<&'static str, Value>,
    /// LAST_INSERT_ID().
    pub last_insert_id: AtomicU64,
    user_vars: Mutex<UserVars>,
    random: AtomicU64,
}

/// Microseconds since 1970.
pub fn now_micros() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX))
}

impl Facts {
    /// The facts of a new session.
    pub fn new(node: Arc<SqlNode>, login: LoginInfo) -> Self {
        let seed =
            u64::from(login.process.id()).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ now_micros().cast_unsigned();
        Self {
            node,
            database: None,
            user_at_host: format!("{}@{}", login.user, login.host),
            account: format!("{}@%", login.user),
            mode: SqlMode::default(),
            zone: TimeZone::default(),
            collation: Collation::by_id(login.collation)
                .filter(|c| c.charset().is_multi_byte())
                .unwrap_or(Collation::UTF8MB4_0900_AI_CI),
            autocommit: true,
            own_transaction: true,
            row_count: -1,
            found_rows: 0,
            statement_micros: now_micros(),
            last_warnings: (0, 0),
            overrides: HashMap::new(),
            last_insert_id: AtomicU64::new(0),
            user_vars: Mutex::default(),
            random: AtomicU64::new(seed | 1),
            login,
        }
    }

    /// Whether affected rows count the rows found.
    pub fn found_rows_wanted(&self) -> bool {
        self.login.capabilities.has(Capabilities::FOUND_ROWS)
    }

    /// The most bytes of rows a statement may keep.
    pub fn statement_memory(&self) -> usize {
        self.node.config.statement_memory
    }

    /// How statements are read.
    pub fn parse_mode(&self) -> ParseMode {
        ParseMode {
            ansi_quotes: self.mode.contains(SqlMode::ANSI_QUOTES),
            pipes_as_concat: self.mode.contains(SqlMode::PIPES_AS_CONCAT),
            no_backslash_escapes: self.mode.contains(SqlMode::NO_BACKSLASH_ESCAPES),
            high_not_precedence: self.mode.contains(SqlMode::HIGH_NOT_PRECEDENCE),
        }
    }

    /// Forgets user variables.
    pub fn clear_user_vars(&self) {
        *self.user_vars.lock().unwrap_or_else(PoisonError::into_inner) = UserVars::default();
    }
}

/// The most bytes that the user variables of a session may have together: two strings of the largest size.
const USER_VARS_BYTES_MAX: usize = 128 << 20;
/// What a variable costs beside its name and text.
const USER_VAR_OVERHEAD: usize = 128;

/// The user variables of a session, by name in lower case, and what they occupy.
#[derive(Default)]
struct UserVars {
    values: HashMap<String, Value>,
    bytes: usize,
}

impl UserVars {
    /// Sets a variable if there is room; otherwise it keeps its old value.
    fn set(&mut self, name: String, value: Value) -> Result<()> {
        let cost = |value: &Value| {
            let text = if let Value::Text(text) = value { text.len() } else { 0 };
            name.len() + text + USER_VAR_OVERHEAD
        };
        let before = self.values.get(&name).map_or(0, cost);
        let bytes = self.bytes - before + cost(&value);
        if bytes > USER_VARS_BYTES_MAX {
            let text = format!(
                "Out of memory: the user variables of a session may have {USER_VARS_BYTES_MAX} bytes together; @{name} \
                 was not changed; set some to NULL"
            );
            return Err(MySqlError::text(ErrorCode::OutOfResources, text));
        }
        self.bytes = bytes;
        self.values.insert(name, value);
        Ok(())
    }
}

impl SessionFacts for Facts {
    fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }
    fn user(&self) -> &str {
        &self.user_at_host
    }
    fn current_user(&self) -> &str {
        &self.account
    }
    fn version(&self) -> &str {
        SERVER_VERSION
    }
    fn connection_id(&self) -> u64 {
        u64::from(self.login.process.id())
    }
    fn last_insert_id(&self) -> u64 {
        self.last_insert_id.load(Ordering::Relaxed)
    }
    fn set_last_insert_id(&self, value: u64) {
        self.last_insert_id.store(value, Ordering::Relaxed);
    }
    fn row_count(&self) -> i64 {
        self.row_count
    }
    fn found_rows(&self) -> u64 {
        self.found_rows
    }
    fn statement_micros(&self) -> i64 {
        self.statement_micros
    }
    fn clock_micros(&self) -> i64 {
        now_micros()
    }
    fn time_zone(&self) -> &TimeZone {
        &self.zone
    }
    fn sql_mode(&self) -> SqlMode {
        self.mode
    }
    fn connection_collation(&self) -> Collation {
        self.collation
    }
    fn random(&self) -> u64 {
        // A step of xorshift; RAND() needs no secrecy.
        let mut x = self.random.load(Ordering::Relaxed);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.store(x, Ordering::Relaxed);
        x
    }
    fn user_var(&self, name: &str) -> Value {
        let vars = self.user_vars.lock().unwrap_or_else(PoisonError::into_inner);
        vars.values.get(&name.to_lowercase()).cloned().unwrap_or_default()
    }
    fn set_user_var(&self, name: &str, value: Value) -> Result<()> {
        let mut vars = self.user_vars.lock().unwrap_or_else(PoisonError::into_inner);
        vars.set(name.to_lowercase(), value)
    }
    fn sys_var(&self, scope: VarScope, name: &str) -> Result<Value> {
        vars::read(self, scope, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_variables_have_a_limit_together_and_give_room_back() {
        let mut vars = UserVars::default();
        let big = || Value::bytes(&vec![b'x'; 60 << 20]);
        for name in ["a", "b"] {
            vars.set(name.to_owned(), big()).unwrap();
        }
        vars.set("b".to_owned(), big()).expect("the old value makes room for the new one");
        let error = vars.set("c".to_owned(), big()).unwrap_err();
        assert_eq!(error.code, 1041);
        assert!(!vars.values.contains_key("c"));
        vars.set("a".to_owned(), Value::Null).unwrap();
        vars.set("c".to_owned(), big()).unwrap();
        let many = (0..2_000_000).find(|i| vars.set(format!("v{i}"), Value::Null).is_err());
        assert!(many.is_some_and(|count| count > 10_000), "small ones are counted, too: {many:?}");
    }
}
