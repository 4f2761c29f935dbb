//! Operands that begin with a word: columns, functions, and the many functions with a grammar of their own.
//!
//! A word is a function's name when `(` follows. Reserved words reach this file too: some are functions
//! (IF, LEFT, REPLACE), some constants (NULL, TRUE), some begin a construct (CASE, EXISTS); the rest cannot
//! begin an operand.

use super::ast::{Agg, AggFunc, Call, ColName, Expr, Lit, Name, OrderBy, TimeUnit, TrimSide, Window};
use super::cursor::{Parser, R, lossy};
use super::expr::level;
use super::keyword::Kw;
use super::lexer::{T, Token, radix_bytes};

/// Character sets that may introduce a literal.
const CHARSETS: &[&str] = &[
    "utf8mb4", "utf8mb3", "utf8", "latin1", "binary", "ascii", "latin2", "latin5", "latin7", "big5", "dec8",
    "cp850", "hp8", "koi8r", "swe7", "ujis", "sjis", "hebrew", "tis620", "euckr", "koi8u", "gb2312", "greek",
    "cp1250", "gbk", "armscii8", "ucs2", "cp866", "keybcs2", "macce", "macroman", "cp852", "cp1251", "utf16",
    "utf16le", "cp1256", "cp1257", "utf32", "geostd8", "cp932", "eucjpms", "gb18030",
];

/// A call of a function named in the grammar.
pub(super) fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Call(Box::new(Call { db: None, name: name.into(), args }))
}

impl Parser<'_> {
    /// An operand that begins with an unquoted word.
    pub(super) fn word_atom(&mut self) -> R<Expr> {
        let kw = self.tok.kw;
        if kw == Kw::NONE {
            if self.text(self.tok).first() == Some(&b'_')
                && let Some(lit) = self.introduced()?
            {
                return Ok(Expr::Lit(lit));
            }
            return self.name_atom();
        }
        if kw.is_reserved() { self.reserved_atom(kw) } else { self.special_atom(kw) }
    }

    /// A column, or a call of a function without grammar of its own.
    pub(super) fn name_atom(&mut self) -> R<Expr> {
        let quoted = self.at_t(T::Quoted);
        let first = self.ident()?;
        if self.at_t(T::LParen) && !quoted {
            let args = self.call_args()?;
            return self.windowed(Expr::Call(Box::new(Call { db: None, name: first, args })));
        }
        let column = self.col_name_from(first)?;
        if self.at_t(T::LParen) && column.db.is_none() && column.table.is_some() {
            let args = self.call_args()?;
            return Ok(Expr::Call(Box::new(Call { db: column.table, name: column.name, args })));
        }
        if self.tok.t == T::Arrow || self.tok.t == T::Arrow2 {
            let op = if self.bump().t == T::Arrow {
                super::ast::BinOp::JsonExtract
            } else {
                super::ast::BinOp::JsonUnquote
            };
            let path = Expr::Lit(Lit::Str(self.string_bytes()?.into()));
            return Ok(Expr::Binary(op, Box::new(Expr::Col(column)), Box::new(path)));
        }
        Ok(Expr::Col(column))
    }

    /// `_charset 'text'`, if that is what follows.
    fn introduced(&mut self) -> R<Option<Lit>> {
        let next = self.peek();
        if !matches!(next.t, T::Str | T::Hex | T::Bit) {
            return Ok(None);
        }
        let word = &self.text(self.tok)[1..];
        let Some(charset) = CHARSETS.iter().find(|name| name.as_bytes().eq_ignore_ascii_case(word)) else {
            return Ok(None);
        };
        let charset: Name = (*charset).into();
        self.bump();
        let text = self.text(self.tok);
        let lit = match self.tok.t {
            T::Str => return Ok(Some(Lit::IntroStr(charset, self.string_bytes()?.into()))),
            T::Hex => Lit::Hex(Some(charset), radix_bytes(text, true).into()),
            _ => Lit::Bit(Some(charset), radix_bytes(text, false).into()),
        };
        self.bump();
        Ok(Some(lit))
    }

    /// `(args)`, perhaps none.
    fn call_args(&mut self) -> R<Vec<Expr>> {
        self.expect_t(T::LParen)?;
        if self.eat_t(T::RParen) {
            return Ok(Vec::new());
        }
        let args = self.list(Self::expr)?;
        self.expect_t(T::RParen)?;
        Ok(args)
    }

    /// `name(args)` under a name in capitals.
    fn plain_call(&mut self, name: &str) -> R<Expr> {
        self.bump();
        let args = self.call_args()?;
        self.windowed(call(name, args))
    }

    /// An operand that begins with a reserved word.
    #[inline(never)]
    fn reserved_atom(&mut self, kw: Kw) -> R<Expr> {
        match kw {
            Kw::NULL => self.constant(Lit::Null),
            Kw::TRUE => self.constant(Lit::Bool(true)),
            Kw::FALSE => self.constant(Lit::Bool(false)),
            Kw::CASE => self.case(),
            Kw::EXISTS => {
                self.bump();
                Ok(Expr::Exists(Box::new(self.parens(Self::query)?)))
            }
            Kw::ROW => {
                self.bump();
                let args = self.parens(|p| p.list(Self::expr))?;
                if args.len() < 2 { self.fail() } else { Ok(Expr::Row(args)) }
            }
            Kw::BINARY => {
                self.bump();
                let expr = Box::new(self.expr_at(level::UNARY)?);
                Ok(Expr::Cast { expr, ty: Box::new(super::ast::CastType::Binary(None)) })
            }
            Kw::DEFAULT => {
                self.bump();
                if !self.at_t(T::LParen) {
                    return Ok(Expr::Default(None));
                }
                Ok(Expr::Default(Some(self.parens(Self::col_name)?)))
            }
            Kw::VALUES => {
                self.bump();
                Ok(Expr::Values(self.parens(Self::col_name)?))
            }
            Kw::CONVERT => self.convert(),
            Kw::CHAR => self.char_function(),
            Kw::MATCH => self.match_against(),
            Kw::CURRENT_TIMESTAMP | Kw::LOCALTIME | Kw::LOCALTIMESTAMP => self.now_like("NOW"),
            Kw::CURRENT_DATE => self.now_like("CURDATE"),
            Kw::CURRENT_TIME => self.now_like("CURTIME"),
            Kw::UTC_DATE | Kw::UTC_TIME | Kw::UTC_TIMESTAMP | Kw::CURRENT_USER => self.now_like(kw.name()),
            Kw::IF
            | Kw::LEFT
            | Kw::RIGHT
            | Kw::REPLACE
            | Kw::INSERT
            | Kw::REPEAT
            | Kw::MOD
            | Kw::DATABASE
            | Kw::GROUPING
            | Kw::CUME_DIST
            | Kw::DENSE_RANK
            | Kw::FIRST_VALUE
            | Kw::LAG
            | Kw::LAST_VALUE
            | Kw::LEAD
            | Kw::NTH_VALUE
            | Kw::NTILE
            | Kw::PERCENT_RANK
            | Kw::RANK
            | Kw::ROW_NUMBER => {
                if self.peek().t == T::LParen {
                    self.plain_call(kw.name())
                } else {
                    self.fail()
                }
            }
            Kw::SCHEMA if self.peek().t == T::LParen => self.plain_call("DATABASE"),
            _ => self.fail(),
        }
    }

    fn constant(&mut self, lit: Lit) -> R<Expr> {
        self.bump();
        Ok(Expr::Lit(lit))
    }

    /// An operand that begins with a word which is a keyword but not reserved: a name unless the right thing
    /// follows.
    #[inline(never)]
    fn special_atom(&mut self, kw: Kw) -> R<Expr> {
        let next = self.peek().t;
        if next == T::Str && matches!(kw, Kw::DATE | Kw::TIME | Kw::TIMESTAMP) {
            self.bump();
            let text = self.string_text()?;
            return Ok(Expr::Lit(match kw {
                Kw::DATE => Lit::Date(text),
                Kw::TIME => Lit::Time(text),
                _ => Lit::Timestamp(text),
            }));
        }
        if next != T::LParen {
            return self.name_atom();
        }
        if let Some(func) = agg_func(kw) {
            return self.aggregate(func);
        }
        match kw {
            Kw::CAST => self.cast(),
            Kw::SUBSTRING | Kw::SUBSTR | Kw::MID => self.substring(),
            Kw::TRIM => self.trim(),
            Kw::POSITION => {
                self.bump();
                self.expect_t(T::LParen)?;
                let what = self.expr_at(level::BIT_OR)?;
                self.expect(Kw::IN)?;
                let text = self.expr()?;
                self.expect_t(T::RParen)?;
                Ok(call("LOCATE", vec![what, text]))
            }
            Kw::EXTRACT => {
                self.bump();
                self.expect_t(T::LParen)?;
                let unit = self.time_unit()?;
                self.expect(Kw::FROM)?;
                let expr = Box::new(self.expr()?);
                self.expect_t(T::RParen)?;
                Ok(Expr::Extract(unit, expr))
            }
            Kw::DATE_ADD | Kw::DATE_SUB | Kw::ADDDATE | Kw::SUBDATE => self.date_arith(kw),
            Kw::TIMESTAMPADD | Kw::TIMESTAMPDIFF => self.timestamp_arith(kw),
            Kw::GET_FORMAT => {
                self.bump();
                self.expect_t(T::LParen)?;
                let kind = self.expect_any(&[Kw::DATE, Kw::TIME, Kw::DATETIME, Kw::TIMESTAMP])?;
                self.expect_t(T::Comma)?;
                let kind = Expr::Lit(Lit::Str(kind.name().as_bytes().into()));
                let args = vec![kind, self.expr()?];
                self.expect_t(T::RParen)?;
                Ok(call("GET_FORMAT", args))
            }
            Kw::WEIGHT_STRING => self.weight_string(),
            _ => self.name_atom(),
        }
    }

    fn case(&mut self) -> R<Expr> {
        self.bump();
        let operand = if self.at(Kw::WHEN) { None } else { Some(Box::new(self.expr()?)) };
        let mut whens = Vec::new();
        while self.eat(Kw::WHEN) {
            let when = self.expr()?;
            self.expect(Kw::THEN)?;
            whens.push((when, self.expr()?));
        }
        if whens.is_empty() {
            return self.fail();
        }
        let other = if self.eat(Kw::ELSE) { Some(Box::new(self.expr()?)) } else { None };
        self.expect(Kw::END)?;
        Ok(Expr::Case { operand, whens, other })
    }

    fn cast(&mut self) -> R<Expr> {
        self.bump();
        self.expect_t(T::LParen)?;
        let expr = Box::new(self.expr()?);
        self.expect(Kw::AS)?;
        let ty = Box::new(self.cast_type()?);
        self.expect_t(T::RParen)?;
        Ok(Expr::Cast { expr, ty })
    }

    fn convert(&mut self) -> R<Expr> {
        self.bump();
        self.expect_t(T::LParen)?;
        let expr = Box::new(self.expr()?);
        let out = if self.eat(Kw::USING) {
            Expr::ConvertUsing(expr, self.charset_name()?)
        } else {
            self.expect_t(T::Comma)?;
            Expr::Cast { expr, ty: Box::new(self.cast_type()?) }
        };
        self.expect_t(T::RParen)?;
        Ok(out)
    }

    /// `CHAR(77, 121 [USING charset])`.
    fn char_function(&mut self) -> R<Expr> {
        self.bump();
        self.expect_t(T::LParen)?;
        let args = self.list(Self::expr)?;
        let charset = if self.eat(Kw::USING) { Some(self.charset_name()?) } else { None };
        self.expect_t(T::RParen)?;
        let chars = call("CHAR", args);
        Ok(match charset {
            Some(charset) => Expr::ConvertUsing(Box::new(chars), charset),
            None => chars,
        })
    }

    /// `NOW`-like functions that need no parentheses.
    fn now_like(&mut self, name: &str) -> R<Expr> {
        self.bump();
        let args = if self.at_t(T::LParen) { self.call_args()? } else { Vec::new() };
        Ok(call(name, args))
    }

    fn substring(&mut self) -> R<Expr> {
        self.bump();
        self.expect_t(T::LParen)?;
        let mut args = vec![self.expr()?];
        if self.eat(Kw::FROM) {
            args.push(self.expr()?);
            if self.eat(Kw::FOR) {
                args.push(self.expr()?);
            }
        } else {
            while self.eat_t(T::Comma) {
                args.push(self.expr()?);
            }
        }
        self.expect_t(T::RParen)?;
        Ok(call("SUBSTRING", args))
    }

    fn trim(&mut self) -> R<Expr> {
        self.bump();
        self.expect_t(T::LParen)?;
        let written = self.eat_any(&[Kw::LEADING, Kw::TRAILING, Kw::BOTH]);
        let side = match written {
            Some(Kw::LEADING) => TrimSide::Leading,
            Some(Kw::TRAILING) => TrimSide::Trailing,
            _ => TrimSide::Both,
        };
        let mut what = None;
        let expr = if written.is_some() && self.eat(Kw::FROM) {
            self.expr()?
        } else {
            let first = self.expr()?;
            if self.eat(Kw::FROM) {
                what = Some(Box::new(first));
                self.expr()?
            } else if written.is_some() {
                return self.fail();
            } else {
                first
            }
        };
        self.expect_t(T::RParen)?;
        Ok(Expr::Trim { side, what, expr: Box::new(expr) })
    }

    /// `DATE_ADD(d, INTERVAL n unit)`, `ADDDATE(d, days)` and the subtracting ones.
    fn date_arith(&mut self, kw: Kw) -> R<Expr> {
        self.bump();
        self.expect_t(T::LParen)?;
        let expr = Box::new(self.expr()?);
        self.expect_t(T::Comma)?;
        let days_allowed = matches!(kw, Kw::ADDDATE | Kw::SUBDATE);
        let (amount, unit) = if !days_allowed || self.at(Kw::INTERVAL) {
            self.interval_span()?
        } else {
            (self.expr()?, TimeUnit::Day)
        };
        self.expect_t(T::RParen)?;
        let sub = matches!(kw, Kw::DATE_SUB | Kw::SUBDATE);
        Ok(Expr::DateArith { expr, sub, amount: Box::new(amount), unit })
    }

    fn timestamp_arith(&mut self, kw: Kw) -> R<Expr> {
        self.bump();
        self.expect_t(T::LParen)?;
        let unit = self.time_unit()?;
        self.expect_t(T::Comma)?;
        let first = Box::new(self.expr()?);
        self.expect_t(T::Comma)?;
        let second = Box::new(self.expr()?);
        self.expect_t(T::RParen)?;
        Ok(if kw == Kw::TIMESTAMPADD {
            Expr::TimestampAdd(unit, first, second)
        } else {
            Expr::TimestampDiff(unit, first, second)
        })
    }

    /// `WEIGHT_STRING(s [AS CHAR(n)])`: the length becomes a second argument.
    fn weight_string(&mut self) -> R<Expr> {
        self.bump();
        self.expect_t(T::LParen)?;
        let mut args = vec![self.expr()?];
        if self.eat(Kw::AS) {
            self.expect_any(&[Kw::CHAR, Kw::BINARY])?;
            args.push(Expr::Lit(Lit::Int(self.parens(Self::uint)?)));
        }
        self.expect_t(T::RParen)?;
        Ok(call("WEIGHT_STRING", args))
    }

    fn match_against(&mut self) -> R<Expr> {
        self.bump();
        let columns: Vec<ColName> = if self.at_t(T::LParen) {
            self.parens(|p| p.list(Self::col_name))?
        } else {
            self.list(Self::col_name)?
        };
        self.expect(Kw::AGAINST)?;
        self.expect_t(T::LParen)?;
        let against = Box::new(self.expr_at(level::BIT_OR)?);
        let mode = if self.eat_seq(&[Kw::IN, Kw::BOOLEAN, Kw::MODE]) {
            "IN BOOLEAN MODE"
        } else if self.eat_seq(&[Kw::IN, Kw::NATURAL, Kw::LANGUAGE, Kw::MODE]) {
            if self.eat_seq(&[Kw::WITH, Kw::QUERY, Kw::EXPANSION]) {
                "IN NATURAL LANGUAGE MODE WITH QUERY EXPANSION"
            } else {
                "IN NATURAL LANGUAGE MODE"
            }
        } else if self.eat_seq(&[Kw::WITH, Kw::QUERY, Kw::EXPANSION]) {
            "WITH QUERY EXPANSION"
        } else {
            ""
        };
        self.expect_t(T::RParen)?;
        Ok(Expr::Match { columns, against, mode })
    }

    fn aggregate(&mut self, func: AggFunc) -> R<Expr> {
        self.bump();
        self.expect_t(T::LParen)?;
        let mut agg = Agg { func, distinct: false, args: Vec::new(), order: Vec::new(), separator: None };
        if func == AggFunc::Count && self.eat_t(T::Star) {
            self.expect_t(T::RParen)?;
            return self.windowed(Expr::Agg(Box::new(agg)));
        }
        agg.distinct = self.eat(Kw::DISTINCT);
        if !agg.distinct {
            let _ = self.eat(Kw::ALL);
        }
        agg.args = self.list(Self::expr)?;
        let most = match func {
            AggFunc::GroupConcat => usize::MAX,
            AggFunc::Count if agg.distinct => usize::MAX,
            AggFunc::JsonObjectAgg => 2,
            _ => 1,
        };
        if agg.args.len() > most {
            return self.fail();
        }
        if func == AggFunc::GroupConcat {
            if self.eat_seq(&[Kw::ORDER, Kw::BY]) {
                agg.order = self.order_list()?;
            }
            if self.eat(Kw::SEPARATOR) {
                agg.separator = Some(self.string_bytes()?.into());
            }
        }
        self.expect_t(T::RParen)?;
        self.windowed(Expr::Agg(Box::new(agg)))
    }

    /// Takes `OVER ..` if it follows a call.
    fn windowed(&mut self, func: Expr) -> R<Expr> {
        if !self.at(Kw::OVER) {
            return Ok(func);
        }
        self.bump();
        let mut window =
            Window { func, name: None, partition: Vec::new(), order: Vec::new(), frame: Box::default() };
        if !self.at_t(T::LParen) {
            window.name = Some(self.ident()?);
            return Ok(Expr::Window(Box::new(window)));
        }
        self.bump();
        if self.at_ident() && !self.at_any(&[Kw::PARTITION]) && !self.at_frame() {
            window.name = Some(self.ident()?);
        }
        if self.eat_seq(&[Kw::PARTITION, Kw::BY]) {
            window.partition = self.list(Self::expr)?;
        }
        if self.eat_seq(&[Kw::ORDER, Kw::BY]) {
            window.order = self.order_list()?;
        }
        window.frame = self.balanced_text()?;
        self.expect_t(T::RParen)?;
        Ok(Expr::Window(Box::new(window)))
    }

    fn at_frame(&self) -> bool {
        self.at_any(&[Kw::ROWS, Kw::RANGE, Kw::GROUPS])
    }

    /// Text up to the `)` that closes what is open here, as written.
    pub(super) fn balanced_text(&mut self) -> R<Box<str>> {
        let start = self.tok.start;
        let mut open = 0u32;
        loop {
            match self.tok.t {
                T::LParen => open += 1,
                T::RParen if open == 0 => break,
                T::RParen => open -= 1,
                T::Eof | T::Bad | T::Semi => return self.fail(),
                _ => {}
            }
            self.bump();
        }
        if self.tok.start == start { Ok(Box::default()) } else { Ok(self.text_since(start)) }
    }

    /// `expr [ASC|DESC], ...`.
    pub(super) fn order_list(&mut self) -> R<Vec<OrderBy>> {
        self.list(|p| {
            let expr = p.expr()?;
            let desc = p.eat_any(&[Kw::ASC, Kw::DESC]) == Some(Kw::DESC);
            Ok(OrderBy { expr, desc })
        })
    }

    /// A unit of time.
    pub(super) fn time_unit(&mut self) -> R<TimeUnit> {
        match unit_of(self.tok) {
            Some(unit) => {
                self.bump();
                Ok(unit)
            }
            None => self.fail(),
        }
    }

    /// A character set's name: a name, a string, or BINARY.
    pub(super) fn charset_name(&mut self) -> R<Name> {
        if self.at_any(&[Kw::BINARY, Kw::ASCII]) {
            return Ok(lossy(self.bump_text().to_ascii_lowercase()));
        }
        self.ident_or_text()
    }
}

fn agg_func(kw: Kw) -> Option<AggFunc> {
    Some(match kw {
        Kw::COUNT => AggFunc::Count,
        Kw::SUM => AggFunc::Sum,
        Kw::AVG => AggFunc::Avg,
        Kw::MIN => AggFunc::Min,
        Kw::MAX => AggFunc::Max,
        Kw::BIT_AND => AggFunc::BitAnd,
        Kw::BIT_OR => AggFunc::BitOr,
        Kw::BIT_XOR => AggFunc::BitXor,
        Kw::GROUP_CONCAT => AggFunc::GroupConcat,
        Kw::STD | Kw::STDDEV | Kw::STDDEV_POP => AggFunc::StdPop,
        Kw::STDDEV_SAMP => AggFunc::StdSamp,
        Kw::VARIANCE | Kw::VAR_POP => AggFunc::VarPop,
        Kw::VAR_SAMP => AggFunc::VarSamp,
        Kw::JSON_ARRAYAGG => AggFunc::JsonArrayAgg,
        Kw::JSON_OBJECTAGG => AggFunc::JsonObjectAgg,
        Kw::ANY_VALUE => AggFunc::AnyValue,
        _ => return None,
    })
}

fn unit_of(token: Token) -> Option<TimeUnit> {
    Some(match token.kw {
        Kw::MICROSECOND => TimeUnit::Microsecond,
        Kw::SECOND | Kw::SQL_TSI_SECOND => TimeUnit::Second,
        Kw::MINUTE | Kw::SQL_TSI_MINUTE => TimeUnit::Minute,
        Kw::HOUR | Kw::SQL_TSI_HOUR => TimeUnit::Hour,
        Kw::DAY | Kw::SQL_TSI_DAY => TimeUnit::Day,
        Kw::WEEK | Kw::SQL_TSI_WEEK => TimeUnit::Week,
        Kw::MONTH | Kw::SQL_TSI_MONTH => TimeUnit::Month,
        Kw::QUARTER | Kw::SQL_TSI_QUARTER => TimeUnit::Quarter,
        Kw::YEAR | Kw::SQL_TSI_YEAR => TimeUnit::Year,
        Kw::SECOND_MICROSECOND => TimeUnit::SecondMicrosecond,
        Kw::MINUTE_MICROSECOND => TimeUnit::MinuteMicrosecond,
        Kw::MINUTE_SECOND => TimeUnit::MinuteSecond,
        Kw::HOUR_MICROSECOND => TimeUnit::HourMicrosecond,
        Kw::HOUR_SECOND => TimeUnit::HourSecond,
        Kw::HOUR_MINUTE => TimeUnit::HourMinute,
        Kw::DAY_MICROSECOND => TimeUnit::DayMicrosecond,
        Kw::DAY_SECOND => TimeUnit::DaySecond,
        Kw::DAY_MINUTE => TimeUnit::DayMinute,
        Kw::DAY_HOUR => TimeUnit::DayHour,
        Kw::YEAR_MONTH => TimeUnit::YearMonth,
        _ => return None,
    })
}
