//! The table of functions: name, number of arguments, type of the result, and how to compute it.
//!
//! The entries live beside their implementations (`func_text`, `func_math`, `func_time`, `func_misc`). A
//! function sees its arguments through [`Args`], which evaluates them on demand (IF and COALESCE depend on
//! that) and converts them.

use super::types::{self, agree, coerce_today};
use super::{BoundExpr, Coercion, EvalContext, dates};
use crate::value::temporal::DateTime;
use crate::value::{Collation, ErrorCode, MySqlError, Result, SqlType, Text, Value, cast};

/// A function.
#[derive(Debug)]
pub struct FuncDef {
    /// Its name, in lower case.
    pub name: &'static str,
    /// Fewest arguments.
    pub min: u8,
    /// Most arguments; 255 for any number.
    pub max: u8,
    /// What it returns.
    pub(super) returns: Returns,
    /// May be NULL although no argument is.
    pub(super) nullable: bool,
    /// Depends on nothing but the arguments.
    pub(super) deterministic: bool,
    pub(super) eval: fn(&mut Args<'_, '_>) -> Result<Value>,
}

/// What a function returns.
#[derive(Clone, Copy, Debug)]
pub(super) enum Returns {
    Int,
    UInt,
    Double,
    Date,
    /// DATETIME or TIME with the fsp of a constant first argument.
    Now(bool),
    /// A string of so many characters, ASCII, in the connection's collation.
    Ascii(u32),
    /// A string as long as the first argument times so many.
    Like(u32),
    /// A string as long as all arguments together.
    Concat,
    /// A string that may be long.
    Long,
    /// Bytes, as long as the first argument.
    Bytes,
    /// What IF, COALESCE and their like have in common from this argument on.
    Common(u8),
    /// The type of the first argument as a number: ABS, ROUND.
    Number,
    /// Whole if the argument is exact: CEIL, FLOOR.
    Whole,
    /// By a function of the arguments.
    By(fn(&[BoundExpr], Collation) -> SqlType),
}

impl FuncDef {
    /// The function of a name, in any case.
    pub fn find(name: &str) -> Option<&'static FuncDef> {
        let tables: [&'static [FuncDef]; 4] = [
            super::func_text::TABLE,
            super::func_math::TABLE,
            super::func_time::TABLE,
            super::func_misc::TABLE,
        ];
        tables.into_iter().flatten().find(|def| def.name.eq_ignore_ascii_case(name))
    }

    /// The type of the result and how strongly its collation counts.
    pub(super) fn result_type(
        &self,
        args: &[BoundExpr],
        connection: Collation,
    ) -> Result<(SqlType, Coercion)> {
        let all: Vec<&BoundExpr> = args.iter().collect();
        let first = args.first().map_or(SqlType::Null, |e| e.ty.clone());
        let text = |chars: u64| -> Result<(SqlType, Coercion)> {
            let (collation, coercion) = agree(&all, self.name, connection)?;
            Ok((types::string(chars, collation), coercion.min(Coercion::Literal)))
        };
        let plain = |ty| Ok((ty, Coercion::Number));
        match self.returns {
            Returns::Int => plain(SqlType::BIGINT),
            Returns::UInt => plain(SqlType::BIGINT_UNSIGNED),
            Returns::Double => plain(SqlType::DOUBLE),
            Returns::Date => plain(SqlType::Date),
            Returns::Now(time_only) => {
                let fsp = match args.first().and_then(BoundExpr::as_const) {
                    Some(Value::Int(n)) => (*n).clamp(0, 6) as u8,
                    _ => 0,
                };
                plain(if time_only { SqlType::Time { fsp } } else { SqlType::DateTime { fsp } })
            }
            Returns::Ascii(chars) => Ok((types::string(u64::from(chars), connection), Coercion::Literal)),
            Returns::Like(times) => {
                // Only the text itself decides the collation; positions and counts are numbers.
                text(types::chars(&first) * u64::from(times))
            }
            Returns::Concat => text(all.iter().map(|e| types::chars(&e.ty)).sum()),
            Returns::Long => text(1 << 20),
            Returns::Bytes => {
                Ok((types::string(types::chars(&first) * 4, Collation::BINARY), Coercion::Implicit))
            }
            Returns::Common(from) => {
                let items = all.get(usize::from(from)..).unwrap_or(&[]);
                let (collation, coercion) = agree(items, self.name, connection)?;
                let ty = types::common(items, collation);
                let coercion = if ty.is_string() { coercion } else { Coercion::Number };
                Ok((ty, coercion))
            }
            Returns::Number => plain(match types::exact(&first) {
                _ if types::is_whole(&first) && first.is_unsigned() => SqlType::BIGINT_UNSIGNED,
                _ if types::is_whole(&first) => SqlType::BIGINT,
                Some((int, scale)) => types::decimal(u32::from(int), u32::from(scale)),
                None => SqlType::DOUBLE,
            }),
            Returns::Whole => plain(match types::exact(&first) {
                Some((int, scale)) if scale > 0 && int > 17 => types::decimal(u32::from(int) + 1, 0),
                Some(_) if first.is_unsigned() => SqlType::BIGINT_UNSIGNED,
                Some(_) => SqlType::BIGINT,
                None => SqlType::DOUBLE,
            }),
            Returns::By(rule) => {
                let ty = rule(args, connection);
                let coercion = if ty.is_string() { Coercion::Literal } else { Coercion::Number };
                Ok((ty, coercion))
            }
        }
    }
}

/// The arguments of one call.
pub(super) struct Args<'a, 'c> {
    pub(super) exprs: &'a [BoundExpr],
    pub(super) row: &'a [Value],
    pub(super) ctx: &'a mut EvalContext<'c>,
    /// The type of the result.
    pub(super) ty: &'a SqlType,
}

/// The value inside, or NULL as the function's result.
macro_rules! some {
    ($e:expr) => {
        match $e {
            Some(value) => value,
            None => return Ok(Value::Null),
        }
    };
}
pub(super) use some;

impl Args<'_, '_> {
    pub(super) fn len(&self) -> usize {
        self.exprs.len()
    }

    /// The argument as it is; NULL past the end.
    pub(super) fn val(&mut self, at: usize) -> Result<Value> {
        match self.exprs.get(at) {
            Some(expr) => expr.eval_typed(self.row, self.ctx),
            None => Ok(Value::Null),
        }
    }

    /// The argument in the type of the result.
    pub(super) fn result(&mut self, at: usize) -> Result<Value> {
        let value = self.val(at)?;
        Ok(coerce_today(value, self.ty, self.ctx))
    }

    /// The collation of the result; of the argument's text if the result is no string.
    pub(super) fn collation(&self) -> Collation {
        if self.ty.is_string() { self.ty.collation() } else { self.connection() }
    }

    pub(super) fn connection(&self) -> Collation {
        self.ctx.facts.connection_collation()
    }

    /// The argument as text in the collation of the result.
    pub(super) fn text(&mut self, at: usize) -> Result<Option<Text>> {
        let collation = self.collation();
        self.text_in(at, collation)
    }

    /// The argument as text in its own collation.
    pub(super) fn own_text(&mut self, at: usize) -> Result<Option<Text>> {
        let collation = match self.exprs.get(at) {
            Some(expr) => types::text_collation(expr, self.connection()),
            None => self.connection(),
        };
        self.text_in(at, collation)
    }

    pub(super) fn text_in(&mut self, at: usize, collation: Collation) -> Result<Option<Text>> {
        Ok(match self.val(at)? {
            Value::Null => None,
            value => Some(super::eval::recode(&value, collation)),
        })
    }

    /// Several arguments as text in the collation they agree on, and that collation.
    pub(super) fn texts(&mut self, name: &str) -> Result<Option<(Vec<Text>, Collation)>> {
        let all: Vec<&BoundExpr> = self.exprs.iter().collect();
        let (collation, _) = agree(&all, name, self.connection())?;
        let mut out = Vec::with_capacity(self.len());
        for at in 0..self.len() {
            match self.text_in(at, collation)? {
                Some(text) => out.push(text),
                None => return Ok(None),
            }
        }
        Ok(Some((out, collation)))
    }

    /// The argument where a number is wanted.
    fn number(&mut self, at: usize) -> Result<Value> {
        let value = self.val(at)?;
        Ok(self.exprs.get(at).map_or(Value::Null, |expr| super::member::number(&value, &expr.ty)))
    }

    pub(super) fn int(&mut self, at: usize) -> Result<Option<i64>> {
        Ok(match self.number(at)? {
            Value::Null => None,
            value => Some(
                cast::to_int(&value, self.ctx.warnings).clamp(i128::from(i64::MIN), i128::from(i64::MAX))
                    as i64,
            ),
        })
    }

    pub(super) fn double(&mut self, at: usize) -> Result<Option<f64>> {
        Ok(match self.number(at)? {
            Value::Null => None,
            value => Some(cast::to_f64(&value, self.ctx.warnings)),
        })
    }

    pub(super) fn moment(&mut self, at: usize) -> Result<Option<DateTime>> {
        Ok(match self.val(at)? {
            Value::Null => None,
            value => dates::moment(&value, self.ctx),
        })
    }

    /// A string of the result's collation.
    pub(super) fn string(&self, bytes: &[u8]) -> Value {
        Value::Text(Text::new(bytes, self.collation()))
    }

    /// Whether a string of so many bytes may be made. If not, the result is NULL and there is a warning.
    pub(super) fn fits(&mut self, bytes: usize, name: &str) -> bool {
        let limit = self.ctx.facts.max_allowed_packet();
        if bytes > limit {
            let args: [&dyn std::fmt::Display; 2] = [&name, &limit];
            self.ctx.warnings.warn(MySqlError::with(ErrorCode::WarnAllowedPacketOverflowed, &args));
        }
        bytes <= limit
    }
}

/// A function that is NULL only if an argument is.
pub(super) const fn def(
    name: &'static str,
    min: u8,
    max: u8,
    returns: Returns,
    eval: fn(&mut Args<'_, '_>) -> Result<Value>,
) -> FuncDef {
    FuncDef { name, min, max, returns, nullable: false, deterministic: true, eval }
}

/// A function that may be NULL by itself.
pub(super) const fn def_null(
    name: &'static str,
    min: u8,
    max: u8,
    returns: Returns,
    eval: fn(&mut Args<'_, '_>) -> Result<Value>,
) -> FuncDef {
    FuncDef { name, min, max, returns, nullable: true, deterministic: true, eval }
}

/// A function of the session, the clock or chance.
pub(super) const fn def_session(
    name: &'static str,
    min: u8,
    max: u8,
    returns: Returns,
    eval: fn(&mut Args<'_, '_>) -> Result<Value>,
) -> FuncDef {
    FuncDef { name, min, max, returns, nullable: true, deterministic: false, eval }
}
