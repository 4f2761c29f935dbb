//! Expressions: from the syntax tree to something that computes a value from a row, by MySQL's rules.
//!
//! Two steps. The *binder* ([`Binder`]) resolves names against a [`Scope`], chooses collations, infers the
//! type of every result and folds constants; it reports 1054, 1052, 1305, 1241, 1111, 1582. The result, a
//! [`BoundExpr`], is kept with the plan. The *evaluator* ([`BoundExpr::eval`]) computes it for a row with
//! an [`EvalContext`], which brings the parameters, the session's facts and the warnings list. Aggregates
//! are taken out of the tree by the binder ([`AggSpec`]); the executor feeds an [`Accumulator`] and gives
//! the results back through the context.
//!
//! Values are dynamic: operators look at the kinds of their operands, so a parameter may have any type. The
//! inferred type is what the client is told, and [`BoundExpr::eval_typed`] converts the value to it.
//!
//! What it never does: it reads no clock and no variable by itself (all through [`SessionFacts`]), runs no
//! subquery, touches no table. It never panics on a value, and no function makes a string beyond
//! `max_allowed_packet`.

mod aggregate;
mod bind;
mod dates;
mod digest;
mod eval;
mod func;
mod func_math;
mod func_misc;
mod func_text;
mod func_time;
mod member;
mod regexp;
mod types;

#[cfg(test)]
mod tests;

pub use aggregate::{Accumulator, AggSpec};
pub use bind::Binder;
pub use func::FuncDef;
pub use regexp::RegexpNode;

use crate::parser::ast::{AggFunc, ColName, TimeUnit, TrimSide, VarScope};
use crate::value::arith::{ArithOp, BitOp};
use crate::value::temporal::{Date, DateTime, TimeZone};
use crate::value::{
    Collation, ErrorCode, LikePattern, MySqlError, Result, SqlMode, SqlType, Value, Warnings,
};

/// A column that expressions may name.
#[derive(Clone, Debug)]
pub struct ScopeColumn {
    /// The database of its table.
    pub db: Option<Box<str>>,
    /// The table's alias or name.
    pub table: Box<str>,
    /// The column's name.
    pub name: Box<str>,
    /// Its type.
    pub ty: SqlType,
    /// Whether it may be NULL (also through an outer join).
    pub nullable: bool,
}

/// The columns of a row, in the row's order.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The columns.
    pub columns: Vec<ScopeColumn>,
}

impl Scope {
    /// Where in the row a column is. `clause` is the part of the statement, for the message.
    ///
    /// # Errors
    /// 1054 if there is none, 1052 if there are several.
    pub fn find(&self, name: &ColName, clause: &str) -> Result<usize> {
        let fits = |c: &ScopeColumn| {
            c.name.eq_ignore_ascii_case(&name.name)
                && name.table.as_ref().is_none_or(|table| *table == c.table)
                && name.db.as_ref().is_none_or(|db| c.db.as_ref().is_none_or(|own| own == db))
        };
        let mut hits = self.columns.iter().enumerate().filter(|(_, column)| fits(column));
        match (hits.next(), hits.next()) {
            (Some((at, _)), None) => Ok(at),
            (None, _) => Err(MySqlError::bad_field(&dotted(name), clause)),
            (Some(_), Some(_)) => Err(MySqlError::with(ErrorCode::NonUniq, &[&dotted(name), &clause])),
        }
    }
}

fn dotted(name: &ColName) -> String {
    let parts = [name.db.as_deref(), name.table.as_deref(), Some(&*name.name)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(".")
}

/// What expressions ask of the session. Everything has a plain default, so that tools and tests need not fill
/// it in.
pub trait SessionFacts {
    /// The current database.
    fn database(&self) -> Option<&str> {
        None
    }
    /// `user@host` as the client gave it.
    fn user(&self) -> &str {
        ""
    }
    /// `user@host` of the account that was matched.
    fn current_user(&self) -> &str {
        self.user()
    }
    /// The server's version.
    fn version(&self) -> &str {
        "8.4.0"
    }
    /// The connection's number.
    fn connection_id(&self) -> u64 {
        0
    }
    /// LAST_INSERT_ID().
    fn last_insert_id(&self) -> u64 {
        0
    }
    /// LAST_INSERT_ID(value).
    fn set_last_insert_id(&self, _value: u64) {}
    /// ROW_COUNT().
    fn row_count(&self) -> i64 {
        -1
    }
    /// FOUND_ROWS().
    fn found_rows(&self) -> u64 {
        0
    }
    /// When the statement began, in microseconds since 1970 UTC.
    fn statement_micros(&self) -> i64 {
        0
    }
    /// The time now, for SYSDATE().
    fn clock_micros(&self) -> i64 {
        self.statement_micros()
    }
    /// The date the statement began on, in the session's zone.
    fn today(&self) -> Date {
        local(self.time_zone(), self.statement_micros(), 0).date()
    }
    /// The session's time zone.
    fn time_zone(&self) -> &TimeZone {
        &TimeZone::Utc
    }
    /// sql_mode.
    fn sql_mode(&self) -> SqlMode {
        SqlMode::default()
    }
    /// div_precision_increment.
    fn div_precision_increment(&self) -> u8 {
        4
    }
    /// collation_connection.
    fn connection_collation(&self) -> Collation {
        Collation::UTF8MB4_0900_AI_CI
    }
    /// max_allowed_packet: no string grows beyond.
    fn max_allowed_packet(&self) -> usize {
        64 << 20
    }
    /// group_concat_max_len.
    fn group_concat_max_len(&self) -> usize {
        1024
    }
    /// Random bits.
    fn random(&self) -> u64 {
        0
    }
    /// Waits, at most as long as the session allows; true if it was interrupted.
    fn sleep(&self, _seconds: f64) -> bool {
        false
    }
    /// A user variable.
    fn user_var(&self, _name: &str) -> Value {
        Value::Null
    }
    /// Sets a user variable.
    ///
    /// # Errors
    /// 1041 when the session's variables have no room for it.
    fn set_user_var(&self, _name: &str, _value: Value) -> Result<()> {
        Ok(())
    }
    /// A system variable.
    ///
    /// # Errors
    /// 1193 for a name that is none, 1238 for the wrong scope.
    fn sys_var(&self, _scope: VarScope, name: &str) -> Result<Value> {
        Err(MySqlError::with(ErrorCode::UnknownSystemVariable, &[&name]))
    }
}

/// Everything an evaluation needs besides the row.
pub struct EvalContext<'a> {
    /// The session.
    pub facts: &'a dyn SessionFacts,
    /// Values of the parameters.
    pub params: &'a [Value],
    /// Results of the aggregates, in the order of the binder's list.
    pub aggs: &'a [Value],
    /// The row being inserted, for VALUES(column).
    pub new_row: &'a [Value],
    /// Where warnings go.
    pub warnings: &'a mut Warnings,
    /// Whether the result is written to a table, so that strict mode makes warnings errors.
    pub writing: bool,
}

impl EvalContext<'_> {
    /// The moment the statement began, in the session's zone.
    pub fn now(&self, fsp: u8) -> DateTime {
        local(self.facts.time_zone(), self.facts.statement_micros(), fsp)
    }

    /// The current date.
    pub fn today(&self) -> Date {
        self.now(0).date()
    }
}

/// A moment in a zone, its fraction cut to `fsp` digits.
fn local(zone: &TimeZone, micros: i64, fsp: u8) -> DateTime {
    let unit = 10i64.pow(u32::from(6 - fsp.min(6)));
    zone.local_from_unix(micros - micros.rem_euclid(unit), fsp).unwrap_or(DateTime::ZERO)
}

/// How strongly an expression insists on its collation; the smaller wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coercion {
    /// COLLATE was written.
    Explicit,
    /// Two columns disagreed.
    Conflict,
    /// A column.
    Implicit,
    /// USER(), VERSION() and such.
    System,
    /// A literal or parameter.
    Literal,
    /// A number or date.
    Number,
    /// NULL.
    Ignorable,
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names are the words of the language.
pub enum CmpOp {
    Eq,
    NullSafeEq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// An expression ready to compute.
#[derive(Clone, Debug)]
pub struct BoundExpr {
    /// What it computes.
    pub node: Node,
    /// The type of the result.
    pub ty: SqlType,
    /// Whether the result may be NULL.
    pub nullable: bool,
    /// How strongly its collation counts.
    pub coercion: Coercion,
}

/// The kinds of bound expressions. Public, so that the planner can recognise `column = constant` and the
/// like.
#[derive(Clone, Debug)]
pub enum Node {
    /// A constant.
    Const(Value),
    /// A column of the row.
    Column(usize),
    /// A parameter.
    Param(usize),
    /// The result of an aggregate.
    Agg(usize),
    /// VALUES(column).
    InsertValue(usize),
    /// `@name`.
    UserVar(Box<str>),
    /// `@name := expr`.
    AssignVar(Box<str>, Box<BoundExpr>),
    /// `@@name`.
    SysVar(VarScope, Box<str>),
    /// AND.
    And(Vec<BoundExpr>),
    /// OR.
    Or(Vec<BoundExpr>),
    /// XOR.
    Xor(Box<BoundExpr>, Box<BoundExpr>),
    /// NOT.
    Not(Box<BoundExpr>),
    /// IS [NOT] NULL.
    IsNull(Box<BoundExpr>, bool),
    /// IS [NOT] TRUE or FALSE: (expr, wanted truth, negated).
    IsTruth(Box<BoundExpr>, bool, bool),
    /// A comparison under a collation.
    Compare(CmpOp, Box<BoundExpr>, Box<BoundExpr>, Collation),
    /// BETWEEN: expr, low, high, negated.
    Between(Box<[BoundExpr; 3]>, bool, Collation),
    /// IN: expr, list, negated.
    In(Box<BoundExpr>, Vec<BoundExpr>, bool, Collation),
    /// LIKE.
    Like(Box<LikeNode>),
    /// The number of an ENUM's or SET's value; with a second expression, only if that one is a number.
    Member(Box<BoundExpr>, Option<Box<BoundExpr>>),
    /// REGEXP and the functions of regular expressions.
    Regexp(Box<RegexpNode>),
    /// Arithmetic, with its text for error 1690.
    Arith(ArithOp, Box<BoundExpr>, Box<BoundExpr>, Box<str>),
    /// Bit operators.
    Bits(BitOp, Box<BoundExpr>, Box<BoundExpr>),
    /// Unary minus, with its text.
    Neg(Box<BoundExpr>, Box<str>),
    /// `~`.
    BitNot(Box<BoundExpr>),
    /// CASE: operand, pairs, else, and the collation of the comparisons.
    Case(Box<CaseNode>),
    /// CAST to the expression's type.
    Cast(Box<BoundExpr>),
    /// COLLATE, CONVERT .. USING: the expression's type has the collation.
    Recode(Box<BoundExpr>),
    /// A date plus or minus (true) an amount of a unit.
    DateArith(Box<BoundExpr>, bool, Box<BoundExpr>, TimeUnit),
    /// EXTRACT.
    Extract(TimeUnit, Box<BoundExpr>),
    /// TIMESTAMPDIFF.
    TimestampDiff(TimeUnit, Box<BoundExpr>, Box<BoundExpr>),
    /// TRIM.
    Trim(TrimSide, Option<Box<BoundExpr>>, Box<BoundExpr>),
    /// A function.
    Call(&'static FuncDef, Vec<BoundExpr>),
}

/// LIKE.
#[derive(Clone, Debug)]
pub struct LikeNode {
    /// The text.
    pub expr: BoundExpr,
    /// The pattern.
    pub pattern: BoundExpr,
    /// The escape character; `None` for `ESCAPE ''`.
    pub escape: Option<char>,
    /// NOT LIKE.
    pub not: bool,
    /// The collation.
    pub collation: Collation,
    /// The pattern, compiled, if it is constant.
    pub compiled: Option<LikePattern>,
}

/// CASE.
#[derive(Clone, Debug)]
pub struct CaseNode {
    /// The operand that WHENs are compared with.
    pub operand: Option<BoundExpr>,
    /// WHEN and THEN.
    pub whens: Vec<(BoundExpr, BoundExpr)>,
    /// ELSE.
    pub other: Option<BoundExpr>,
    /// Collation of the comparisons.
    pub collation: Collation,
}

impl BoundExpr {
    /// A constant.
    pub fn constant(value: Value, ty: SqlType) -> BoundExpr {
        let nullable = value.is_null();
        let coercion = match &value {
            Value::Null => Coercion::Ignorable,
            Value::Text(_) => Coercion::Literal,
            _ => Coercion::Number,
        };
        BoundExpr { node: Node::Const(value), ty, nullable, coercion }
    }

    /// The value, if it is a constant.
    pub fn as_const(&self) -> Option<&Value> {
        match &self.node {
            Node::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Calls `visit` for every column position used.
    pub fn for_each_column(&self, visit: &mut dyn FnMut(usize)) {
        if let Node::Column(at) = self.node {
            visit(at);
        }
        self.node.for_each_child(&mut |child| child.for_each_column(visit));
    }

    /// The value converted to the inferred type: what a result set or a derived table holds.
    ///
    /// # Errors
    /// As [`BoundExpr::eval`].
    pub fn eval_typed(&self, row: &[Value], ctx: &mut EvalContext<'_>) -> Result<Value> {
        let value = self.eval(row, ctx)?;
        Ok(types::coerce_today(value, &self.ty, ctx))
    }

    /// Whether a condition holds; `None` for NULL.
    ///
    /// # Errors
    /// As [`BoundExpr::eval`].
    pub fn truth(&self, row: &[Value], ctx: &mut EvalContext<'_>) -> Result<Option<bool>> {
        let value = self.eval(row, ctx)?;
        if member::has_members(&self.ty) {
            return Ok(crate::value::compare::truth(&member::number(&value, &self.ty)));
        }
        if let Value::Text(_) = value {
            // A text that is no number warns.
            return Ok(Some(crate::value::cast::to_f64(&value, ctx.warnings) != 0.0));
        }
        Ok(crate::value::compare::truth(&value))
    }
}

impl Node {
    /// Calls `visit` for every operand.
    pub fn for_each_child(&self, visit: &mut dyn FnMut(&BoundExpr)) {
        match self {
            Node::Const(_)
            | Node::Column(_)
            | Node::Param(_)
            | Node::Agg(_)
            | Node::InsertValue(_)
            | Node::UserVar(_)
            | Node::SysVar(..) => {}
            Node::And(list) | Node::Or(list) | Node::Call(_, list) => list.iter().for_each(visit),
            Node::AssignVar(_, a)
            | Node::Not(a)
            | Node::IsNull(a, _)
            | Node::IsTruth(a, ..)
            | Node::Neg(a, _)
            | Node::BitNot(a)
            | Node::Cast(a)
            | Node::Recode(a)
            | Node::Extract(_, a) => visit(a),
            Node::Xor(a, b)
            | Node::Compare(_, a, b, _)
            | Node::Arith(_, a, b, _)
            | Node::Bits(_, a, b)
            | Node::DateArith(a, _, b, _)
            | Node::TimestampDiff(_, a, b) => {
                visit(a);
                visit(b);
            }
            Node::Between(abc, ..) => abc.iter().for_each(visit),
            Node::In(a, list, ..) => {
                visit(a);
                list.iter().for_each(visit);
            }
            Node::Member(member, beside) => {
                visit(member);
                if let Some(beside) = beside {
                    visit(beside);
                }
            }
            Node::Regexp(regexp) => regexp.args.iter().for_each(visit),
            Node::Like(like) => {
                visit(&like.expr);
                visit(&like.pattern);
            }
            Node::Case(case) => {
                case.operand.iter().for_each(&mut *visit);
                for (when, then) in &case.whens {
                    visit(when);
                    visit(then);
                }
                case.other.iter().for_each(visit);
            }
            Node::Trim(_, what, expr) => {
                if let Some(what) = what {
                    visit(what);
                }
                visit(expr);
            }
        }
    }

    /// Whether the result depends on the operands alone.
    fn is_deterministic(&self) -> bool {
        match self {
            Node::Param(_)
            | Node::Agg(_)
            | Node::InsertValue(_)
            | Node::UserVar(_)
            | Node::AssignVar(..)
            | Node::SysVar(..)
            | Node::Column(_) => false,
            Node::Call(def, _) => def.deterministic,
            _ => true,
        }
    }
}

/// Error 1111.
fn invalid_group_function() -> MySqlError {
    MySqlError::new(ErrorCode::InvalidGroupFuncUse)
}

/// Whether a name is an aggregate whose argument is exact enough to stay exact.
fn stays_exact(func: AggFunc) -> bool {
    matches!(func, AggFunc::Sum | AggFunc::Avg)
}
