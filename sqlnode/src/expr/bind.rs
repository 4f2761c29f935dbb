//! The binder: from the syntax tree to a [`BoundExpr`].
//!
//! It resolves names, checks operands and argument counts, agrees on collations, infers types and folds
//! what is constant. A constant is folded only if computing it gives no error and no warning: those belong
//! to the execution. A row constructor exists only inside comparisons and IN, where it is taken apart into
//! its elements.

use super::aggregate::AggSpec;
use super::func::FuncDef;
use super::member::has_members;
use super::regexp::{RegexpNode, RegexpOp};
use super::types::{self, agree};
use super::{
    BoundExpr, CaseNode, CmpOp, Coercion, EvalContext, LikeNode, Node, Scope, SessionFacts,
    invalid_group_function, stays_exact,
};
use crate::parser::ast::{Agg, AggFunc, BinOp, CastType, Expr, IsTest, Lit, TimeUnit, TypeKind, UnOp};
use crate::value::arith::{ArithOp, BitOp};
use crate::value::temporal::{DateRules, parse_date, parse_datetime, parse_time};
use crate::value::{
    Charset, Collation, Decimal, ErrorCode, LikePattern, MySqlError, Result, SqlType, Text, Value, Warnings,
    number,
};

/// Binds expressions of one part of a statement.
pub struct Binder<'a> {
    /// The columns.
    pub scope: &'a Scope,
    /// The session.
    pub facts: &'a dyn SessionFacts,
    /// The part of the statement, as error 1054 names it: `field list`, `where clause`.
    pub clause: &'a str,
    /// Types of parameters as far as known; others may be anything.
    pub param_types: &'a [SqlType],
    /// Whether aggregates may stand here.
    pub allow_aggregates: bool,
    /// The aggregates found so far.
    pub aggregates: Vec<AggSpec>,
    /// Inside an aggregate's arguments.
    in_aggregate: bool,
}

impl<'a> Binder<'a> {
    /// A binder for a part of a statement where aggregates may not stand.
    pub fn new(scope: &'a Scope, facts: &'a dyn SessionFacts, clause: &'a str) -> Binder<'a> {
        Binder {
            scope,
            facts,
            clause,
            param_types: &[],
            allow_aggregates: false,
            aggregates: Vec::new(),
            in_aggregate: false,
        }
    }

    fn connection(&self) -> Collation {
        self.facts.connection_collation()
    }

    /// Binds an expression.
    ///
    /// # Errors
    /// Names that do not resolve, wrong operands or argument counts, constructs that are not executed.
    pub fn bind(&mut self, expr: &Expr) -> Result<BoundExpr> {
        match expr {
            Expr::Lit(lit) => self.literal(lit),
            Expr::Param(n) => Ok(self.param(*n as usize)),
            Expr::Col(name) => self.column(self.scope.find(name, self.clause)?),
            Expr::Values(name) => {
                let at = self.scope.find(name, self.clause)?;
                let mut column = self.column(at)?;
                column.node = Node::InsertValue(at);
                Ok(column)
            }
            Expr::UserVar(name) => {
                // The variable's present value decides, as in MySQL; one never set is a string.
                let ty = match self.facts.user_var(name) {
                    Value::Null | Value::Text(_) => types::string(65_535 / 4, self.connection()),
                    value => type_of_value(&value, self.connection()),
                };
                Ok(self.finish(Node::UserVar(name.clone()), ty, true, Coercion::Implicit))
            }
            Expr::Assign(name, value) => {
                let value = self.bind(value)?;
                let (ty, nullable, coercion) = (value.ty.clone(), value.nullable, value.coercion);
                Ok(self.finish(Node::AssignVar(name.clone(), Box::new(value)), ty, nullable, coercion))
            }
            Expr::SysVar(var) => {
                let value = self.facts.sys_var(var.scope, &var.name)?;
                let ty = type_of_value(&value, self.connection());
                Ok(self.finish(Node::SysVar(var.scope, var.name.clone()), ty, true, Coercion::System))
            }
            Expr::Unary(op, operand) => self.unary(*op, operand, expr),
            Expr::Binary(op, left, right) => self.binary(*op, left, right, expr),
            Expr::And(list) => {
                let list = self.bind_scalars(list)?;
                let nullable = list.iter().any(|e| e.nullable);
                Ok(self.truth_value(Node::And(list), nullable))
            }
            Expr::Or(list) => {
                let list = self.bind_scalars(list)?;
                let nullable = list.iter().any(|e| e.nullable);
                Ok(self.truth_value(Node::Or(list), nullable))
            }
            Expr::Is { expr, not, test } => self.is_test(expr, *not, *test),
            Expr::Between { expr, not, low, high } => self.between(expr, *not, low, high),
            Expr::In { expr, not, list } => self.in_list(expr, *not, list),
            Expr::Like { expr, not, pattern, escape } => self.like(expr, *not, pattern, escape.as_deref()),
            Expr::Case { operand, whens, other } => self.case(operand.as_deref(), whens, other.as_deref()),
            Expr::Agg(agg) => self.aggregate(agg),
            Expr::Row(_) => Err(operand_columns(1)),
            Expr::Collate(..) | Expr::Cast { .. } | Expr::ConvertUsing(..) => self.conversion(expr),
            Expr::Call(_)
            | Expr::DateArith { .. }
            | Expr::Extract(..)
            | Expr::TimestampAdd(..)
            | Expr::TimestampDiff(..)
            | Expr::Trim { .. } => self.function(expr),
            Expr::Default(_) => Err(MySqlError::not_supported("DEFAULT in an expression")),
            Expr::Regexp { expr, not, pattern } => {
                let args = vec![self.bind(expr)?, self.bind(pattern)?];
                let found = self.call("REGEXP_LIKE", args)?;
                let nullable = found.nullable;
                Ok(if *not { self.truth_value(Node::Not(Box::new(found)), nullable) } else { found })
            }
            Expr::Match { .. } => Err(MySqlError::not_supported("MATCH ... AGAINST")),
            Expr::Window(_) => Err(MySqlError::not_supported("window functions")),
            Expr::InSelect { .. } | Expr::Subquery(_) | Expr::Exists(_) | Expr::Quantified { .. } => {
                Err(MySqlError::not_supported("subquery"))
            }
        }
    }

    /// Binds several expressions.
    fn bind_scalars(&mut self, list: &[Expr]) -> Result<Vec<BoundExpr>> {
        list.iter().map(|e| self.bind(e)).collect()
    }

    /// Puts a node together, folding it if it is constant.
    fn finish(&self, node: Node, ty: SqlType, nullable: bool, coercion: Coercion) -> BoundExpr {
        let bound = BoundExpr { node, ty, nullable, coercion };
        if matches!(bound.node, Node::Const(_)) || !bound.node.is_deterministic() {
            return bound;
        }
        let mut constant = true;
        bound.node.for_each_child(&mut |child| constant &= child.as_const().is_some());
        if !constant {
            return bound;
        }
        let mut warnings = Warnings::new();
        let mut ctx = EvalContext {
            facts: self.facts,
            params: &[],
            aggs: &[],
            new_row: &[],
            warnings: &mut warnings,
            writing: false,
        };
        // An operator's result keeps the digits that its type does not show: 1/3*3 is 1.0000.
        let folded = match bound.node {
            Node::Arith(..) | Node::Neg(..) => bound.eval(&[], &mut ctx),
            _ => bound.eval_typed(&[], &mut ctx),
        };
        match folded {
            Ok(value) if warnings.is_empty() => {
                let nullable = value.is_null();
                BoundExpr { node: Node::Const(value), nullable, ..bound }
            }
            _ => bound,
        }
    }

    fn truth_value(&self, node: Node, nullable: bool) -> BoundExpr {
        self.finish(node, SqlType::BIGINT, nullable, Coercion::Number)
    }

    fn column(&self, at: usize) -> Result<BoundExpr> {
        let column = self.scope.columns.get(at).ok_or_else(|| MySqlError::internal("column position"))?;
        let coercion = if column.ty.is_string() { Coercion::Implicit } else { Coercion::Number };
        Ok(BoundExpr { node: Node::Column(at), ty: column.ty.clone(), nullable: column.nullable, coercion })
    }

    fn param(&self, at: usize) -> BoundExpr {
        let ty = self.param_types.get(at).cloned().unwrap_or(SqlType::Null);
        BoundExpr { node: Node::Param(at), ty, nullable: true, coercion: Coercion::Literal }
    }

    fn literal(&self, lit: &Lit) -> Result<BoundExpr> {
        let rules = DateRules::from_mode(self.facts.sql_mode());
        let wrong = |kind: &str, text: &str| MySqlError::with(ErrorCode::WrongValue, &[&kind, &text]);
        Ok(match lit {
            Lit::Null => BoundExpr::constant(Value::Null, SqlType::Null),
            Lit::Bool(on) => BoundExpr::constant(Value::from_bool(*on), SqlType::BIGINT),
            Lit::Int(v) => match i64::try_from(*v) {
                Ok(v) => BoundExpr::constant(Value::Int(v), SqlType::BIGINT),
                Err(_) => BoundExpr::constant(Value::UInt(*v), SqlType::BIGINT_UNSIGNED),
            },
            Lit::Dec(text) => {
                let value = number::parse_decimal(text.as_bytes()).value;
                let precision = value.precision().clamp(1, 65) as u8;
                let ty = SqlType::decimal(precision.max(value.scale()), value.scale());
                BoundExpr::constant(Value::Decimal(value), ty)
            }
            Lit::Float(text) => {
                let parsed = number::parse_f64(text.as_bytes());
                if parsed.overflow {
                    return Err(MySqlError::with(ErrorCode::IllegalValueForType, &[&"double", text]));
                }
                BoundExpr::constant(Value::Double(parsed.value), SqlType::DOUBLE)
            }
            Lit::Str(bytes) => self.text_literal(bytes, self.connection()),
            Lit::IntroStr(charset, bytes) => {
                self.text_literal(bytes, charset_named(charset)?.default_collation())
            }
            Lit::Hex(charset, bytes) | Lit::Bit(charset, bytes) => {
                let collation = match charset {
                    Some(charset) => charset_named(charset)?.default_collation(),
                    None => Collation::BINARY,
                };
                self.text_literal(bytes, collation)
            }
            Lit::Date(text) => {
                let parsed =
                    parse_date(text, rules).filter(|p| p.clean).ok_or_else(|| wrong("DATE", text))?;
                BoundExpr::constant(Value::Date(parsed.value), SqlType::Date)
            }
            Lit::Time(text) => {
                let parsed = parse_time(text).filter(|p| p.clean).ok_or_else(|| wrong("TIME", text))?;
                BoundExpr::constant(Value::Time(parsed.value), SqlType::Time { fsp: parsed.value.fsp() })
            }
            Lit::Timestamp(text) => {
                let parsed =
                    parse_datetime(text, rules).filter(|p| p.clean).ok_or_else(|| wrong("DATETIME", text))?;
                let ty = SqlType::DateTime { fsp: parsed.value.fsp() };
                BoundExpr::constant(Value::DateTime(parsed.value), ty)
            }
        })
    }

    fn text_literal(&self, bytes: &[u8], collation: Collation) -> BoundExpr {
        // Bytes that are no text in their set stay what they are: bytes.
        let valid = collation.charset().first_invalid(bytes).is_none();
        let collation = if valid { collation } else { Collation::BINARY };
        let text = Text::new(bytes, collation);
        let ty = types::string(text.char_count() as u64, collation);
        BoundExpr::constant(Value::Text(text), ty)
    }

    fn unary(&mut self, op: UnOp, operand: &Expr, whole: &Expr) -> Result<BoundExpr> {
        let inner = match op {
            UnOp::Plus | UnOp::Not => self.bind(operand)?,
            UnOp::BitNot | UnOp::Neg => {
                let inner = self.bind(operand)?;
                self.as_number(inner)
            }
        };
        let nullable = inner.nullable;
        Ok(match op {
            UnOp::Plus => inner,
            UnOp::Not => self.truth_value(Node::Not(Box::new(inner)), nullable),
            UnOp::BitNot => self.finish(
                Node::BitNot(Box::new(inner)),
                SqlType::BIGINT_UNSIGNED,
                nullable,
                Coercion::Number,
            ),
            UnOp::Neg => {
                if let Some(Value::UInt(v)) = inner.as_const()
                    && *v > 1 << 63
                {
                    // No BIGINT holds it, a DECIMAL does.
                    let value = Decimal::from(*v).neg();
                    return Ok(BoundExpr::constant(Value::Decimal(value), SqlType::decimal(20, 0)));
                }
                let ty = match types::exact(&inner.ty) {
                    _ if types::is_whole(&inner.ty) => SqlType::BIGINT,
                    Some((int, scale)) => types::decimal(u32::from(int), u32::from(scale)),
                    None => SqlType::DOUBLE,
                };
                let node = Node::Neg(Box::new(inner), format!("{whole}").into());
                self.finish(node, ty, nullable, Coercion::Number)
            }
        })
    }

    fn binary(&mut self, op: BinOp, left: &Expr, right: &Expr, whole: &Expr) -> Result<BoundExpr> {
        if let Some(op) = CmpOp::from_ast(op) {
            return self.comparison(op, left, right);
        }
        if let Some(op) = arith_op(op) {
            let (a, b) = (self.operand(left)?, self.operand(right)?);
            return Ok(self.arith(op, a, b, format!("({whole})").into()));
        }
        let (a, b) = match op {
            BinOp::Concat => (self.bind(left)?, self.bind(right)?),
            _ => (self.operand(left)?, self.operand(right)?),
        };
        let nullable = a.nullable || b.nullable;
        let bits = match op {
            BinOp::BitAnd => BitOp::And,
            BinOp::BitOr => BitOp::Or,
            BinOp::BitXor => BitOp::Xor,
            BinOp::Shl => BitOp::ShiftLeft,
            BinOp::Shr => BitOp::ShiftRight,
            BinOp::Xor => return Ok(self.truth_value(Node::Xor(Box::new(a), Box::new(b)), nullable)),
            BinOp::Concat => return self.call("CONCAT", vec![a, b]),
            other => return Err(MySqlError::not_supported(&other.to_string())),
        };
        let node = Node::Bits(bits, Box::new(a), Box::new(b));
        Ok(self.finish(node, SqlType::BIGINT_UNSIGNED, nullable, Coercion::Number))
    }

    /// An operand of an operator on numbers: there a literal of hexadecimal digits or bits is a number.
    fn operand(&mut self, expr: &Expr) -> Result<BoundExpr> {
        match expr {
            Expr::Lit(Lit::Hex(None, bytes) | Lit::Bit(None, bytes)) if bytes.len() <= 8 => {
                let number = bytes.iter().fold(0u64, |v, b| v << 8 | u64::from(*b));
                Ok(BoundExpr::constant(Value::UInt(number), SqlType::BIGINT_UNSIGNED))
            }
            other => {
                let bound = self.bind(other)?;
                Ok(self.as_number(bound))
            }
        }
    }

    /// ENUM and SET as the numbers of their members; everything else as it is.
    fn as_number(&self, e: BoundExpr) -> BoundExpr {
        if !has_members(&e.ty) {
            return e;
        }
        // A double, as in MySQL, so that a difference may be negative.
        let nullable = e.nullable;
        self.finish(Node::Member(Box::new(e), None), SqlType::DOUBLE, nullable, Coercion::Number)
    }

    /// An operand of a comparison: a member is a number beside a number, and beside what may turn out to be
    /// one.
    fn beside(&self, e: BoundExpr, other: &BoundExpr) -> BoundExpr {
        match (&other.node, &other.ty) {
            _ if !has_members(&e.ty) => e,
            (_, ty) if ty.is_numeric() => self.as_number(e),
            (Node::Param(_), SqlType::Null) | (Node::UserVar(_), _) => {
                let (ty, nullable, coercion) = (e.ty.clone(), e.nullable, e.coercion);
                let node = Node::Member(Box::new(e), Some(Box::new(other.clone())));
                BoundExpr { node, ty, nullable, coercion }
            }
            _ => e,
        }
    }

    pub(super) fn arith(&self, op: ArithOp, a: BoundExpr, b: BoundExpr, text: Box<str>) -> BoundExpr {
        let ty = arith_type(op, &a.ty, &b.ty, self.facts.div_precision_increment());
        let divides = matches!(op, ArithOp::Div | ArithOp::IntDiv | ArithOp::Mod);
        let nullable = a.nullable || b.nullable || divides;
        self.finish(Node::Arith(op, Box::new(a), Box::new(b), text), ty, nullable, Coercion::Number)
    }

    /// A comparison; rows are taken apart.
    fn comparison(&mut self, op: CmpOp, left: &Expr, right: &Expr) -> Result<BoundExpr> {
        match (left, right) {
            (Expr::Row(a), Expr::Row(b)) if a.len() == b.len() => self.row_comparison(op, a, b),
            (Expr::Row(a), _) => Err(operand_columns(a.len())),
            (_, Expr::Row(_)) => Err(operand_columns(1)),
            _ => {
                let (mut a, mut b) = (self.bind(left)?, self.bind(right)?);
                if b.ty.is_numeric() {
                    a = self.operand(left)?;
                } else if a.ty.is_numeric() {
                    b = self.operand(right)?;
                }
                self.compare(op, a, b)
            }
        }
    }

    fn row_comparison(&mut self, op: CmpOp, a: &[Expr], b: &[Expr]) -> Result<BoundExpr> {
        let mut pairs = Vec::with_capacity(a.len());
        for (a, b) in a.iter().zip(b) {
            match op {
                CmpOp::Eq | CmpOp::NullSafeEq => pairs.push(self.comparison(op, a, b)?),
                CmpOp::Ne => pairs.push(self.comparison(CmpOp::Ne, a, b)?),
                CmpOp::Lt | CmpOp::Le | CmpOp::Gt | CmpOp::Ge => {
                    return Err(MySqlError::not_supported("ordering of rows"));
                }
            }
        }
        let nullable = op != CmpOp::NullSafeEq;
        let node = if op == CmpOp::Ne { Node::Or(pairs) } else { Node::And(pairs) };
        Ok(self.truth_value(node, nullable))
    }

    /// A comparison of two bound operands.
    ///
    /// # Errors
    /// 1267 if their collations do not agree.
    pub fn compare(&self, op: CmpOp, a: BoundExpr, b: BoundExpr) -> Result<BoundExpr> {
        let (a, b) = (self.beside(a, &b), b);
        let b = self.beside(b, &a);
        let collation = self.comparison_collation(&[&a, &b], op.name())?;
        let b = fitted(&a, b);
        let a = fitted(&b, a);
        let nullable = op != CmpOp::NullSafeEq && (a.nullable || b.nullable);
        let node = Node::Compare(op, Box::new(a), Box::new(b), collation);
        Ok(self.truth_value(node, nullable))
    }

    fn comparison_collation(&self, items: &[&BoundExpr], operation: &str) -> Result<Collation> {
        let strings: Vec<&BoundExpr> = items.iter().copied().filter(|e| e.ty.is_string()).collect();
        Ok(agree(&strings, operation, self.connection())?.0)
    }

    fn is_test(&mut self, expr: &Expr, not: bool, test: IsTest) -> Result<BoundExpr> {
        let inner = Box::new(self.bind(expr)?);
        let node = match test {
            IsTest::Null | IsTest::Unknown => Node::IsNull(inner, not),
            IsTest::True => Node::IsTruth(inner, true, not),
            IsTest::False => Node::IsTruth(inner, false, not),
        };
        Ok(self.truth_value(node, false))
    }

    fn between(&mut self, expr: &Expr, not: bool, low: &Expr, high: &Expr) -> Result<BoundExpr> {
        let mut all = [self.bind(expr)?, self.bind(low)?, self.bind(high)?];
        let mixed = all.iter().any(|e| e.ty.is_numeric()) && !all.iter().any(|e| e.ty.is_temporal());
        if mixed && !matches!(all[0].node, Node::Column(_)) {
            // All three compare as one kind: a text among numbers is a number for both bounds.
            all = all.map(|e| {
                if !e.ty.is_string() {
                    return e;
                }
                let nullable = e.nullable;
                self.finish(Node::Cast(Box::new(e)), SqlType::DOUBLE, nullable, Coercion::Number)
            });
        }
        let [e, low, high] = all;
        let (e, low, high) = if low.ty.is_numeric() && high.ty.is_numeric() {
            (self.as_number(e), low, high)
        } else {
            let (low, high) = (self.beside(low, &e), self.beside(high, &e));
            (e, low, high)
        };
        let collation = self.comparison_collation(&[&e, &low, &high], "between")?;
        let (low, high) = (fitted(&e, low), fitted(&e, high));
        let nullable = e.nullable || low.nullable || high.nullable;
        Ok(self.truth_value(Node::Between(Box::new([e, low, high]), not, collation), nullable))
    }

    fn in_list(&mut self, expr: &Expr, not: bool, list: &[Expr]) -> Result<BoundExpr> {
        if let Expr::Row(columns) = expr {
            let mut rows = Vec::with_capacity(list.len());
            for item in list {
                match item {
                    Expr::Row(values) if values.len() == columns.len() => {
                        rows.push(self.row_comparison(CmpOp::Eq, columns, values)?);
                    }
                    _ => return Err(operand_columns(columns.len())),
                }
            }
            let any = self.truth_value(Node::Or(rows), true);
            return Ok(if not { self.truth_value(Node::Not(Box::new(any)), true) } else { any });
        }
        let e = self.bind(expr)?;
        let list = self.bind_scalars(list)?;
        if has_members(&e.ty) && !list.iter().all(|item| item.ty.is_string()) {
            let pairs = list.into_iter().map(|item| self.compare(CmpOp::Eq, e.clone(), item));
            let any = self.truth_value(Node::Or(pairs.collect::<Result<_>>()?), true);
            return Ok(if not { self.truth_value(Node::Not(Box::new(any)), true) } else { any });
        }
        let mut all: Vec<&BoundExpr> = vec![&e];
        all.extend(&list);
        let collation = self.comparison_collation(&all, "in")?;
        let list: Vec<BoundExpr> = list.into_iter().map(|item| fitted(&e, item)).collect();
        let nullable = e.nullable || list.iter().any(|item| item.nullable);
        Ok(self.truth_value(Node::In(Box::new(e), list, not, collation), nullable))
    }

    fn like(&mut self, expr: &Expr, not: bool, pattern: &Expr, escape: Option<&Expr>) -> Result<BoundExpr> {
        let (expr, pattern) = (self.bind(expr)?, self.bind(pattern)?);
        let (collation, _) = agree(&[&expr, &pattern], "like", self.connection())?;
        let escape = match escape {
            None => Some('\\'),
            Some(e) => match self.bind(e)?.as_const() {
                Some(Value::Text(text)) if text.char_count() <= 1 => text.to_str_lossy().chars().next(),
                Some(Value::Null) => Some('\\'),
                _ => return Err(MySqlError::with(ErrorCode::WrongArguments, &[&"ESCAPE"])),
            },
        };
        let compiled = match pattern.as_const() {
            Some(value @ Value::Text(_)) => {
                let text = crate::value::cast::to_text(value, collation);
                Some(LikePattern::new(collation, text.as_bytes(), escape))
            }
            _ => None,
        };
        let nullable = expr.nullable || pattern.nullable;
        let like = LikeNode { expr, pattern, escape, not, collation, compiled };
        Ok(self.truth_value(Node::Like(Box::new(like)), nullable))
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        whens: &[(Expr, Expr)],
        other: Option<&Expr>,
    ) -> Result<BoundExpr> {
        let mut operand = operand.map(|e| self.bind(e)).transpose()?;
        let mut pairs = Vec::with_capacity(whens.len());
        for (when, then) in whens {
            pairs.push((self.bind(when)?, self.bind(then)?));
        }
        if pairs.iter().all(|(when, _)| when.ty.is_numeric()) {
            operand = operand.map(|e| self.as_number(e));
        }
        let other = other.map(|e| self.bind(e)).transpose()?;
        let mut compared: Vec<&BoundExpr> = operand.iter().collect();
        if operand.is_some() {
            compared.extend(pairs.iter().map(|(when, _)| when));
        }
        let collation = self.comparison_collation(&compared, "case")?;
        let mut results: Vec<&BoundExpr> = pairs.iter().map(|(_, then)| then).collect();
        results.extend(&other);
        let (result_collation, coercion) = agree(&results, "case", self.connection())?;
        let ty = types::common(&results, result_collation);
        let nullable = other.is_none() || results.iter().any(|e| e.nullable);
        let coercion = if ty.is_string() { coercion } else { Coercion::Number };
        let node = Node::Case(Box::new(CaseNode { operand, whens: pairs, other, collation }));
        Ok(self.finish(node, ty, nullable, coercion))
    }

    fn conversion(&mut self, expr: &Expr) -> Result<BoundExpr> {
        match expr {
            Expr::Collate(inner, name) => {
                let inner = self.bind(inner)?;
                let unknown = || MySqlError::with(ErrorCode::UnknownCollation, &[name]);
                let collation = Collation::by_name(name).ok_or_else(unknown)?;
                let own = types::text_collation(&inner, self.connection());
                if own.charset() != collation.charset() {
                    let args: [&dyn std::fmt::Display; 2] = [&collation.name(), &own.charset().name()];
                    return Err(MySqlError::with(ErrorCode::CollationCharsetMismatch, &args));
                }
                let ty = types::string(types::chars(&inner.ty), collation);
                let nullable = inner.nullable;
                Ok(self.finish(Node::Recode(Box::new(inner)), ty, nullable, Coercion::Explicit))
            }
            Expr::ConvertUsing(inner, charset) => {
                let inner = self.bind(inner)?;
                let ty = types::string(types::chars(&inner.ty), charset_named(charset)?.default_collation());
                Ok(self.finish(Node::Recode(Box::new(inner)), ty, true, Coercion::Implicit))
            }
            Expr::Cast { expr, ty } => {
                let inner = self.bind(expr)?;
                let ty = self.cast_type(ty, &inner)?;
                let inner = if ty.is_numeric() { self.as_number(inner) } else { inner };
                let coercion = if ty.is_string() { Coercion::Implicit } else { Coercion::Number };
                Ok(self.finish(Node::Cast(Box::new(inner)), ty, true, coercion))
            }
            _ => Err(MySqlError::internal("not a conversion")),
        }
    }

    fn cast_type(&self, ty: &CastType, inner: &BoundExpr) -> Result<SqlType> {
        let fsp = |n: &Option<u32>| n.unwrap_or(0).min(6) as u8;
        Ok(match ty {
            CastType::Signed => SqlType::BIGINT,
            CastType::Unsigned => SqlType::BIGINT_UNSIGNED,
            CastType::Char { len, charset } => {
                let collation = match charset {
                    Some(name) => charset_named(name)?.default_collation(),
                    None if inner.ty.is_string() && !inner.ty.collation().is_binary() => inner.ty.collation(),
                    None => self.connection(),
                };
                types::string(len.map_or_else(|| types::chars(&inner.ty), u64::from), collation)
            }
            CastType::Binary(Some(n)) => match u8::try_from(*n) {
                Ok(n) => SqlType::Binary(n),
                Err(_) => types::string(u64::from(*n), Collation::BINARY),
            },
            CastType::Binary(None) => {
                let bytes =
                    types::text_collation(inner, self.connection()).charset().bytes_per_char_max() as u64;
                types::string(types::chars(&inner.ty) * bytes, Collation::BINARY)
            }
            CastType::Date => SqlType::Date,
            CastType::Time(n) => SqlType::Time { fsp: fsp(n) },
            CastType::DateTime(n) => SqlType::DateTime { fsp: fsp(n) },
            CastType::Year => SqlType::Year,
            CastType::Decimal(m, d) => {
                let scale = d.unwrap_or(0).min(30) as u8;
                SqlType::decimal((m.unwrap_or(10).clamp(1, 65) as u8).max(scale), scale)
            }
            CastType::Float(None) => SqlType::Float { size: None, flags: SqlType::DOUBLE.number_flags() },
            CastType::Float(Some(p)) if *p <= 24 => {
                SqlType::Float { size: None, flags: SqlType::DOUBLE.number_flags() }
            }
            CastType::Float(_) | CastType::Double => SqlType::DOUBLE,
            CastType::Json => return Err(MySqlError::not_supported("CAST AS JSON")),
            CastType::Other(ty) => match ty.kind {
                TypeKind::Geometry(_) => return Err(MySqlError::not_supported("spatial types")),
                _ => return Err(MySqlError::not_supported("CAST to this type")),
            },
        })
    }

    fn function(&mut self, expr: &Expr) -> Result<BoundExpr> {
        match expr {
            Expr::Call(call) => {
                if let Some(db) = &call.db {
                    let name = format!("{db}.{}", call.name);
                    return Err(MySqlError::with(ErrorCode::SpDoesNotExist, &[&"FUNCTION", &name]));
                }
                let args = self.bind_scalars(&call.args)?;
                self.call(&call.name, args)
            }
            Expr::DateArith { expr, sub, amount, unit } => {
                let (e, amount) = (self.bind(expr)?, self.bind(amount)?);
                Ok(self.date_arith(e, *sub, amount, *unit))
            }
            Expr::TimestampAdd(unit, amount, expr) => {
                let (e, amount) = (self.bind(expr)?, self.bind(amount)?);
                Ok(self.date_arith(e, false, amount, *unit))
            }
            Expr::Extract(unit, expr) => {
                let inner = self.bind(expr)?;
                Ok(self.finish(
                    Node::Extract(*unit, Box::new(inner)),
                    SqlType::BIGINT,
                    true,
                    Coercion::Number,
                ))
            }
            Expr::TimestampDiff(unit, a, b) => {
                let (a, b) = (self.bind(a)?, self.bind(b)?);
                let node = Node::TimestampDiff(*unit, Box::new(a), Box::new(b));
                Ok(self.finish(node, SqlType::BIGINT, true, Coercion::Number))
            }
            Expr::Trim { side, what, expr } => {
                let inner = self.bind(expr)?;
                let what = what.as_ref().map(|e| self.bind(e)).transpose()?;
                let mut all = vec![&inner];
                all.extend(&what);
                let (collation, coercion) = agree(&all, "trim", self.connection())?;
                let ty = types::string(types::chars(&inner.ty), collation);
                let nullable = all.iter().any(|e| e.nullable);
                let node = Node::Trim(*side, what.map(Box::new), Box::new(inner));
                Ok(self.finish(node, ty, nullable, coercion))
            }
            _ => Err(MySqlError::internal("not a function")),
        }
    }

    /// A call of a function with bound arguments.
    ///
    /// # Errors
    /// 1305 for an unknown function, 1582 for a wrong number of arguments.
    pub fn call(&self, name: &str, args: Vec<BoundExpr>) -> Result<BoundExpr> {
        if let Some(op) = RegexpOp::find(name) {
            let nullable = op == RegexpOp::Substr || args.iter().any(|e| e.nullable);
            let (node, ty, coercion) = RegexpNode::bind(op, args, self.connection())?;
            return Ok(self.finish(Node::Regexp(Box::new(node)), ty, nullable, coercion));
        }
        let args = match <[BoundExpr; 2]>::try_from(args) {
            Ok([a, b]) if name.eq_ignore_ascii_case("MOD") => {
                // The operator by another name: it keeps the digits of its operands.
                let (a, b) = (self.as_number(a), self.as_number(b));
                return Ok(self.arith(ArithOp::Mod, a, b, "mod()".into()));
            }
            Ok(both) => both.into(),
            Err(args) if name.eq_ignore_ascii_case("MOD") => {
                let _ = args;
                return Err(MySqlError::with(ErrorCode::WrongParamcountToNativeFct, &[&"mod"]));
            }
            Err(args) => args,
        };
        let Some(def) = FuncDef::find(name) else {
            let full = match self.facts.database() {
                Some(db) => format!("{db}.{name}"),
                None => name.to_owned(),
            };
            return Err(MySqlError::with(ErrorCode::SpDoesNotExist, &[&"FUNCTION", &full]));
        };
        if args.len() < usize::from(def.min) || args.len() > usize::from(def.max) {
            return Err(MySqlError::with(ErrorCode::WrongParamcountToNativeFct, &[&def.name]));
        }
        let of_numbers = super::func_math::TABLE.iter().any(|math| std::ptr::eq(math, def))
            && !matches!(def.name, "greatest" | "least" | "crc32");
        let args = match of_numbers {
            true => args.into_iter().map(|e| self.as_number(e)).collect(),
            false => args,
        };
        let (ty, coercion) = def.result_type(&args, self.connection())?;
        let nullable = def.nullable || args.iter().any(|e| e.nullable);
        Ok(self.finish(Node::Call(def, args), ty, nullable, coercion))
    }

    fn date_arith(&self, e: BoundExpr, sub: bool, amount: BoundExpr, unit: TimeUnit) -> BoundExpr {
        let micros =
            super::dates::unit_has_micros(unit) || (unit == TimeUnit::Second && amount.ty.decimals() > 0);
        let fsp = if micros { 6 } else { e.ty.decimals().min(6) };
        let whole_days = super::dates::unit_is_whole_days(unit);
        let ty = match &e.ty {
            SqlType::Date if whole_days => SqlType::Date,
            SqlType::Date => SqlType::DateTime { fsp },
            SqlType::DateTime { .. } | SqlType::Timestamp { .. } => SqlType::DateTime { fsp },
            SqlType::Time { .. } if !whole_days => SqlType::Time { fsp },
            SqlType::Time { .. } => SqlType::DateTime { fsp },
            _ => types::string(29, self.connection()),
        };
        let coercion = if ty.is_string() { Coercion::Literal } else { Coercion::Number };
        self.finish(Node::DateArith(Box::new(e), sub, Box::new(amount), unit), ty, true, coercion)
    }

    fn aggregate(&mut self, agg: &Agg) -> Result<BoundExpr> {
        if !self.allow_aggregates || self.in_aggregate {
            return Err(invalid_group_function());
        }
        self.in_aggregate = true;
        let bound = self.aggregate_args(agg);
        self.in_aggregate = false;
        let spec = bound?;
        let (ty, nullable) = (spec.ty.clone(), spec.func != AggFunc::Count);
        let coercion = if ty.is_string() { Coercion::Implicit } else { Coercion::Number };
        self.aggregates.push(spec);
        Ok(BoundExpr { node: Node::Agg(self.aggregates.len() - 1), ty, nullable, coercion })
    }

    fn aggregate_args(&mut self, agg: &Agg) -> Result<AggSpec> {
        let args = self.bind_scalars(&agg.args)?;
        let mut order = Vec::with_capacity(agg.order.len());
        for key in &agg.order {
            // An integer is the position of an argument.
            let expr = match &key.expr {
                Expr::Lit(Lit::Int(n)) => {
                    let at = usize::try_from(*n).unwrap_or(0).wrapping_sub(1);
                    args.get(at)
                        .cloned()
                        .ok_or_else(|| MySqlError::bad_field(&n.to_string(), "order clause"))?
                }
                other => self.bind(other)?,
            };
            order.push((expr.for_sorting(), key.desc));
        }
        let args = match agg.func {
            AggFunc::Count
            | AggFunc::Min
            | AggFunc::Max
            | AggFunc::AnyValue
            | AggFunc::GroupConcat
            | AggFunc::JsonArrayAgg
            | AggFunc::JsonObjectAgg => args,
            AggFunc::Sum
            | AggFunc::Avg
            | AggFunc::BitAnd
            | AggFunc::BitOr
            | AggFunc::BitXor
            | AggFunc::StdPop
            | AggFunc::StdSamp
            | AggFunc::VarPop
            | AggFunc::VarSamp => args.into_iter().map(|e| self.as_number(e)).collect(),
        };
        let ty = self.aggregate_type(agg.func, &args)?;
        Ok(AggSpec {
            func: agg.func,
            distinct: agg.distinct,
            args,
            order,
            separator: agg.separator.clone().unwrap_or_else(|| b","[..].into()),
            ty,
        })
    }

    fn aggregate_type(&self, func: AggFunc, args: &[BoundExpr]) -> Result<SqlType> {
        let first = args.first().map_or(SqlType::BIGINT, |e| e.ty.clone());
        Ok(match func {
            AggFunc::Count => SqlType::BIGINT,
            AggFunc::Sum | AggFunc::Avg => match types::exact(&first) {
                Some((int, scale)) if stays_exact(func) => {
                    let (int, scale) = (u32::from(int), u32::from(scale));
                    if func == AggFunc::Sum {
                        types::decimal((int + 22).min(65 - scale.min(30)), scale)
                    } else {
                        types::decimal(int, scale + u32::from(self.facts.div_precision_increment()))
                    }
                }
                _ => SqlType::DOUBLE,
            },
            AggFunc::Min | AggFunc::Max | AggFunc::AnyValue => first,
            AggFunc::BitAnd | AggFunc::BitOr | AggFunc::BitXor => SqlType::BIGINT_UNSIGNED,
            AggFunc::GroupConcat => {
                let all: Vec<&BoundExpr> = args.iter().collect();
                let (collation, _) = agree(&all, "group_concat", self.connection())?;
                types::string(self.facts.group_concat_max_len() as u64, collation)
            }
            AggFunc::StdPop | AggFunc::StdSamp | AggFunc::VarPop | AggFunc::VarSamp => SqlType::DOUBLE,
            AggFunc::JsonArrayAgg | AggFunc::JsonObjectAgg => {
                return Err(MySqlError::not_supported(func.name()));
            }
        })
    }
}

/// Error 1241.
fn operand_columns(count: usize) -> MySqlError {
    MySqlError::with(ErrorCode::OperandColumns, &[&count])
}

fn charset_named(name: &str) -> Result<Charset> {
    Charset::by_name(name).ok_or_else(|| MySqlError::with(ErrorCode::UnknownCharacterSet, &[&name]))
}

/// The type of a value whose source has none.
fn type_of_value(value: &Value, connection: Collation) -> SqlType {
    match value {
        Value::Null => SqlType::Null,
        Value::Int(_) => SqlType::BIGINT,
        Value::UInt(_) => SqlType::BIGINT_UNSIGNED,
        Value::Float(_) | Value::Double(_) => SqlType::DOUBLE,
        Value::Decimal(v) => SqlType::decimal((v.precision().clamp(1, 65) as u8).max(v.scale()), v.scale()),
        Value::Text(text) => types::string(text.char_count() as u64, text.collation()),
        Value::Date(_) => SqlType::Date,
        Value::DateTime(v) => SqlType::DateTime { fsp: v.fsp() },
        Value::Time(v) => SqlType::Time { fsp: v.fsp() },
    }
    .with_collation(if let Value::Text(text) = value { text.collation() } else { connection })
}

/// A constant text compared with a column of numbers or dates, turned into the column's kind once instead
/// of for every row. Only if nothing is lost: else the comparison does what MySQL does for every row.
fn fitted(column: &BoundExpr, other: BoundExpr) -> BoundExpr {
    if !matches!(column.node, Node::Column(_)) {
        return other;
    }
    let Some(Value::Text(text)) = other.as_const() else { return other };
    let value = if column.ty.is_temporal() && !matches!(column.ty, SqlType::Time { .. }) {
        parse_datetime(&text.to_str_lossy(), DateRules::default())
            .filter(|p| p.clean)
            .map(|p| (Value::DateTime(p.value), SqlType::DateTime { fsp: p.value.fsp() }))
    } else if types::exact(&column.ty).is_some() && column.ty.is_numeric() {
        let plain = text.as_bytes().iter().all(|c| c.is_ascii_digit() || matches!(c, b'-' | b'.'));
        let parsed = number::parse_decimal(text.as_bytes());
        (plain && parsed.clean && !parsed.overflow && !text.is_empty())
            .then(|| decimal_constant(parsed.value))
    } else {
        None
    };
    match value {
        Some((value, ty)) => BoundExpr::constant(value, ty),
        None => other,
    }
}

fn decimal_constant(value: Decimal) -> (Value, SqlType) {
    let whole = value.to_i128().filter(|_| value.normalized().scale() == 0);
    match whole.and_then(|v| i64::try_from(v).ok()) {
        Some(v) => (Value::Int(v), SqlType::BIGINT),
        None => {
            let ty =
                SqlType::decimal((value.precision().clamp(1, 65) as u8).max(value.scale()), value.scale());
            (Value::Decimal(value), ty)
        }
    }
}

fn arith_op(op: BinOp) -> Option<ArithOp> {
    Some(match op {
        BinOp::Add => ArithOp::Add,
        BinOp::Sub => ArithOp::Sub,
        BinOp::Mul => ArithOp::Mul,
        BinOp::Div => ArithOp::Div,
        BinOp::IntDiv => ArithOp::IntDiv,
        BinOp::Mod => ArithOp::Mod,
        _ => return None,
    })
}

fn arith_type(op: ArithOp, a: &SqlType, b: &SqlType, increment: u8) -> SqlType {
    let unsigned = a.is_unsigned() || b.is_unsigned();
    let whole = |unsigned| if unsigned { SqlType::BIGINT_UNSIGNED } else { SqlType::BIGINT };
    if op == ArithOp::IntDiv {
        return whole(unsigned);
    }
    let (Some((ai, a_scale)), Some((bi, b_scale))) = (types::exact(a), types::exact(b)) else {
        return SqlType::DOUBLE;
    };
    if types::is_whole(a) && types::is_whole(b) && op != ArithOp::Div {
        return whole(if op == ArithOp::Mod { a.is_unsigned() } else { unsigned });
    }
    let (ai, a_scale, bi, b_scale) = (u32::from(ai), u32::from(a_scale), u32::from(bi), u32::from(b_scale));
    match op {
        ArithOp::Add | ArithOp::Sub => types::decimal(ai.max(bi) + 1, a_scale.max(b_scale)),
        ArithOp::Mul => types::decimal(ai + bi, a_scale + b_scale),
        ArithOp::Div => types::decimal(ai + b_scale, a_scale + u32::from(increment)),
        ArithOp::Mod | ArithOp::IntDiv => types::decimal(ai.max(bi), a_scale.max(b_scale)),
    }
}

impl CmpOp {
    fn from_ast(op: BinOp) -> Option<CmpOp> {
        Some(match op {
            BinOp::Eq => CmpOp::Eq,
            BinOp::NullSafeEq => CmpOp::NullSafeEq,
            BinOp::Ne => CmpOp::Ne,
            BinOp::Lt => CmpOp::Lt,
            BinOp::Le => CmpOp::Le,
            BinOp::Gt => CmpOp::Gt,
            BinOp::Ge => CmpOp::Ge,
            _ => return None,
        })
    }

    /// The operator as text.
    pub fn name(self) -> &'static str {
        match self {
            CmpOp::Eq => "=",
            CmpOp::NullSafeEq => "<=>",
            CmpOp::Ne => "<>",
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Gt => ">",
            CmpOp::Ge => ">=",
        }
    }
}
