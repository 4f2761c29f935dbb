//! Expressions to text. `write_at(min)` puts parentheses around an expression looser than its place allows.

use std::fmt::{self, Display, Formatter};

use super::{Id, Text, Var, flag, list, write_hex, write_text};
use crate::parser::ast::{
    Agg, AggFunc, BinOp, CastType, Expr, IsTest, Lit, OrderBy, SysVar, TimeUnit, TrimSide, UnOp, VarScope,
    Window,
};
use crate::parser::expr::level;

/// How tightly an expression holds together.
fn level_of(expr: &Expr) -> u8 {
    match expr {
        Expr::Or(_) => level::OR,
        Expr::And(_) => level::AND,
        Expr::Unary(UnOp::Not, _) => level::NOT,
        Expr::Unary(..) => level::UNARY,
        // An assignment takes everything to its right.
        Expr::Assign(..) => level::OR,
        Expr::Binary(op, ..) => binary_level(*op),
        Expr::Is { .. } | Expr::Quantified { .. } => level::COMPARE,
        Expr::Between { .. }
        | Expr::In { .. }
        | Expr::InSelect { .. }
        | Expr::Like { .. }
        | Expr::Regexp { .. } => level::PREDICATE,
        Expr::DateArith { .. } => level::ADD,
        Expr::Collate(..) => level::COLLATE,
        _ => level::ATOM,
    }
}

fn binary_level(op: BinOp) -> u8 {
    match op {
        BinOp::Xor => level::XOR,
        BinOp::Eq | BinOp::NullSafeEq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => {
            level::COMPARE
        }
        BinOp::SoundsLike | BinOp::MemberOf => level::PREDICATE,
        BinOp::BitOr => level::BIT_OR,
        BinOp::BitAnd => level::BIT_AND,
        BinOp::Shl | BinOp::Shr => level::SHIFT,
        BinOp::Add | BinOp::Sub => level::ADD,
        BinOp::Mul | BinOp::Div | BinOp::IntDiv | BinOp::Mod => level::MUL,
        BinOp::BitXor => level::BIT_XOR,
        BinOp::Concat => level::CONCAT,
        BinOp::JsonExtract | BinOp::JsonUnquote => level::ATOM,
    }
}

/// An expression in a place that takes level `.1` and tighter.
struct At<'a>(&'a Expr, u8);

impl Display for At<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if level_of(self.0) < self.1 { write!(f, "({})", self.0) } else { write!(f, "{}", self.0) }
    }
}

fn not(on: bool) -> &'static str {
    if on { "NOT " } else { "" }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Lit(lit) => write!(f, "{lit}"),
            Expr::Param(_) => f.write_str("?"),
            Expr::Col(column) => write!(f, "{column}"),
            Expr::UserVar(name) => write!(f, "{}", Var(name)),
            Expr::Assign(name, value) => write!(f, "{} := {value}", Var(name)),
            Expr::SysVar(var) => write!(f, "{var}"),
            Expr::Unary(op, operand) => match op {
                UnOp::Not => write!(f, "NOT {}", At(operand, level::NOT)),
                // A blank keeps `- -1` from becoming a comment.
                UnOp::Neg if matches!(**operand, Expr::Unary(UnOp::Neg, _)) => write!(f, "- {operand}"),
                UnOp::Neg => write!(f, "-{}", At(operand, level::UNARY)),
                UnOp::Plus => write!(f, "+{}", At(operand, level::UNARY)),
                UnOp::BitNot => write!(f, "~{}", At(operand, level::UNARY)),
            },
            Expr::Binary(op, left, right) => write_binary(f, *op, left, right),
            Expr::And(operands) => write_chain(f, operands, " AND ", level::AND + 1),
            Expr::Or(operands) => write_chain(f, operands, " OR ", level::OR + 1),
            Expr::Is { .. }
            | Expr::Between { .. }
            | Expr::In { .. }
            | Expr::InSelect { .. }
            | Expr::Like { .. }
            | Expr::Regexp { .. }
            | Expr::Quantified { .. } => write_predicate(f, self),
            Expr::Collate(expr, name) => write!(f, "{} COLLATE {}", At(expr, level::COLLATE), Id(name)),
            Expr::Case { operand, whens, other } => {
                f.write_str("CASE")?;
                if let Some(operand) = operand {
                    write!(f, " {operand}")?;
                }
                for (when, then) in whens {
                    write!(f, " WHEN {when} THEN {then}")?;
                }
                if let Some(other) = other {
                    write!(f, " ELSE {other}")?;
                }
                f.write_str(" END")
            }
            Expr::Cast { expr, ty } => write!(f, "CAST({expr} AS {ty})"),
            Expr::ConvertUsing(expr, charset) => write!(f, "CONVERT({expr} USING {})", Id(charset)),
            Expr::Agg(agg) => write!(f, "{agg}"),
            Expr::Row(items) => {
                f.write_str("(")?;
                list(f, items, ", ")?;
                f.write_str(")")
            }
            Expr::Subquery(query) => write!(f, "({query})"),
            Expr::Exists(query) => write!(f, "EXISTS ({query})"),
            Expr::Default(None) => f.write_str("DEFAULT"),
            Expr::Default(Some(column)) => write!(f, "DEFAULT({column})"),
            Expr::Values(column) => write!(f, "VALUES({column})"),
            Expr::Window(window) => write!(f, "{window}"),
            Expr::Call(_)
            | Expr::DateArith { .. }
            | Expr::Extract(..)
            | Expr::TimestampAdd(..)
            | Expr::TimestampDiff(..)
            | Expr::Trim { .. }
            | Expr::Match { .. } => write_function(f, self),
        }
    }
}

fn write_chain(f: &mut Formatter<'_>, operands: &[Expr], word: &str, min: u8) -> fmt::Result {
    for (i, operand) in operands.iter().enumerate() {
        if i > 0 {
            f.write_str(word)?;
        }
        write!(f, "{}", At(operand, min))?;
    }
    Ok(())
}

fn write_binary(f: &mut Formatter<'_>, op: BinOp, left: &Expr, right: &Expr) -> fmt::Result {
    let level = binary_level(op);
    match op {
        BinOp::MemberOf => write!(f, "{} MEMBER OF ({right})", At(left, level::BIT_OR)),
        BinOp::SoundsLike => {
            write!(f, "{} SOUNDS LIKE {}", At(left, level::BIT_OR), At(right, level::BIT_OR))
        }
        BinOp::JsonExtract | BinOp::JsonUnquote => write!(f, "{left}{op}{right}"),
        _ => write!(f, "{} {op} {}", At(left, level), At(right, level + 1)),
    }
}

fn write_predicate(f: &mut Formatter<'_>, expr: &Expr) -> fmt::Result {
    match expr {
        Expr::Is { expr, not: n, test } => {
            let test = match test {
                IsTest::Null => "NULL",
                IsTest::True => "TRUE",
                IsTest::False => "FALSE",
                IsTest::Unknown => "UNKNOWN",
            };
            write!(f, "{} IS {}{test}", At(expr, level::COMPARE), not(*n))
        }
        Expr::Between { expr, not: n, low, high } => {
            let (expr, low, high) =
                (At(expr, level::BIT_OR), At(low, level::BIT_OR), At(high, level::PREDICATE));
            write!(f, "{expr} {}BETWEEN {low} AND {high}", not(*n))
        }
        Expr::In { expr, not: n, list: items } => {
            write!(f, "{} {}IN (", At(expr, level::BIT_OR), not(*n))?;
            list(f, items, ", ")?;
            f.write_str(")")
        }
        Expr::InSelect { expr, not: n, query } => {
            write!(f, "{} {}IN ({query})", At(expr, level::BIT_OR), not(*n))
        }
        Expr::Like { expr, not: n, pattern, escape } => {
            write!(f, "{} {}LIKE {}", At(expr, level::BIT_OR), not(*n), At(pattern, level::UNARY))?;
            match escape {
                Some(escape) => write!(f, " ESCAPE {}", At(escape, level::UNARY)),
                None => Ok(()),
            }
        }
        Expr::Regexp { expr, not: n, pattern } => {
            write!(f, "{} {}REGEXP {}", At(expr, level::BIT_OR), not(*n), At(pattern, level::BIT_OR))
        }
        Expr::Quantified { expr, op, all, query } => {
            let quantifier = if *all { "ALL" } else { "ANY" };
            write!(f, "{} {op} {quantifier} ({query})", At(expr, level::COMPARE))
        }
        _ => Ok(()),
    }
}

fn write_function(f: &mut Formatter<'_>, expr: &Expr) -> fmt::Result {
    match expr {
        Expr::Call(call) => {
            if let Some(db) = &call.db {
                write!(f, "{}.", Id(db))?;
            }
            // Unquoted: a quoted name would not be a function's, and reserved words are functions here.
            write!(f, "{}(", call.name)?;
            list(f, &call.args, ", ")?;
            f.write_str(")")
        }
        Expr::DateArith { expr, sub, amount, unit } => {
            let sign = if *sub { "-" } else { "+" };
            write!(f, "{} {sign} INTERVAL {amount} {unit}", At(expr, level::ADD))
        }
        Expr::Extract(unit, expr) => write!(f, "EXTRACT({unit} FROM {expr})"),
        Expr::TimestampAdd(unit, amount, expr) => write!(f, "TIMESTAMPADD({unit}, {amount}, {expr})"),
        Expr::TimestampDiff(unit, from, to) => write!(f, "TIMESTAMPDIFF({unit}, {from}, {to})"),
        Expr::Trim { side, what, expr } => {
            let side = match side {
                TrimSide::Both => "BOTH ",
                TrimSide::Leading => "LEADING ",
                TrimSide::Trailing => "TRAILING ",
            };
            match what {
                None if side == "BOTH " => write!(f, "TRIM({expr})"),
                None => write!(f, "TRIM({side}FROM {expr})"),
                Some(what) => write!(f, "TRIM({side}{what} FROM {expr})"),
            }
        }
        Expr::Match { columns, against, mode } => {
            f.write_str("MATCH (")?;
            list(f, columns, ", ")?;
            write!(f, ") AGAINST ({}", At(against, level::BIT_OR))?;
            flag(f, !mode.is_empty(), mode)?;
            f.write_str(")")
        }
        _ => Ok(()),
    }
}

impl Display for Lit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let intro = |f: &mut Formatter<'_>, charset: &Option<Box<str>>| match charset {
            Some(charset) => write!(f, "_{charset} "),
            None => Ok(()),
        };
        match self {
            Lit::Null => f.write_str("NULL"),
            Lit::Bool(true) => f.write_str("TRUE"),
            Lit::Bool(false) => f.write_str("FALSE"),
            Lit::Int(value) => write!(f, "{value}"),
            Lit::Dec(text) | Lit::Float(text) => f.write_str(text),
            Lit::Str(text) => write_text(f, text),
            Lit::IntroStr(charset, text) => {
                write!(f, "_{charset} ")?;
                if std::str::from_utf8(text).is_ok() { write_text(f, text) } else { write_hex(f, text) }
            }
            Lit::Hex(charset, bytes) => {
                intro(f, charset)?;
                write_hex(f, bytes)
            }
            Lit::Bit(charset, bytes) => {
                intro(f, charset)?;
                f.write_str("b'")?;
                for byte in bytes {
                    write!(f, "{byte:08b}")?;
                }
                f.write_str("'")
            }
            Lit::Date(text) => write!(f, "DATE {}", Text(text)),
            Lit::Time(text) => write!(f, "TIME {}", Text(text)),
            Lit::Timestamp(text) => write!(f, "TIMESTAMP {}", Text(text)),
        }
    }
}

/// The scope's word with a blank behind, or nothing.
pub(super) fn scope(scope: VarScope) -> &'static str {
    match scope {
        VarScope::None => "",
        VarScope::Global => "GLOBAL ",
        VarScope::Session => "SESSION ",
        VarScope::Persist => "PERSIST ",
        VarScope::PersistOnly => "PERSIST_ONLY ",
    }
}

/// A system variable's name: each part quoted on its own.
pub(super) struct VarName<'a>(pub(super) &'a str);

impl Display for VarName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.split_once('.') {
            Some((component, name)) => write!(f, "{}.{}", Id(component), Id(name)),
            None => write!(f, "{}", Id(self.0)),
        }
    }
}

impl Display for SysVar {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let scope = scope(self.scope).trim_end();
        let dot = if scope.is_empty() { "" } else { "." };
        write!(f, "@@{scope}{dot}{}", VarName(&self.name))
    }
}

impl Display for BinOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BinOp::Xor => "XOR",
            BinOp::Eq => "=",
            BinOp::NullSafeEq => "<=>",
            BinOp::Ne => "<>",
            BinOp::Lt => "<",
            BinOp::Le => "<=",
            BinOp::Gt => ">",
            BinOp::Ge => ">=",
            BinOp::BitOr => "|",
            BinOp::BitAnd => "&",
            BinOp::Shl => "<<",
            BinOp::Shr => ">>",
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::Div => "/",
            BinOp::IntDiv => "DIV",
            BinOp::Mod => "%",
            BinOp::BitXor => "^",
            BinOp::SoundsLike => "SOUNDS LIKE",
            BinOp::MemberOf => "MEMBER OF",
            BinOp::JsonExtract => "->",
            BinOp::JsonUnquote => "->>",
            BinOp::Concat => "||",
        })
    }
}

impl Display for CastType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sized = |f: &mut Formatter<'_>, word: &str, size: &Option<u32>| match size {
            Some(size) => write!(f, "{word}({size})"),
            None => f.write_str(word),
        };
        match self {
            CastType::Signed => f.write_str("SIGNED"),
            CastType::Unsigned => f.write_str("UNSIGNED"),
            CastType::Char { len, charset } => {
                sized(f, "CHAR", len)?;
                match charset {
                    Some(charset) => write!(f, " CHARACTER SET {}", Id(charset)),
                    None => Ok(()),
                }
            }
            CastType::Binary(len) => sized(f, "BINARY", len),
            CastType::Date => f.write_str("DATE"),
            CastType::Time(fsp) => sized(f, "TIME", fsp),
            CastType::DateTime(fsp) => sized(f, "DATETIME", fsp),
            CastType::Year => f.write_str("YEAR"),
            CastType::Decimal(Some(m), Some(d)) => write!(f, "DECIMAL({m},{d})"),
            CastType::Decimal(m, _) => sized(f, "DECIMAL", m),
            CastType::Float(p) => sized(f, "FLOAT", p),
            CastType::Double => f.write_str("DOUBLE"),
            CastType::Json => f.write_str("JSON"),
            CastType::Other(ty) => write!(f, "{ty}"),
        }
    }
}

impl AggFunc {
    /// The function's name.
    pub fn name(self) -> &'static str {
        match self {
            AggFunc::Count => "COUNT",
            AggFunc::Sum => "SUM",
            AggFunc::Avg => "AVG",
            AggFunc::Min => "MIN",
            AggFunc::Max => "MAX",
            AggFunc::BitAnd => "BIT_AND",
            AggFunc::BitOr => "BIT_OR",
            AggFunc::BitXor => "BIT_XOR",
            AggFunc::GroupConcat => "GROUP_CONCAT",
            AggFunc::StdPop => "STD",
            AggFunc::StdSamp => "STDDEV_SAMP",
            AggFunc::VarPop => "VARIANCE",
            AggFunc::VarSamp => "VAR_SAMP",
            AggFunc::JsonArrayAgg => "JSON_ARRAYAGG",
            AggFunc::JsonObjectAgg => "JSON_OBJECTAGG",
            AggFunc::AnyValue => "ANY_VALUE",
        }
    }
}

impl Display for Agg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.func.name())?;
        if self.distinct {
            f.write_str("DISTINCT ")?;
        }
        if self.args.is_empty() {
            f.write_str("*")?;
        }
        list(f, &self.args, ", ")?;
        if !self.order.is_empty() {
            f.write_str(" ORDER BY ")?;
            list(f, &self.order, ", ")?;
        }
        if let Some(separator) = &self.separator {
            f.write_str(" SEPARATOR ")?;
            write_text(f, separator)?;
        }
        f.write_str(")")
    }
}

impl Display for Window {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} OVER ", self.func)?;
        let bare = self.partition.is_empty() && self.order.is_empty() && self.frame.is_empty();
        if let (Some(name), true) = (&self.name, bare) {
            return write!(f, "{}", Id(name));
        }
        let mut words = Vec::new();
        if let Some(name) = &self.name {
            words.push(Id(name).to_string());
        }
        if !self.partition.is_empty() {
            let partition: Vec<String> = self.partition.iter().map(ToString::to_string).collect();
            words.push(format!("PARTITION BY {}", partition.join(", ")));
        }
        if !self.order.is_empty() {
            let order: Vec<String> = self.order.iter().map(ToString::to_string).collect();
            words.push(format!("ORDER BY {}", order.join(", ")));
        }
        if !self.frame.is_empty() {
            words.push(self.frame.to_string());
        }
        write!(f, "({})", words.join(" "))
    }
}

impl Display for OrderBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.expr)?;
        flag(f, self.desc, "DESC")
    }
}

impl Display for TimeUnit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimeUnit::Microsecond => "MICROSECOND",
            TimeUnit::Second => "SECOND",
            TimeUnit::Minute => "MINUTE",
            TimeUnit::Hour => "HOUR",
            TimeUnit::Day => "DAY",
            TimeUnit::Week => "WEEK",
            TimeUnit::Month => "MONTH",
            TimeUnit::Quarter => "QUARTER",
            TimeUnit::Year => "YEAR",
            TimeUnit::SecondMicrosecond => "SECOND_MICROSECOND",
            TimeUnit::MinuteMicrosecond => "MINUTE_MICROSECOND",
            TimeUnit::MinuteSecond => "MINUTE_SECOND",
            TimeUnit::HourMicrosecond => "HOUR_MICROSECOND",
            TimeUnit::HourSecond => "HOUR_SECOND",
            TimeUnit::HourMinute => "HOUR_MINUTE",
            TimeUnit::DayMicrosecond => "DAY_MICROSECOND",
            TimeUnit::DaySecond => "DAY_SECOND",
            TimeUnit::DayMinute => "DAY_MINUTE",
            TimeUnit::DayHour => "DAY_HOUR",
            TimeUnit::YearMonth => "YEAR_MONTH",
        })
    }
}
