//! Queries and row changes to text.

use std::fmt::{self, Display, Formatter};

use super::{Id, Text, Var, flag, list, names};
use crate::parser::ast::{
    Assignment, Delete, DeleteTarget, Expr, IndexHint, IndexHintKind, IndexHintScope, Insert, InsertSource,
    Into, Join, JoinKind, JoinOn, Limit, LockWait, Locking, OrderBy, Priority, Query, QueryBody, Select,
    SelectItem, SetOp, TableFactor, TableRef, Update, With,
};

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(with) = &self.with {
            write!(f, "{with} ")?;
        }
        write!(f, "{}", self.body)?;
        order_limit(f, &self.order, self.limit.as_ref())?;
        if let Some(into) = &self.into {
            write!(f, " {into}")?;
        }
        for locking in &self.locking {
            write!(f, " {locking}")?;
        }
        Ok(())
    }
}

fn order_limit(f: &mut Formatter<'_>, order: &[OrderBy], limit: Option<&Limit>) -> fmt::Result {
    if !order.is_empty() {
        f.write_str(" ORDER BY ")?;
        list(f, order, ", ")?;
    }
    match limit {
        Some(limit) => write!(f, " {limit}"),
        None => Ok(()),
    }
}

fn filter(f: &mut Formatter<'_>, word: &str, filter: Option<&Expr>) -> fmt::Result {
    match filter {
        Some(filter) => write!(f, " {word} {filter}"),
        None => Ok(()),
    }
}

fn partitions(f: &mut Formatter<'_>, partitions: &[Box<str>]) -> fmt::Result {
    if partitions.is_empty() {
        return Ok(());
    }
    f.write_str(" PARTITION (")?;
    names(f, partitions)?;
    f.write_str(")")
}

impl Display for Limit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "LIMIT ")?;
        if let Some(offset) = &self.offset {
            write!(f, "{offset}, ")?;
        }
        write!(f, "{}", self.count)
    }
}

impl Display for With {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.recursive { "WITH RECURSIVE " } else { "WITH " })?;
        for (i, cte) in self.ctes.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{}", Id(&cte.name))?;
            if !cte.columns.is_empty() {
                f.write_str(" (")?;
                names(f, &cte.columns)?;
                f.write_str(")")?;
            }
            write!(f, " AS ({})", cte.query)?;
        }
        Ok(())
    }
}

fn row(f: &mut Formatter<'_>, row: &[Expr]) -> fmt::Result {
    f.write_str("(")?;
    list(f, row, ", ")?;
    f.write_str(")")
}

/// How tightly a set operation holds: UNION and EXCEPT 1, INTERSECT 2, anything else 3.
fn set_level(body: &QueryBody) -> u8 {
    match body {
        QueryBody::Set { op: SetOp::Intersect, .. } => 2,
        QueryBody::Set { .. } => 1,
        _ => 3,
    }
}

impl Display for QueryBody {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            QueryBody::Select(select) => write!(f, "{select}"),
            QueryBody::Query(query) => write!(f, "({query})"),
            QueryBody::Values(rows) => {
                f.write_str("VALUES ")?;
                for (i, values) in rows.iter().enumerate() {
                    f.write_str(if i > 0 { ", ROW" } else { "ROW" })?;
                    row(f, values)?;
                }
                Ok(())
            }
            QueryBody::Table(name) => write!(f, "TABLE {name}"),
            QueryBody::Set { op, all, left, right } => {
                let word = match op {
                    SetOp::Union => "UNION",
                    SetOp::Intersect => "INTERSECT",
                    SetOp::Except => "EXCEPT",
                };
                // The parser builds leftwards, so only odd trees made by hand need the parentheses on the
                // left.
                let level = set_level(self);
                if set_level(left) < level {
                    write!(f, "({left})")?;
                } else {
                    write!(f, "{left}")?;
                }
                write!(f, " {word}{}", if *all { " ALL " } else { " " })?;
                if set_level(right) <= level { write!(f, "({right})") } else { write!(f, "{right}") }
            }
        }
    }
}

impl Display for Select {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SELECT")?;
        let m = self.modifiers;
        for (on, word) in [
            (m.distinct, "DISTINCT"),
            (m.high_priority, "HIGH_PRIORITY"),
            (m.straight_join, "STRAIGHT_JOIN"),
            (m.small_result, "SQL_SMALL_RESULT"),
            (m.big_result, "SQL_BIG_RESULT"),
            (m.buffer_result, "SQL_BUFFER_RESULT"),
            (m.no_cache, "SQL_NO_CACHE"),
            (m.calc_found_rows, "SQL_CALC_FOUND_ROWS"),
        ] {
            flag(f, on, word)?;
        }
        f.write_str(" ")?;
        list(f, &self.items, ", ")?;
        if !self.from.is_empty() {
            f.write_str(" FROM ")?;
            list(f, &self.from, ", ")?;
        }
        filter(f, "WHERE", self.filter.as_ref())?;
        if !self.group.is_empty() {
            f.write_str(" GROUP BY ")?;
            list(f, &self.group, ", ")?;
            flag(f, self.rollup, "WITH ROLLUP")?;
        }
        filter(f, "HAVING", self.having.as_ref())?;
        if !self.windows.is_empty() {
            write!(f, " WINDOW {}", self.windows)?;
        }
        Ok(())
    }
}

impl Display for SelectItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            SelectItem::Star(None) => f.write_str("*"),
            SelectItem::Star(Some(table)) => write!(f, "{table}.*"),
            SelectItem::Expr { expr, alias, .. } => {
                write!(f, "{expr}")?;
                match alias {
                    Some(alias) => write!(f, " AS {}", Alias(alias)),
                    None => Ok(()),
                }
            }
        }
    }
}

/// A select item's alias, which may be empty and is then a string.
struct Alias<'a>(&'a str);

impl Display for Alias<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() || self.0.contains('\0') {
            write!(f, "{}", Text(self.0))
        } else {
            write!(f, "{}", Id(self.0))
        }
    }
}

impl Display for TableRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TableRef::Table(table) => write!(f, "{table}"),
            TableRef::Derived { lateral, query, alias, columns } => {
                if *lateral {
                    f.write_str("LATERAL ")?;
                }
                write!(f, "({query}) AS {}", Id(alias))?;
                if !columns.is_empty() {
                    f.write_str(" (")?;
                    names(f, columns)?;
                    f.write_str(")")?;
                }
                Ok(())
            }
            TableRef::Join(join) => write!(f, "{join}"),
            TableRef::Nested(tables) => {
                f.write_str("(")?;
                list(f, tables, ", ")?;
                f.write_str(")")
            }
        }
    }
}

impl Display for TableFactor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        partitions(f, &self.partitions)?;
        if let Some(alias) = &self.alias {
            write!(f, " AS {}", Id(alias))?;
        }
        for hint in &self.hints {
            write!(f, " {hint}")?;
        }
        Ok(())
    }
}

impl Display for IndexHint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            IndexHintKind::Use => "USE INDEX",
            IndexHintKind::Force => "FORCE INDEX",
            IndexHintKind::Ignore => "IGNORE INDEX",
        })?;
        f.write_str(match self.scope {
            IndexHintScope::All => "",
            IndexHintScope::Join => " FOR JOIN",
            IndexHintScope::OrderBy => " FOR ORDER BY",
            IndexHintScope::GroupBy => " FOR GROUP BY",
        })?;
        f.write_str(" (")?;
        names(f, &self.indexes)?;
        f.write_str(")")
    }
}

impl Display for Join {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.left)?;
        if self.on == JoinOn::Natural {
            f.write_str("NATURAL ")?;
        }
        f.write_str(match self.kind {
            JoinKind::Inner => "JOIN ",
            JoinKind::Left => "LEFT JOIN ",
            JoinKind::Right => "RIGHT JOIN ",
            JoinKind::Straight => "STRAIGHT_JOIN ",
        })?;
        if matches!(self.right, TableRef::Join(_)) {
            write!(f, "({})", self.right)?;
        } else {
            write!(f, "{}", self.right)?;
        }
        match &self.on {
            JoinOn::None | JoinOn::Natural => Ok(()),
            JoinOn::On(condition) => write!(f, " ON {condition}"),
            JoinOn::Using(columns) => {
                f.write_str(" USING (")?;
                names(f, columns)?;
                f.write_str(")")
            }
        }
    }
}

impl Display for Locking {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.exclusive { "FOR UPDATE" } else { "FOR SHARE" })?;
        if !self.of.is_empty() {
            f.write_str(" OF ")?;
            list(f, &self.of, ", ")?;
        }
        f.write_str(match self.wait {
            LockWait::Wait => "",
            LockWait::NoWait => " NOWAIT",
            LockWait::SkipLocked => " SKIP LOCKED",
        })
    }
}

impl Display for Into {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Into::Vars(vars) => {
                f.write_str("INTO ")?;
                for (i, var) in vars.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{}", Var(var))?;
                }
                Ok(())
            }
            Into::Outfile(file, options) => {
                write!(f, "INTO OUTFILE {}", Text(file))?;
                flag(f, !options.is_empty(), options)
            }
            Into::Dumpfile(file) => write!(f, "INTO DUMPFILE {}", Text(file)),
        }
    }
}

impl Display for Assignment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.column, self.value)
    }
}

impl Display for Insert {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.replace { "REPLACE" } else { "INSERT" })?;
        f.write_str(match self.priority {
            Priority::Normal => "",
            Priority::Low => " LOW_PRIORITY",
            Priority::High => " HIGH_PRIORITY",
            Priority::Delayed => " DELAYED",
        })?;
        flag(f, self.ignore, "IGNORE")?;
        write!(f, " INTO {}", self.table)?;
        partitions(f, &self.partitions)?;
        if let Some(columns) = &self.columns {
            f.write_str(" (")?;
            list(f, columns, ", ")?;
            f.write_str(")")?;
        }
        match &self.source {
            InsertSource::Values(rows) => {
                f.write_str(" VALUES ")?;
                for (i, values) in rows.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    row(f, values)?;
                }
            }
            InsertSource::Query(query) => write!(f, " {query}")?,
        }
        if let Some((alias, columns)) = &self.row_alias {
            write!(f, " AS {}", Id(alias))?;
            if !columns.is_empty() {
                f.write_str("(")?;
                names(f, columns)?;
                f.write_str(")")?;
            }
        }
        if !self.on_duplicate.is_empty() {
            f.write_str(" ON DUPLICATE KEY UPDATE ")?;
            list(f, &self.on_duplicate, ", ")?;
        }
        Ok(())
    }
}

fn with(f: &mut Formatter<'_>, with: Option<&With>) -> fmt::Result {
    match with {
        Some(with) => write!(f, "{with} "),
        None => Ok(()),
    }
}

impl Display for Update {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        with(f, self.with.as_ref())?;
        f.write_str("UPDATE")?;
        flag(f, self.low_priority, "LOW_PRIORITY")?;
        flag(f, self.ignore, "IGNORE")?;
        f.write_str(" ")?;
        list(f, &self.tables, ", ")?;
        f.write_str(" SET ")?;
        list(f, &self.set, ", ")?;
        filter(f, "WHERE", self.filter.as_ref())?;
        order_limit(f, &self.order, self.limit.as_ref())
    }
}

impl Display for Delete {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        with(f, self.with.as_ref())?;
        f.write_str("DELETE")?;
        flag(f, self.low_priority, "LOW_PRIORITY")?;
        flag(f, self.quick, "QUICK")?;
        flag(f, self.ignore, "IGNORE")?;
        match &self.target {
            DeleteTarget::Single(table) => write!(f, " FROM {table}")?,
            DeleteTarget::Multi { targets, tables } => {
                f.write_str(" ")?;
                list(f, targets, ", ")?;
                f.write_str(" FROM ")?;
                list(f, tables, ", ")?;
            }
        }
        filter(f, "WHERE", self.filter.as_ref())?;
        order_limit(f, &self.order, self.limit.as_ref())
    }
}
