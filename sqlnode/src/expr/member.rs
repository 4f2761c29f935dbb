//! Members of ENUM and SET as numbers: what a value of these types is where a number is wanted.
//!
//! A row holds such a value as text. MySQL takes it as a number in arithmetic, in functions of numbers, in
//! sums, as a truth value, against numbers, and to sort by: the member's place counted from 1 for ENUM (0
//! for the empty value that stands for an error), the bits of the members for SET. The binder puts
//! [`Node::Member`] where that is so; everywhere else the text stays.

use super::{BoundExpr, EvalContext, Node};
use crate::value::{Result, SqlType, Value, cast};

/// Whether values of the type are members with numbers.
pub(super) fn has_members(ty: &SqlType) -> bool {
    matches!(ty, SqlType::Enum { .. } | SqlType::Set { .. })
}

impl BoundExpr {
    /// The expression as something to sort by: ENUM and SET sort by number.
    #[must_use]
    pub fn for_sorting(self) -> BoundExpr {
        if !has_members(&self.ty) {
            return self;
        }
        let nullable = self.nullable;
        let node = Node::Member(Box::new(self), None);
        BoundExpr { node, ty: SqlType::BIGINT_UNSIGNED, nullable, coercion: super::Coercion::Number }
    }
}

/// The number of a value of the expression; with `beside`, only if that is a number too.
pub(super) fn eval(
    member: &BoundExpr,
    beside: Option<&BoundExpr>,
    row: &[Value],
    ctx: &mut EvalContext<'_>,
) -> Result<Value> {
    let value = member.eval(row, ctx)?;
    if let Some(beside) = beside
        && matches!(beside.eval(row, ctx)?, Value::Text(_) | Value::Null)
    {
        return Ok(value);
    }
    Ok(number(&value, &member.ty))
}

/// The number of a value of an ENUM or SET.
pub(super) fn number(value: &Value, ty: &SqlType) -> Value {
    let Value::Text(text) = value else { return value.clone() };
    let (members, collation) = match ty {
        SqlType::Enum { members, collation } | SqlType::Set { members, collation } => (members, *collation),
        _ => return value.clone(),
    };
    let text = cast::to_text(&Value::Text(text.clone()), collation);
    let place = |name: &str| {
        let same = |m: &str| {
            m == name || collation.charset().is_multi_byte() && collation.equal(m.as_bytes(), name.as_bytes())
        };
        let exact = members.iter().position(|m| **m == *name);
        exact.or_else(|| members.iter().position(|m| same(m)))
    };
    let text = text.to_str_lossy();
    let number = match ty {
        SqlType::Set { .. } => {
            let bit = |name: &str| place(name).map_or(0, |at| 1u64.checked_shl(at as u32).unwrap_or(0));
            text.split(',').map(bit).fold(0, |bits, bit| bits | bit)
        }
        _ => place(&text).map_or(0, |at| at as u64 + 1),
    };
    // Signed where it can be, so that a difference may be negative.
    i64::try_from(number).map_or(Value::UInt(number), Value::Int)
}
