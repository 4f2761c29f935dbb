//! Values of parameters: from the file's text to a checked value of the parameter's type, and back to text.
//!
//! Numbers take NDB's suffixes K, M, G, T (powers of 1024), in either case. Nothing here knows a
//! parameter's name; what is allowed comes from its row in the table.

use crate::params::{Kind, Param};
use crate::problem::ProblemCode;

/// A checked value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// Integers, bytes and times.
    Number(u64),
    /// Booleans.
    Flag(bool),
    /// Text, and words of an enumeration in their proper spelling.
    Text(String),
}

/// Why a text is not a value of the parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ProblemCode,
    pub(crate) message: String,
    pub(crate) hint: &'static str,
}

/// Reads a text as a value of this parameter.
pub(crate) fn parse_value(param: &Param, text: &str) -> Result<Value, Refusal> {
    let bad = |hint| Refusal {
        code: ProblemCode::BadValue,
        message: format!("not a valid value; allowed is {}", param.allowed()),
        hint,
    };
    match param.kind {
        Kind::Number(_) => {
            let number = parse_number(text).map_err(bad)?;
            if number < param.min || number > param.max {
                return Err(Refusal {
                    code: ProblemCode::OutOfRange,
                    message: format!("out of range; allowed is {}", param.allowed()),
                    hint: "",
                });
            }
            Ok(Value::Number(number))
        }
        Kind::Flag => parse_flag(text).map(Value::Flag).ok_or_else(|| bad("use true or false")),
        Kind::Word(words) => words
            .iter()
            .find(|w| w.eq_ignore_ascii_case(text))
            .map(|w| Value::Text((*w).to_owned()))
            .ok_or_else(|| bad("")),
        Kind::Text => {
            if text.len() as u64 > param.max {
                return Err(Refusal {
                    code: ProblemCode::OutOfRange,
                    message: format!("too long; allowed is {}", param.allowed()),
                    hint: "",
                });
            }
            if text.chars().any(char::is_control) {
                return Err(bad("remove the control characters"));
            }
            Ok(Value::Text(text.to_owned()))
        }
    }
}

/// Reads `12`, `98M`, `1g`; the error is a hint.
fn parse_number(text: &str) -> Result<u64, &'static str> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(digits_end);
    if digits.is_empty() {
        let hint = if text.starts_with('-') { "negative numbers are not allowed" } else { "give a number" };
        return Err(hint);
    }
    let number: u64 = digits.parse().map_err(|_| "the number is too big")?;
    let shift = match suffix {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        "T" | "t" => 40,
        _ => return Err("suffixes are K, M, G and T, directly behind the digits"),
    };
    number.checked_mul(1u64 << shift).ok_or("the number is too big")
}

fn parse_flag(text: &str) -> Option<bool> {
    const YES: [&str; 6] = ["1", "true", "yes", "on", "y", "t"];
    const NO: [&str; 6] = ["0", "false", "no", "off", "n", "f"];
    if YES.iter().any(|w| w.eq_ignore_ascii_case(text)) {
        return Some(true);
    }
    NO.iter().any(|w| w.eq_ignore_ascii_case(text)).then_some(false)
}

/// A number the way people write it in the file: `98M` rather than 102760448.
pub(crate) fn number_text(number: u64) -> String {
    for (shift, suffix) in [(40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')] {
        if number != 0 && number.trailing_zeros() >= shift {
            return format!("{}{suffix}", number >> shift);
        }
    }
    number.to_string()
}

impl Value {
    /// The value as text, sizes with their suffix.
    pub(crate) fn text(&self, param: &Param) -> String {
        match self {
            Value::Number(n) if param.is_size() => number_text(*n),
            Value::Number(n) => n.to_string(),
            Value::Flag(b) => b.to_string(),
            Value::Text(t) => t.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_suffixes_and_refuse_the_rest() {
        assert_eq!(parse_number("0"), Ok(0));
        assert_eq!(parse_number("98M"), Ok(98 << 20));
        assert_eq!(parse_number("1g"), Ok(1 << 30));
        assert_eq!(parse_number("16T"), Ok(16 << 40));
        for bad in ["", "-1", "M", "12MB", "1.5G", "1 G", "0x10", "99999999999999999999", "99999999T", "１"]
        {
            assert!(parse_number(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_written_as_people_write_them() {
        assert_eq!(number_text(98 << 20), "98M");
        assert_eq!(number_text(0), "0");
        assert_eq!(number_text(1025), "1025");
        assert_eq!(number_text(3 << 30), "3G");
    }
}
