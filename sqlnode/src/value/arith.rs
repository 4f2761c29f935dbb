//! Operators: `+ - * / DIV % - ~ & | ^ << >>` on any two values.
//!
//! The kind of a result follows MySQL: a double (or a string) on either side makes a double, else a decimal
//! makes a decimal, else whole numbers stay whole and are unsigned when either side is. `/` never gives a
//! whole number. NULL on either side gives NULL. A result outside its type is error 1690; a division by zero
//! is NULL, with warning 1365 when sql_mode asks for it, and an error inside a strict write.
//!
//! A DECIMAL result carries more digits than it shows: the result's type has the scale, see
//! [`super::decimal`].

use super::{Decimal, ErrorCode, MySqlError, Result, SqlMode, Value, Warnings, cast};
use std::fmt::Display;

/// What an operator must know besides its operands.
pub struct ArithContext<'a> {
    /// The session's mode.
    pub mode: SqlMode,
    /// div_precision_increment.
    pub div_increment: u8,
    /// Whether the result is being written, so that strict mode makes a division by zero an error.
    pub writing: bool,
    /// The expression as text, for error 1690.
    pub expression: &'a dyn Display,
    /// Where warnings go.
    pub warnings: &'a mut Warnings,
}

impl ArithContext<'_> {
    fn out_of_range(&self, type_name: &str) -> MySqlError {
        MySqlError::out_of_range(type_name, &self.expression.to_string())
    }

    fn division_by_zero(&mut self) -> Result<Value> {
        if self.mode.contains(SqlMode::ERROR_FOR_DIVISION_BY_ZERO) {
            let error = MySqlError::new(ErrorCode::DivisionByZero);
            if self.writing && self.mode.is_strict() {
                return Err(error);
            }
            self.warnings.warn(error);
        }
        Ok(Value::Null)
    }
}

/// An operator of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `DIV`
    IntDiv,
    /// `%` and MOD
    Mod,
}

/// Both operands in their common kind.
enum Pair {
    /// Whole numbers, and whether the result is unsigned.
    Int(i128, i128, bool),
    Decimal(Decimal, Decimal),
    Double(f64, f64),
}

fn pair(left: &Value, right: &Value, warnings: &mut Warnings) -> Pair {
    let is_double = |v: &Value| matches!(v, Value::Float(_) | Value::Double(_) | Value::Text(_));
    let fraction = |v: &Value| match v {
        Value::Decimal(_) => true,
        Value::DateTime(v) => v.fsp() > 0,
        Value::Time(v) => v.fsp() > 0,
        _ => false,
    };
    if is_double(left) || is_double(right) {
        return Pair::Double(cast::to_f64(left, warnings), cast::to_f64(right, warnings));
    }
    if fraction(left) || fraction(right) {
        return Pair::Decimal(cast::as_decimal(left), cast::as_decimal(right));
    }
    let unsigned = matches!(left, Value::UInt(_)) || matches!(right, Value::UInt(_));
    Pair::Int(cast::to_int(left, warnings), cast::to_int(right, warnings), unsigned)
}

/// Applies an operator.
///
/// # Errors
/// 1690 when the result does not fit its type, 1365 for a division by zero in a strict write.
pub fn apply(op: ArithOp, left: &Value, right: &Value, context: &mut ArithContext<'_>) -> Result<Value> {
    if left.is_null() || right.is_null() {
        return Ok(Value::Null);
    }
    // The two most frequent cases, without widening.
    if let (Value::Int(a), Value::Int(b)) = (left, right) {
        let result = match op {
            ArithOp::Add => a.checked_add(*b),
            ArithOp::Sub => a.checked_sub(*b),
            ArithOp::Mul => a.checked_mul(*b),
            ArithOp::Div => return divide(left, right, context),
            ArithOp::IntDiv if *b == 0 => return context.division_by_zero(),
            ArithOp::IntDiv => a.checked_div(*b),
            ArithOp::Mod if *b == 0 => return context.division_by_zero(),
            ArithOp::Mod => Some(a.wrapping_rem(*b)),
        };
        return result.map(Value::Int).ok_or_else(|| context.out_of_range("BIGINT"));
    }
    match op {
        ArithOp::Div => divide(left, right, context),
        ArithOp::IntDiv => int_divide(left, right, context),
        ArithOp::Mod => modulo(left, right, context),
        ArithOp::Add | ArithOp::Sub | ArithOp::Mul => match pair(left, right, context.warnings) {
            Pair::Int(a, b, unsigned) => {
                let result = match op {
                    ArithOp::Sub => a.checked_sub(b),
                    ArithOp::Mul => a.checked_mul(b),
                    _ => a.checked_add(b),
                };
                let signed_difference =
                    op == ArithOp::Sub && context.mode.contains(SqlMode::NO_UNSIGNED_SUBTRACTION);
                whole(result, unsigned && !signed_difference, context)
            }
            Pair::Decimal(a, b) => {
                let result = match op {
                    ArithOp::Sub => a.sub(&b),
                    ArithOp::Mul => a.mul(&b),
                    _ => a.add(&b),
                };
                result.map(Value::Decimal).map_err(|_| context.out_of_range("DECIMAL"))
            }
            Pair::Double(a, b) => {
                let result = match op {
                    ArithOp::Sub => a - b,
                    ArithOp::Mul => a * b,
                    _ => a + b,
                };
                finite(result, context)
            }
        },
    }
}

/// A whole result in its type.
fn whole(value: Option<i128>, unsigned: bool, context: &ArithContext<'_>) -> Result<Value> {
    let fitted = value.and_then(|v| {
        if unsigned { u64::try_from(v).ok().map(Value::UInt) } else { i64::try_from(v).ok().map(Value::Int) }
    });
    fitted.ok_or_else(|| context.out_of_range(if unsigned { "BIGINT UNSIGNED" } else { "BIGINT" }))
}

fn finite(value: f64, context: &ArithContext<'_>) -> Result<Value> {
    if value.is_finite() { Ok(Value::Double(value)) } else { Err(context.out_of_range("DOUBLE")) }
}

fn divide(left: &Value, right: &Value, context: &mut ArithContext<'_>) -> Result<Value> {
    let (a, b) = match pair(left, right, context.warnings) {
        Pair::Double(_, 0.0) => return context.division_by_zero(),
        Pair::Double(a, b) => return finite(a / b, context),
        Pair::Decimal(a, b) => (a, b),
        Pair::Int(..) => (cast::as_decimal(left), cast::as_decimal(right)),
    };
    match a.div(&b, context.div_increment) {
        Ok(Some(quotient)) => Ok(Value::Decimal(quotient)),
        Ok(None) => context.division_by_zero(),
        Err(_) => Err(context.out_of_range("DECIMAL")),
    }
}

/// DIV: operands that are not whole are decimals, doubles included.
fn int_divide(left: &Value, right: &Value, context: &mut ArithContext<'_>) -> Result<Value> {
    let unsigned = matches!(left, Value::UInt(_)) || matches!(right, Value::UInt(_));
    let (a, b) = (cast::to_decimal(left, context.warnings), cast::to_decimal(right, context.warnings));
    match a.int_div(&b) {
        Ok(Some(quotient)) => whole(quotient.to_i128(), unsigned, context),
        Ok(None) => context.division_by_zero(),
        Err(_) => Err(context.out_of_range("BIGINT")),
    }
}

/// The remainder has the sign of the dividend, and is unsigned when the dividend is.
fn modulo(left: &Value, right: &Value, context: &mut ArithContext<'_>) -> Result<Value> {
    match pair(left, right, context.warnings) {
        Pair::Int(_, 0, _) | Pair::Double(_, 0.0) => context.division_by_zero(),
        Pair::Int(a, b, _) => whole(a.checked_rem(b), matches!(left, Value::UInt(_)), context),
        Pair::Double(a, b) => finite(a % b, context),
        Pair::Decimal(a, b) => match a.rem(&b) {
            Some(remainder) => Ok(Value::Decimal(remainder)),
            None => context.division_by_zero(),
        },
    }
}

/// Unary minus.
///
/// # Errors
/// 1690 for the negative of a number that has none in BIGINT.
pub fn negate(value: &Value, context: &mut ArithContext<'_>) -> Result<Value> {
    Ok(match value {
        Value::Null => Value::Null,
        Value::Int(v) => Value::Int(v.checked_neg().ok_or_else(|| context.out_of_range("BIGINT"))?),
        Value::UInt(v) => return whole(Some(-i128::from(*v)), false, context),
        Value::Decimal(v) => Value::Decimal(v.neg()),
        Value::Float(_) | Value::Double(_) | Value::Text(_) => {
            Value::Double(-cast::to_f64(value, context.warnings))
        }
        Value::Date(_) => Value::Int(-(cast::to_int(value, context.warnings) as i64)),
        Value::DateTime(_) | Value::Time(_) => Value::Decimal(cast::as_decimal(value).neg()),
    })
}

/// A bit operator of two operands; results are BIGINT UNSIGNED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOp {
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
}

/// Applies a bit operator to the 64 bits of both numbers. A shift by 64 or more gives 0.
pub fn apply_bits(op: BitOp, left: &Value, right: &Value, warnings: &mut Warnings) -> Value {
    if left.is_null() || right.is_null() {
        return Value::Null;
    }
    let (a, b) = (bits(left, warnings), bits(right, warnings));
    let shift = u32::try_from(b).unwrap_or(u32::MAX);
    Value::UInt(match op {
        BitOp::And => a & b,
        BitOp::Or => a | b,
        BitOp::Xor => a ^ b,
        BitOp::ShiftLeft => a.checked_shl(shift).unwrap_or(0),
        BitOp::ShiftRight => a.checked_shr(shift).unwrap_or(0),
    })
}

/// `~`
pub fn invert_bits(value: &Value, warnings: &mut Warnings) -> Value {
    if value.is_null() { Value::Null } else { Value::UInt(!bits(value, warnings)) }
}

fn bits(value: &Value, warnings: &mut Warnings) -> u64 {
    // Negative numbers count as their 64 bits.
    cast::to_int(value, warnings) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eval(op: ArithOp, a: impl Into<Value>, b: impl Into<Value>) -> Result<Value> {
        eval_mode(op, &a.into(), &b.into(), SqlMode::default(), &mut Warnings::new())
    }

    fn eval_mode(op: ArithOp, a: &Value, b: &Value, mode: SqlMode, warnings: &mut Warnings) -> Result<Value> {
        let expression = "(a op b)";
        let mut context =
            ArithContext { mode, div_increment: 4, writing: false, expression: &expression, warnings };
        apply(op, a, b, &mut context)
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(eval(ArithOp::Add, 1i64, 2i64).unwrap(), Value::Int(3));
        assert_eq!(eval(ArithOp::Add, 1i64, 2u64).unwrap(), Value::UInt(3));
        let e = eval(ArithOp::Add, i64::MAX, 1i64).unwrap_err();
        assert_eq!(e.to_string(), "ERROR 1690 (22003): BIGINT value is out of range in '(a op b)'");
        let e = eval(ArithOp::Sub, 1u64, 2i64).unwrap_err();
        assert_eq!(e.message, "BIGINT UNSIGNED value is out of range in '(a op b)'");
        let mode = SqlMode::NO_UNSIGNED_SUBTRACTION;
        let w = &mut Warnings::new();
        assert_eq!(
            eval_mode(ArithOp::Sub, &Value::UInt(1), &Value::Int(2), mode, w).unwrap(),
            Value::Int(-1)
        );
        assert_eq!(eval(ArithOp::IntDiv, -7i64, 2i64).unwrap(), Value::Int(-3));
        assert_eq!(eval(ArithOp::Mod, -7i64, 2i64).unwrap(), Value::Int(-1));
        assert_eq!(eval(ArithOp::Mod, i64::MIN, -1i64).unwrap(), Value::Int(0));
        assert!(eval(ArithOp::IntDiv, i64::MIN, -1i64).is_err());
        assert_eq!(eval(ArithOp::IntDiv, 5.9f64, 2i64).unwrap(), Value::Int(2));
    }

    #[test]
    fn mixed_kinds() {
        assert_eq!(eval(ArithOp::Add, Value::text("1"), 1i64).unwrap(), Value::Double(2.0));
        assert_eq!(eval(ArithOp::Div, 7i64, 2i64).unwrap().to_shown(4), "3.5000");
        assert_eq!(eval(ArithOp::Add, Value::Null, 1i64).unwrap(), Value::Null);
        let d = Decimal::from_unscaled(15, 1);
        assert_eq!(
            eval(ArithOp::Add, d.clone(), 1i64).unwrap(),
            Value::Decimal(Decimal::from_unscaled(25, 1))
        );
        assert_eq!(eval(ArithOp::Mul, d, 2.0f64).unwrap(), Value::Double(3.0));
        assert_eq!(eval(ArithOp::Mul, f64::MAX, 2.0f64).unwrap_err().code, 1690);
    }

    #[test]
    fn division_by_zero_is_null_and_warns() {
        let w = &mut Warnings::new();
        for (op, zero) in [
            (ArithOp::Div, Value::Int(0)),
            (ArithOp::Mod, Value::Double(0.0)),
            (ArithOp::IntDiv, Value::Int(0)),
        ] {
            assert_eq!(eval_mode(op, &Value::Int(1), &zero, SqlMode::default(), w).unwrap(), Value::Null);
        }
        assert_eq!(w.count(), 3);
        assert!(w.iter().all(|w| w.error.code == 1365));
        let w = &mut Warnings::new();
        eval_mode(ArithOp::Div, &Value::Int(1), &Value::Int(0), SqlMode::EMPTY, w).unwrap();
        assert!(w.is_empty());
    }

    #[test]
    fn bits_are_unsigned() {
        let w = &mut Warnings::new();
        assert_eq!(apply_bits(BitOp::And, &Value::Int(-1), &Value::Int(5), w), Value::UInt(5));
        assert_eq!(apply_bits(BitOp::ShiftLeft, &Value::Int(1), &Value::Int(64), w), Value::UInt(0));
        assert_eq!(apply_bits(BitOp::ShiftLeft, &Value::Int(1), &Value::Int(-1), w), Value::UInt(0));
        assert_eq!(invert_bits(&Value::Int(0), w), Value::UInt(u64::MAX));
    }

    impl Value {
        fn to_shown(&self, scale: u8) -> String {
            cast::as_decimal(self).round(scale).unwrap().to_string()
        }
    }
}
