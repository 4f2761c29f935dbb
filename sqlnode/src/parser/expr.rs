//! Expressions: a Pratt parser with MySQL's levels of precedence.
//!
//! Every operator has a level; `expr_at(min)` parses operators of level `min` and tighter. MySQL's grammar
//! is not a pure precedence grammar: a comparison or predicate cannot be the operand of a tighter operator,
//! NOT cannot follow one, and IN, LIKE, BETWEEN do not chain. A ceiling that falls as the loop goes (`max`)
//! expresses all of that: once `a IN (1)` is built, only looser operators may continue it.
//!
//! Height: each call adds one level to the tree below it, each turn of the loop one on top of the left
//! operand; both are bounded, see `cursor`. AND and OR collect their operands in one vector and so add one
//! level however long.

use super::ast::{BinOp, CastType, Expr, IsTest, Lit, Query, QueryBody, SysVar, TimeUnit, UnOp, VarScope};
use super::cursor::{Parser, R, lossy};
use super::keyword::Kw;
use super::lexer::{T, Token, radix_bytes, unescape};

/// Levels, from loosest to tightest.
pub(super) mod level {
    pub(in super::super) const OR: u8 = 1;
    pub(in super::super) const XOR: u8 = 2;
    pub(in super::super) const AND: u8 = 3;
    pub(in super::super) const NOT: u8 = 4;
    pub(in super::super) const COMPARE: u8 = 5;
    pub(in super::super) const PREDICATE: u8 = 6;
    pub(in super::super) const BIT_OR: u8 = 7;
    pub(in super::super) const BIT_AND: u8 = 8;
    pub(in super::super) const SHIFT: u8 = 9;
    pub(in super::super) const ADD: u8 = 10;
    pub(in super::super) const MUL: u8 = 11;
    pub(in super::super) const BIT_XOR: u8 = 12;
    pub(in super::super) const UNARY: u8 = 13;
    pub(in super::super) const CONCAT: u8 = 14;
    pub(in super::super) const COLLATE: u8 = 15;
    /// Tighter than every operator.
    pub(in super::super) const ATOM: u8 = 16;
}

/// What continues an expression.
#[derive(Clone, Copy)]
enum Infix {
    Or,
    And,
    Bin(BinOp),
    Is,
    Not,
    Between,
    In,
    Like,
    Regexp,
    Collate,
}

/// What INTERVAL turned out to be.
enum Interval {
    /// `INTERVAL 3 DAY`.
    Span(Expr, TimeUnit),
    /// `INTERVAL(a, b, ...)`, the function.
    Function(Expr),
}

impl Parser<'_> {
    /// An expression.
    pub(super) fn expr(&mut self) -> R<Expr> {
        self.expr_at(level::OR)
    }

    /// An expression made of operators of level `min` and tighter.
    pub(super) fn expr_at(&mut self, min: u8) -> R<Expr> {
        self.deeper(|p| {
            let outer = std::mem::take(&mut p.height);
            let (left, max) = p.prefix(min)?;
            p.continue_with(left, min, max, outer)
        })
    }

    /// The operators after a first operand. `outer` is the height to merge with when done.
    fn continue_with(&mut self, mut left: Expr, min: u8, mut max: u8, outer: u32) -> R<Expr> {
        let mut height = 0;
        self.grow(&mut height)?;
        while let Some((infix, level)) = self.infix() {
            if level < min || level > max {
                break;
            }
            left = self.infix_rule(left, infix, level)?;
            self.grow(&mut height)?;
            if level == level::PREDICATE {
                max = level::COMPARE;
            } else {
                max = level;
            }
        }
        self.height = outer.max(height);
        Ok(left)
    }

    /// Which operator the current token is, and its level.
    fn infix(&self) -> Option<(Infix, u8)> {
        use level::*;
        let bin = |op, level| Some((Infix::Bin(op), level));
        match self.tok.t {
            T::Word => self.infix_word(),
            T::Eq => bin(BinOp::Eq, COMPARE),
            T::NullSafeEq => bin(BinOp::NullSafeEq, COMPARE),
            T::Ne => bin(BinOp::Ne, COMPARE),
            T::Lt => bin(BinOp::Lt, COMPARE),
            T::Le => bin(BinOp::Le, COMPARE),
            T::Gt => bin(BinOp::Gt, COMPARE),
            T::Ge => bin(BinOp::Ge, COMPARE),
            T::PipePipe if self.mode.pipes_as_concat => bin(BinOp::Concat, CONCAT),
            T::PipePipe => Some((Infix::Or, OR)),
            T::AmpAmp => Some((Infix::And, AND)),
            T::Pipe => bin(BinOp::BitOr, BIT_OR),
            T::Amp => bin(BinOp::BitAnd, BIT_AND),
            T::Shl => bin(BinOp::Shl, SHIFT),
            T::Shr => bin(BinOp::Shr, SHIFT),
            T::Plus => bin(BinOp::Add, ADD),
            T::Minus => bin(BinOp::Sub, ADD),
            T::Star => bin(BinOp::Mul, MUL),
            T::Slash => bin(BinOp::Div, MUL),
            T::Percent => bin(BinOp::Mod, MUL),
            T::Caret => bin(BinOp::BitXor, BIT_XOR),
            _ => None,
        }
    }

    fn infix_word(&self) -> Option<(Infix, u8)> {
        use level::*;
        let next_is = |kw| self.peek().kw == kw;
        match self.tok.kw {
            Kw::OR => Some((Infix::Or, OR)),
            Kw::XOR => Some((Infix::Bin(BinOp::Xor), XOR)),
            Kw::AND => Some((Infix::And, AND)),
            Kw::IS => Some((Infix::Is, COMPARE)),
            Kw::NOT => {
                let kw = self.peek().kw;
                matches!(kw, Kw::BETWEEN | Kw::IN | Kw::LIKE | Kw::REGEXP | Kw::RLIKE)
                    .then_some((Infix::Not, PREDICATE))
            }
            Kw::BETWEEN => Some((Infix::Between, PREDICATE)),
            Kw::IN => Some((Infix::In, PREDICATE)),
            Kw::LIKE => Some((Infix::Like, PREDICATE)),
            Kw::REGEXP | Kw::RLIKE => Some((Infix::Regexp, PREDICATE)),
            Kw::SOUNDS if next_is(Kw::LIKE) => Some((Infix::Bin(BinOp::SoundsLike), PREDICATE)),
            Kw::MEMBER if next_is(Kw::OF) => Some((Infix::Bin(BinOp::MemberOf), PREDICATE)),
            Kw::DIV => Some((Infix::Bin(BinOp::IntDiv), MUL)),
            Kw::MOD => Some((Infix::Bin(BinOp::Mod), MUL)),
            Kw::COLLATE => Some((Infix::Collate, COLLATE)),
            _ => None,
        }
    }

    /// Takes the operator and its right side.
    fn infix_rule(&mut self, left: Expr, infix: Infix, level: u8) -> R<Expr> {
        self.height = 0;
        match infix {
            Infix::Or | Infix::And => {
                let mut all = vec![left];
                while matches!(
                    (self.infix(), infix),
                    (Some((Infix::Or, _)), Infix::Or) | (Some((Infix::And, _)), Infix::And)
                ) {
                    self.bump();
                    all.push(self.expr_at(level + 1)?);
                }
                Ok(if matches!(infix, Infix::Or) { Expr::Or(all) } else { Expr::And(all) })
            }
            Infix::Bin(op) => self.binary(left, op, level),
            Infix::Is => self.is_rule(left),
            Infix::Not => {
                self.bump();
                let positive = match self.tok.kw {
                    Kw::BETWEEN => Infix::Between,
                    Kw::IN => Infix::In,
                    Kw::LIKE => Infix::Like,
                    _ => Infix::Regexp,
                };
                self.predicate(left, positive, true)
            }
            Infix::Between | Infix::In | Infix::Like | Infix::Regexp => self.predicate(left, infix, false),
            Infix::Collate => {
                self.bump();
                let name = if self.at(Kw::BINARY) { self.any_word()? } else { self.ident_or_text()? };
                Ok(Expr::Collate(Box::new(left), name))
            }
        }
    }

    fn binary(&mut self, left: Expr, op: BinOp, level: u8) -> R<Expr> {
        let left = Box::new(left);
        self.bump();
        match op {
            BinOp::Add | BinOp::Sub if self.at(Kw::INTERVAL) => {
                let right = match self.interval()? {
                    Interval::Span(amount, unit) => {
                        let sub = op == BinOp::Sub;
                        return Ok(Expr::DateArith { expr: left, sub, amount: Box::new(amount), unit });
                    }
                    Interval::Function(call) => self.continue_with(call, level + 1, level::ATOM, 0)?,
                };
                Ok(Expr::Binary(op, left, Box::new(right)))
            }
            BinOp::SoundsLike => {
                self.bump();
                Ok(Expr::Binary(op, left, Box::new(self.expr_at(level::BIT_OR)?)))
            }
            BinOp::MemberOf => {
                self.bump();
                let right = self.parens(Self::expr)?;
                Ok(Expr::Binary(op, left, Box::new(right)))
            }
            _ if op.is_comparison() && self.at_quantifier() => {
                let all = self.bump().kw == Kw::ALL;
                let query = Box::new(self.parens(Self::query)?);
                Ok(Expr::Quantified { expr: left, op, all, query })
            }
            _ => Ok(Expr::Binary(op, left, Box::new(self.expr_at(level + 1)?))),
        }
    }

    fn at_quantifier(&self) -> bool {
        self.at_any(&[Kw::ALL, Kw::ANY, Kw::SOME]) && self.peek().t == T::LParen
    }

    fn is_rule(&mut self, left: Expr) -> R<Expr> {
        self.bump();
        let not = self.eat(Kw::NOT);
        let test = match self.expect_any(&[Kw::NULL, Kw::TRUE, Kw::FALSE, Kw::UNKNOWN])? {
            Kw::NULL => IsTest::Null,
            Kw::TRUE => IsTest::True,
            Kw::FALSE => IsTest::False,
            _ => IsTest::Unknown,
        };
        Ok(Expr::Is { expr: Box::new(left), not, test })
    }

    fn predicate(&mut self, left: Expr, infix: Infix, not: bool) -> R<Expr> {
        let expr = Box::new(left);
        self.bump();
        match infix {
            Infix::Between => {
                let low = Box::new(self.expr_at(level::BIT_OR)?);
                self.expect(Kw::AND)?;
                let high = Box::new(self.expr_at(level::PREDICATE)?);
                Ok(Expr::Between { expr, not, low, high })
            }
            Infix::In => {
                self.expect_t(T::LParen)?;
                if self.at_query() {
                    let query = Box::new(self.query()?);
                    self.expect_t(T::RParen)?;
                    return Ok(Expr::InSelect { expr, not, query });
                }
                let list = self.list(Self::expr)?;
                self.expect_t(T::RParen)?;
                Ok(Expr::In { expr, not, list })
            }
            Infix::Like => {
                let pattern = Box::new(self.expr_at(level::UNARY)?);
                let escape =
                    if self.eat(Kw::ESCAPE) { Some(Box::new(self.expr_at(level::UNARY)?)) } else { None };
                Ok(Expr::Like { expr, not, pattern, escape })
            }
            _ => Ok(Expr::Regexp { expr, not, pattern: Box::new(self.expr_at(level::BIT_OR)?) }),
        }
    }

    /// The first operand, and the level above which nothing may continue it.
    fn prefix(&mut self, min: u8) -> R<(Expr, u8)> {
        let unary = |op, p: &mut Self| {
            p.bump();
            Ok((Expr::Unary(op, Box::new(p.expr_at(level::UNARY)?)), level::ATOM))
        };
        match self.tok.t {
            T::Minus => unary(UnOp::Neg, self),
            T::Plus => unary(UnOp::Plus, self),
            T::Tilde => unary(UnOp::BitNot, self),
            T::Bang => unary(UnOp::Not, self),
            T::Word if self.at(Kw::NOT) => {
                if self.mode.high_not_precedence {
                    return unary(UnOp::Not, self);
                }
                if min > level::NOT {
                    return self.fail();
                }
                self.bump();
                Ok((Expr::Unary(UnOp::Not, Box::new(self.expr_at(level::NOT)?)), level::AND))
            }
            T::Word if self.at(Kw::INTERVAL) => Ok((self.leading_interval()?, level::ATOM)),
            _ => Ok((self.atom()?, level::ATOM)),
        }
    }

    /// An operand without operators.
    fn atom(&mut self) -> R<Expr> {
        match self.tok.t {
            T::Word => self.word_atom(),
            T::Quoted => self.name_atom(),
            T::Int | T::Dec | T::Float | T::Str | T::NStr | T::Hex | T::Bit => Ok(Expr::Lit(self.literal()?)),
            T::Param => {
                self.bump();
                self.params += 1;
                Ok(Expr::Param(self.params - 1))
            }
            T::LParen => self.paren_atom(),
            T::At => self.user_var_atom(),
            T::AtAt => Ok(Expr::SysVar(self.sys_var()?)),
            T::LBrace => self.odbc_atom(),
            _ => self.fail(),
        }
    }

    /// `(expr)`, `(a, b)`, `(SELECT ..)`, also with more parentheses around the SELECT.
    #[inline(never)]
    fn paren_atom(&mut self) -> R<Expr> {
        self.expect_t(T::LParen)?;
        if self.at_query() {
            let query = self.query()?;
            self.expect_t(T::RParen)?;
            return Ok(Expr::Subquery(Box::new(query)));
        }
        let first = self.expr()?;
        if let Expr::Subquery(inner) = first {
            return self.paren_subquery(*inner);
        }
        if !self.at_t(T::Comma) {
            self.expect_t(T::RParen)?;
            return Ok(first);
        }
        let mut row = vec![first];
        while self.eat_t(T::Comma) {
            row.push(self.expr()?);
        }
        self.expect_t(T::RParen)?;
        Ok(Expr::Row(row))
    }

    /// After `((SELECT ..)`: the end, a row, or the query goes on with UNION, ORDER BY or LIMIT.
    fn paren_subquery(&mut self, inner: Query) -> R<Expr> {
        if self.at_any(&[Kw::UNION, Kw::EXCEPT, Kw::INTERSECT, Kw::ORDER, Kw::LIMIT]) {
            let query = self.query_from(None, QueryBody::Query(Box::new(inner)))?;
            self.expect_t(T::RParen)?;
            return Ok(Expr::Subquery(Box::new(query)));
        }
        let first = Expr::Subquery(Box::new(inner));
        if self.eat_t(T::RParen) {
            return Ok(first);
        }
        let mut row = vec![first];
        self.expect_t(T::Comma)?;
        row.extend(self.list(Self::expr)?);
        self.expect_t(T::RParen)?;
        Ok(Expr::Row(row))
    }

    /// A constant.
    pub(super) fn literal(&mut self) -> R<Lit> {
        let token = self.tok;
        let text = self.text(token);
        let digits = || lossy(text.to_vec());
        let lit = match token.t {
            T::Str => return Ok(Lit::Str(self.string_bytes()?.into())),
            T::Int => match std::str::from_utf8(text).ok().and_then(|digits| digits.parse().ok()) {
                Some(value) => Lit::Int(value),
                None => Lit::Dec(digits()),
            },
            T::Dec => Lit::Dec(digits()),
            T::Float => Lit::Float(digits()),
            T::NStr => {
                self.bump();
                let mut value = unescape(text, self.mode);
                if self.at_t(T::Str) {
                    value.extend(self.string_bytes()?);
                }
                return Ok(Lit::IntroStr("utf8mb3".into(), value.into()));
            }
            T::Hex => Lit::Hex(None, radix_bytes(text, true).into()),
            T::Bit => Lit::Bit(None, radix_bytes(text, false).into()),
            _ => return self.fail(),
        };
        self.bump();
        Ok(lit)
    }

    /// `@name` or `@name := expr`.
    fn user_var_atom(&mut self) -> R<Expr> {
        let name = self.user_var()?;
        if self.eat_t(T::Assign) {
            return Ok(Expr::Assign(name, Box::new(self.expr()?)));
        }
        Ok(Expr::UserVar(name))
    }

    /// `@name`: its name.
    pub(super) fn user_var(&mut self) -> R<super::ast::Name> {
        if !self.at_t(T::At) {
            return self.fail();
        }
        // The name follows without a blank, so it is lexed by its own rule.
        let token = self.lex.variable();
        self.name_after_at(token)
    }

    /// Makes a name of a token lexed by one of the special rules after `@`, and moves behind it.
    pub(super) fn name_after_at(&mut self, token: Token) -> R<super::ast::Name> {
        let text = self.text(token);
        let name = match token.t {
            T::Word => text.to_vec(),
            T::Quoted | T::Str => unescape(text, self.mode),
            _ => return self.fail(),
        };
        self.prev_end = token.end;
        self.tok = self.lex.next();
        Ok(lossy(name))
    }

    /// `@@[scope.]name[.component]`.
    pub(super) fn sys_var(&mut self) -> R<SysVar> {
        self.expect_t(T::AtAt)?;
        let scope = match self.tok.kw {
            Kw::GLOBAL => VarScope::Global,
            Kw::SESSION | Kw::LOCAL => VarScope::Session,
            Kw::PERSIST => VarScope::Persist,
            Kw::PERSIST_ONLY => VarScope::PersistOnly,
            _ => VarScope::None,
        };
        if scope != VarScope::None && self.peek().t == T::Dot {
            self.bump();
            self.bump();
            return Ok(SysVar { scope, name: self.dotted_name()? });
        }
        Ok(SysVar { scope: VarScope::None, name: self.dotted_name()? })
    }

    /// `name` or `name.name` as one name with its dot.
    pub(super) fn dotted_name(&mut self) -> R<super::ast::Name> {
        let first = self.any_word()?;
        if !self.eat_t(T::Dot) {
            return Ok(first);
        }
        let second = self.any_word()?;
        Ok(format!("{first}.{second}").into())
    }

    /// `{d '2020-01-01'}` and its relatives; `{anything expr}` is the expression.
    #[inline(never)]
    fn odbc_atom(&mut self) -> R<Expr> {
        self.expect_t(T::LBrace)?;
        let kind = self.ident()?;
        let expr = self.expr()?;
        self.expect_t(T::RBrace)?;
        let text = match &expr {
            Expr::Lit(Lit::Str(text)) => lossy(text.to_vec()),
            _ => return Ok(expr),
        };
        Ok(match kind.to_ascii_lowercase().as_str() {
            "d" => Expr::Lit(Lit::Date(text)),
            "t" => Expr::Lit(Lit::Time(text)),
            "ts" => Expr::Lit(Lit::Timestamp(text)),
            _ => expr,
        })
    }

    /// An expression that begins with INTERVAL: the function, or `INTERVAL 1 DAY + d`.
    #[inline(never)]
    fn leading_interval(&mut self) -> R<Expr> {
        match self.interval()? {
            Interval::Function(call) => Ok(call),
            Interval::Span(amount, unit) => {
                self.expect_t(T::Plus)?;
                let expr = Box::new(self.expr_at(level::MUL)?);
                Ok(Expr::DateArith { expr, sub: false, amount: Box::new(amount), unit })
            }
        }
    }

    /// `INTERVAL expr unit` or `INTERVAL(a, b, ..)`. Only what follows the parentheses tells them apart, so
    /// an amount in parentheses is parsed once and then continued, never parsed twice.
    fn interval(&mut self) -> R<Interval> {
        self.expect(Kw::INTERVAL)?;
        if self.at_t(T::LParen) {
            let outer = std::mem::take(&mut self.height);
            let first = self.deeper(Self::paren_atom)?;
            let first = match first {
                Expr::Row(args) => {
                    self.height = outer.max(self.height);
                    return Ok(Interval::Function(super::func::call("INTERVAL", args)));
                }
                other => self.continue_with(other, level::OR, level::ATOM, outer)?,
            };
            return Ok(Interval::Span(first, self.time_unit()?));
        }
        let amount = self.expr()?;
        Ok(Interval::Span(amount, self.time_unit()?))
    }

    /// `INTERVAL expr unit` where nothing else can stand.
    pub(super) fn interval_span(&mut self) -> R<(Expr, TimeUnit)> {
        match self.interval()? {
            Interval::Span(amount, unit) => Ok((amount, unit)),
            Interval::Function(_) => self.fail(),
        }
    }

    /// The type in CAST and CONVERT.
    pub(super) fn cast_type(&mut self) -> R<CastType> {
        let kw = self.tok.kw;
        let len = |p: &mut Self| if p.at_t(T::LParen) { p.parens(Self::size).map(Some) } else { Ok(None) };
        let ty = match kw {
            Kw::SIGNED | Kw::UNSIGNED => {
                self.bump();
                let _ = self.eat_any(&[Kw::INT, Kw::INTEGER]);
                if kw == Kw::SIGNED { CastType::Signed } else { CastType::Unsigned }
            }
            Kw::BINARY => {
                self.bump();
                CastType::Binary(len(self)?)
            }
            Kw::CHAR | Kw::CHARACTER | Kw::NCHAR | Kw::NATIONAL => return self.cast_char(),
            Kw::DATE | Kw::YEAR | Kw::JSON => {
                self.bump();
                match kw {
                    Kw::DATE => CastType::Date,
                    Kw::YEAR => CastType::Year,
                    _ => CastType::Json,
                }
            }
            Kw::TIME | Kw::DATETIME => {
                self.bump();
                let fsp = len(self)?;
                if kw == Kw::TIME { CastType::Time(fsp) } else { CastType::DateTime(fsp) }
            }
            Kw::DECIMAL | Kw::DEC => {
                self.bump();
                let (precision, scale) = self.precision_scale()?;
                CastType::Decimal(precision, scale)
            }
            Kw::FLOAT => {
                self.bump();
                CastType::Float(len(self)?)
            }
            Kw::DOUBLE | Kw::REAL => {
                self.bump();
                let _ = self.eat(Kw::PRECISION);
                CastType::Double
            }
            _ => return Ok(CastType::Other(Box::new(self.type_name()?))),
        };
        let _ = self.eat(Kw::ARRAY);
        Ok(ty)
    }

    fn cast_char(&mut self) -> R<CastType> {
        let national = self.at_any(&[Kw::NCHAR, Kw::NATIONAL]);
        if self.bump().kw == Kw::NATIONAL {
            self.expect_any(&[Kw::CHAR, Kw::CHARACTER])?;
        }
        let len = if self.at_t(T::LParen) { Some(self.parens(Self::size)?) } else { None };
        let mut charset = national.then(|| "utf8mb3".into());
        if self.eat_seq(&[Kw::CHARACTER, Kw::SET])
            || self.eat_seq(&[Kw::CHAR, Kw::SET])
            || self.eat(Kw::CHARSET)
        {
            charset = Some(self.charset_name()?);
        } else if self.eat(Kw::ASCII) {
            charset = Some("latin1".into());
        } else if self.eat(Kw::UNICODE) {
            charset = Some("ucs2".into());
        }
        let _ = self.eat(Kw::ARRAY);
        Ok(CastType::Char { len, charset })
    }
}
