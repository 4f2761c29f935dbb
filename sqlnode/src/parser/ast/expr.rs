//! Expressions: one enum, in MySQL's own categories.
//!
//! Operators that MySQL treats alike share a variant with an operator inside; operators with a shape of
//! their own (BETWEEN, IN, LIKE, CASE, CAST) have a variant of their own. A parenthesised expression leaves
//! no trace, the printer puts parentheses back where precedence needs them.

use super::{Name, Query, TableName, TypeName};

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A constant.
    Lit(Lit),
    /// `?`, numbered from 0 in text order.
    Param(u32),
    /// A column.
    Col(ColName),
    /// `@name`.
    UserVar(Name),
    /// `@name := expr`.
    Assign(Name, Box<Expr>),
    /// `@@[scope.]name`, or `@@name.component`.
    SysVar(SysVar),
    /// An operator in front of one operand.
    Unary(UnOp, Box<Expr>),
    /// An operator between two operands (all but AND and OR).
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// `a AND b AND ...`: two or more operands.
    And(Vec<Expr>),
    /// `a OR b OR ...`: two or more operands.
    Or(Vec<Expr>),
    /// `expr IS [NOT] NULL | TRUE | FALSE | UNKNOWN`.
    Is {
        /// What is tested.
        expr: Box<Expr>,
        /// With NOT.
        not: bool,
        /// Against what.
        test: IsTest,
    },
    /// `expr [NOT] BETWEEN low AND high`.
    Between {
        /// What is tested.
        expr: Box<Expr>,
        /// With NOT.
        not: bool,
        /// Lower bound, included.
        low: Box<Expr>,
        /// Upper bound, included.
        high: Box<Expr>,
    },
    /// `expr [NOT] IN (a, b, ...)`.
    In {
        /// What is looked for.
        expr: Box<Expr>,
        /// With NOT.
        not: bool,
        /// The non-empty list.
        list: Vec<Expr>,
    },
    /// `expr [NOT] IN (SELECT ...)`.
    InSelect {
        /// What is looked for.
        expr: Box<Expr>,
        /// With NOT.
        not: bool,
        /// Where.
        query: Box<Query>,
    },
    /// `expr [NOT] LIKE pattern [ESCAPE e]`.
    Like {
        /// The text.
        expr: Box<Expr>,
        /// With NOT.
        not: bool,
        /// The pattern.
        pattern: Box<Expr>,
        /// The escape character, backslash when absent.
        escape: Option<Box<Expr>>,
    },
    /// `expr [NOT] REGEXP pattern` (RLIKE is the same).
    Regexp {
        /// The text.
        expr: Box<Expr>,
        /// With NOT.
        not: bool,
        /// The pattern.
        pattern: Box<Expr>,
    },
    /// `expr COLLATE name`.
    Collate(Box<Expr>, Name),
    /// `CASE [operand] WHEN .. THEN .. [ELSE ..] END`.
    Case {
        /// The value compared with each WHEN, if there is one.
        operand: Option<Box<Expr>>,
        /// The non-empty list of WHEN and THEN.
        whens: Vec<(Expr, Expr)>,
        /// ELSE; NULL when absent.
        other: Option<Box<Expr>>,
    },
    /// `CAST(expr AS type)`, `CONVERT(expr, type)` and `BINARY expr` (as CAST to BINARY).
    Cast {
        /// The value.
        expr: Box<Expr>,
        /// The type wanted.
        ty: Box<CastType>,
    },
    /// `CONVERT(expr USING charset)`.
    ConvertUsing(Box<Expr>, Name),
    /// A call of an ordinary function. Functions with a grammar of their own come here too, in one fixed
    /// argument order: `SUBSTRING(s FROM a FOR b)` as `SUBSTRING(s, a, b)`, `POSITION(a IN b)` as
    /// `LOCATE(a, b)`, `CURRENT_TIMESTAMP` as `NOW()`, `CURRENT_USER` as `CURRENT_USER()`.
    Call(Box<Call>),
    /// A call of an aggregate function.
    Agg(Box<Agg>),
    /// `DATE_ADD(d, INTERVAL n unit)`, `d + INTERVAL n unit` and their subtracting forms.
    DateArith {
        /// The date.
        expr: Box<Expr>,
        /// Subtract instead of adding.
        sub: bool,
        /// How many.
        amount: Box<Expr>,
        /// Of what.
        unit: TimeUnit,
    },
    /// `EXTRACT(unit FROM expr)`.
    Extract(TimeUnit, Box<Expr>),
    /// `TIMESTAMPADD(unit, n, d)`.
    TimestampAdd(TimeUnit, Box<Expr>, Box<Expr>),
    /// `TIMESTAMPDIFF(unit, a, b)`.
    TimestampDiff(TimeUnit, Box<Expr>, Box<Expr>),
    /// `TRIM([LEADING|TRAILING|BOTH] [what] FROM text)`.
    Trim {
        /// Which ends.
        side: TrimSide,
        /// What to take away; a space when absent.
        what: Option<Box<Expr>>,
        /// From what.
        expr: Box<Expr>,
    },
    /// `(a, b, ...)` or `ROW(a, b, ...)` with two or more elements.
    Row(Vec<Expr>),
    /// `(SELECT ...)` used as a value.
    Subquery(Box<Query>),
    /// `EXISTS (SELECT ...)`.
    Exists(Box<Query>),
    /// `expr op ALL (SELECT ...)` or `ANY`/`SOME`.
    Quantified {
        /// Left side.
        expr: Box<Expr>,
        /// A comparison.
        op: BinOp,
        /// ALL instead of ANY.
        all: bool,
        /// Right side.
        query: Box<Query>,
    },
    /// `DEFAULT` (as a value to write) or `DEFAULT(column)`.
    Default(Option<ColName>),
    /// `VALUES(column)` in ON DUPLICATE KEY UPDATE.
    Values(ColName),
    /// `MATCH (a, b) AGAINST ('words' ...)`.
    Match {
        /// The columns.
        columns: Vec<ColName>,
        /// The words.
        against: Box<Expr>,
        /// The search modifier, as its words in capitals; empty when absent.
        mode: &'static str,
    },
    /// `func(...) OVER (...)`.
    Window(Box<Window>),
}

impl Expr {
    /// The SQL NULL.
    pub const NULL: Expr = Expr::Lit(Lit::Null);
}

/// A column, as far as it is qualified.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ColName {
    /// Database.
    pub db: Option<Name>,
    /// Table or alias.
    pub table: Option<Name>,
    /// The column itself.
    pub name: Name,
}

/// A constant, in the kinds that MySQL keeps apart.
#[derive(Debug, Clone, PartialEq)]
pub enum Lit {
    /// NULL.
    Null,
    /// TRUE or FALSE: the integers 1 and 0, printed as words.
    Bool(bool),
    /// An integer that fits in 64 bits without sign.
    Int(u64),
    /// A number with a decimal point and no exponent, or an integer too long for 64 bits. The text as
    /// written.
    Dec(Box<str>),
    /// A number with an exponent. The text as written.
    Float(Box<str>),
    /// A string in the connection's character set.
    Str(Box<[u8]>),
    /// A string with an introducer (`_latin1'x'`) or a national one (`N'x'`, introducer `utf8mb3`).
    IntroStr(Name, Box<[u8]>),
    /// `x'4d'` or `0x4d`, with its introducer if any.
    Hex(Option<Name>, Box<[u8]>),
    /// `b'101'` or `0b101`, packed into bytes from the right, with its introducer if any.
    Bit(Option<Name>, Box<[u8]>),
    /// `DATE '...'`.
    Date(Box<str>),
    /// `TIME '...'`.
    Time(Box<str>),
    /// `TIMESTAMP '...'`.
    Timestamp(Box<str>),
}

/// A system variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SysVar {
    /// Which value of it.
    pub scope: VarScope,
    /// The name; a component's variable keeps its dot.
    pub name: Name,
}

/// Which value of a system variable is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VarScope {
    /// No scope written.
    None,
    /// `GLOBAL`.
    Global,
    /// `SESSION` or `LOCAL`.
    Session,
    /// `PERSIST`.
    Persist,
    /// `PERSIST_ONLY`.
    PersistOnly,
}

/// Operators in front of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnOp {
    /// `NOT` and `!`.
    Not,
    /// `-`.
    Neg,
    /// `+`, which changes nothing.
    Plus,
    /// `~`.
    BitNot,
}

/// Operators between operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinOp {
    /// `XOR`.
    Xor,
    /// `=`.
    Eq,
    /// `<=>`.
    NullSafeEq,
    /// `<>` and `!=`.
    Ne,
    /// `<`.
    Lt,
    /// `<=`.
    Le,
    /// `>`.
    Gt,
    /// `>=`.
    Ge,
    /// `|`.
    BitOr,
    /// `&`.
    BitAnd,
    /// `<<`.
    Shl,
    /// `>>`.
    Shr,
    /// `+`.
    Add,
    /// `-`.
    Sub,
    /// `*`.
    Mul,
    /// `/`.
    Div,
    /// `DIV`.
    IntDiv,
    /// `%` and `MOD`.
    Mod,
    /// `^`.
    BitXor,
    /// `SOUNDS LIKE`.
    SoundsLike,
    /// `MEMBER OF (..)`.
    MemberOf,
    /// `->`.
    JsonExtract,
    /// `->>`.
    JsonUnquote,
    /// `||` under PIPES_AS_CONCAT.
    Concat,
}

impl BinOp {
    /// Whether it compares (and may stand before ALL and ANY).
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            BinOp::Eq | BinOp::NullSafeEq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge
        )
    }
}

/// What IS asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsTest {
    /// `IS NULL`.
    Null,
    /// `IS TRUE`.
    True,
    /// `IS FALSE`.
    False,
    /// `IS UNKNOWN`.
    Unknown,
}

/// Target of CAST and CONVERT.
#[derive(Debug, Clone, PartialEq)]
pub enum CastType {
    /// `SIGNED [INTEGER]`.
    Signed,
    /// `UNSIGNED [INTEGER]`.
    Unsigned,
    /// `CHAR[(n)] [CHARACTER SET c]`.
    Char {
        /// Length in characters.
        len: Option<u32>,
        /// Character set.
        charset: Option<Name>,
    },
    /// `BINARY[(n)]`.
    Binary(Option<u32>),
    /// `DATE`.
    Date,
    /// `TIME[(fsp)]`.
    Time(Option<u32>),
    /// `DATETIME[(fsp)]`.
    DateTime(Option<u32>),
    /// `YEAR`.
    Year,
    /// `DECIMAL[(m[,d])]`.
    Decimal(Option<u32>, Option<u32>),
    /// `FLOAT[(p)]`.
    Float(Option<u32>),
    /// `DOUBLE` and `REAL`.
    Double,
    /// `JSON`.
    Json,
    /// Any of these with `ARRAY`, and spatial types: kept as a column type.
    Other(Box<TypeName>),
}

/// A function call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// A schema in front of a stored function's name.
    pub db: Option<Name>,
    /// The name in capitals for built-in grammar, as written otherwise. Compare ignoring case.
    pub name: Name,
    /// Arguments.
    pub args: Vec<Expr>,
}

/// The aggregate functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggFunc {
    /// `COUNT(expr)`, `COUNT(DISTINCT a, b)`, and `COUNT(*)` with no argument.
    Count,
    /// `SUM`.
    Sum,
    /// `AVG`.
    Avg,
    /// `MIN`.
    Min,
    /// `MAX`.
    Max,
    /// `BIT_AND`.
    BitAnd,
    /// `BIT_OR`.
    BitOr,
    /// `BIT_XOR`.
    BitXor,
    /// `GROUP_CONCAT`.
    GroupConcat,
    /// `STD`, `STDDEV`, `STDDEV_POP`.
    StdPop,
    /// `STDDEV_SAMP`.
    StdSamp,
    /// `VARIANCE`, `VAR_POP`.
    VarPop,
    /// `VAR_SAMP`.
    VarSamp,
    /// `JSON_ARRAYAGG`.
    JsonArrayAgg,
    /// `JSON_OBJECTAGG`.
    JsonObjectAgg,
    /// `ANY_VALUE`.
    AnyValue,
}

/// An aggregate call.
#[derive(Debug, Clone, PartialEq)]
pub struct Agg {
    /// Which.
    pub func: AggFunc,
    /// With DISTINCT.
    pub distinct: bool,
    /// Arguments; none for `COUNT(*)`.
    pub args: Vec<Expr>,
    /// GROUP_CONCAT's ORDER BY.
    pub order: Vec<OrderBy>,
    /// GROUP_CONCAT's SEPARATOR.
    pub separator: Option<Box<[u8]>>,
}

/// One element of ORDER BY.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderBy {
    /// By what. An integer literal is a select item's position, which the planner resolves.
    pub expr: Expr,
    /// Descending.
    pub desc: bool,
}

/// Units of INTERVAL, EXTRACT and TIMESTAMPADD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The names are the words of the language.
pub enum TimeUnit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

/// Which ends TRIM works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrimSide {
    /// Both, also when nothing is written.
    Both,
    /// `LEADING`.
    Leading,
    /// `TRAILING`.
    Trailing,
}

/// A window function call: parsed so that it can be refused by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The function: [`Expr::Call`] or [`Expr::Agg`].
    pub func: Expr,
    /// A named window, when there is no specification.
    pub name: Option<Name>,
    /// PARTITION BY.
    pub partition: Vec<Expr>,
    /// ORDER BY.
    pub order: Vec<OrderBy>,
    /// The frame clause, as written; empty when absent.
    pub frame: Box<str>,
}

/// A table name followed by its columns is common enough to have a helper.
impl ColName {
    /// An unqualified column.
    pub fn bare(name: impl Into<Name>) -> ColName {
        ColName { db: None, table: None, name: name.into() }
    }
}

impl TableName {
    /// An unqualified table.
    pub fn bare(name: impl Into<Name>) -> TableName {
        TableName { db: None, name: name.into() }
    }
}
