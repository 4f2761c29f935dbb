//! Building a table's meaning from its CREATE TABLE statement, with every check MySQL makes and some of our
//! own.

use signals::table::MAX_ROW_BYTES;

use super::types::{not_yet, sql_type};
use super::{ColumnDefault, ColumnMeta, HIDDEN_KEY, KeyMeta, TableMeta};
use crate::parser::ast::{self, CreateTable, Expr, KeyKind, KeyPart, Lit, TableOption, UnOp};
use crate::parser::{NdbTableOptions, ndb_table_options};
use crate::value::{
    Charset, Collation, Decimal, ErrorCode, IntSize, MySqlError, Result, SqlType, Text, Value, Warnings,
    number,
};

/// The longest name of a table or column in characters.
const NAME_CHARS_MAX: usize = 64;

/// Checks a name.
///
/// # Errors
/// 1059, or `wrong` for a name that is empty or ends with a space.
pub fn check_name(name: &str, wrong: ErrorCode) -> Result<()> {
    if name.chars().count() > NAME_CHARS_MAX {
        return Err(MySqlError::with(ErrorCode::TooLongIdent, &[&name]));
    }
    if name.is_empty() || name.ends_with(' ') || name.contains(['\0', '/']) {
        return Err(MySqlError::with(wrong, &[&name]));
    }
    Ok(())
}

struct Options {
    collation: Collation,
    comment: String,
    first_auto_increment: u64,
    ndb: NdbTableOptions,
}

fn options(create: &CreateTable, warnings: &mut Warnings) -> Result<Options> {
    let mut found = Options {
        collation: Collation::UTF8MB4_0900_AI_CI,
        comment: String::new(),
        first_auto_increment: 1,
        ndb: NdbTableOptions::default(),
    };
    for option in &create.options {
        match option {
            TableOption::Engine(name) => check_engine(name, create, warnings)?,
            TableOption::Comment(text) => {
                found.ndb =
                    ndb_table_options(text).map_err(|e| MySqlError::text(ErrorCode::WrongArguments, e))?;
                found.comment = text.to_string();
            }
            TableOption::Charset(name) => {
                let charset = Charset::by_name(name);
                let unknown = || MySqlError::with(ErrorCode::UnknownCharacterSet, &[name]);
                found.collation = charset.ok_or_else(unknown)?.default_collation();
            }
            TableOption::Collate(name) => {
                let unknown = || MySqlError::with(ErrorCode::UnknownCollation, &[name]);
                found.collation = Collation::by_name(name).ok_or_else(unknown)?;
            }
            TableOption::AutoIncrement(first) => found.first_auto_increment = (*first).max(1),
            TableOption::Storage(ast::Storage::Disk) => return Err(not_yet("STORAGE DISK")),
            TableOption::RowFormat(_)
            | TableOption::MaxRows(_)
            | TableOption::MinRows(_)
            | TableOption::AvgRowLength(_)
            | TableOption::Tablespace(_)
            | TableOption::Storage(_)
            | TableOption::Other(..) => {}
        }
    }
    Ok(found)
}

/// Every table is kept by the cluster; other engines of MySQL are replaced with a note, unknown ones refused.
fn check_engine(name: &str, create: &CreateTable, warnings: &mut Warnings) -> Result<()> {
    match name.to_ascii_lowercase().as_str() {
        "ndb" | "ndbcluster" => Ok(()),
        "innodb" | "myisam" | "memory" | "heap" | "aria" => {
            let table = &create.name.name;
            warnings.warn(MySqlError::with(ErrorCode::WarnUsingOtherHandler, &[&"ndbcluster", table]));
            Ok(())
        }
        _ => Err(MySqlError::with(ErrorCode::UnknownStorageEngine, &[&name])),
    }
}

impl TableMeta {
    /// What a CREATE TABLE statement means.
    ///
    /// # Errors
    /// Whatever is wrong with it, or not supported.
    pub fn build(create: &CreateTable, schema: &str, warnings: &mut Warnings) -> Result<TableMeta> {
        check_name(&create.name.name, ErrorCode::WrongTableName)?;
        if create.temporary {
            return Err(not_yet("TEMPORARY tables"));
        }
        if create.columns.is_empty() {
            return Err(MySqlError::new(ErrorCode::TableMustHaveColumns));
        }
        if !create.foreign_keys.is_empty() {
            return Err(not_yet("FOREIGN KEY"));
        }
        if create.partition.is_some() {
            return Err(not_yet("PARTITION BY"));
        }
        if !create.checks.is_empty() {
            return Err(not_yet("CHECK constraints"));
        }
        let options = options(create, warnings)?;
        let mut columns: Vec<ColumnMeta> = Vec::with_capacity(create.columns.len() + 1);
        for column in &create.columns {
            if columns.iter().any(|c| c.name.eq_ignore_ascii_case(&column.name)) {
                return Err(MySqlError::with(ErrorCode::DupFieldname, &[&column.name]));
            }
            columns.push(build_column(column, options.collation)?);
        }
        let mut meta = TableMeta {
            schema: schema.to_owned(),
            name: create.name.name.to_string(),
            columns,
            primary_key: Vec::new(),
            keys: Vec::new(),
            collation: options.collation,
            comment: options.comment,
            first_auto_increment: options.first_auto_increment,
            ndb: options.ndb,
            handle: None,
        };
        meta.add_keys(create, warnings)?;
        meta.finish()?;
        Ok(meta)
    }

    fn add_keys(&mut self, create: &CreateTable, warnings: &mut Warnings) -> Result<()> {
        for (i, column) in create.columns.iter().enumerate() {
            if column.unique {
                return Err(not_yet("UNIQUE keys other than PRIMARY KEY"));
            }
            if column.primary {
                self.set_primary(vec![i as u16])?;
            }
        }
        for key in &create.keys {
            let columns = self.key_columns(&key.parts)?;
            match key.kind {
                KeyKind::Primary => self.set_primary(columns)?,
                KeyKind::Unique => return Err(not_yet("UNIQUE keys other than PRIMARY KEY")),
                KeyKind::Fulltext => return Err(MySqlError::new(ErrorCode::TableCantHandleFt)),
                KeyKind::Spatial => return Err(not_yet("SPATIAL keys")),
                KeyKind::Index => {
                    let first = columns.first().map_or("", |&c| &self.columns[usize::from(c)].name);
                    let name = key.name.as_deref().unwrap_or(first).to_owned();
                    if self.keys.iter().any(|k| k.name.eq_ignore_ascii_case(&name)) {
                        return Err(MySqlError::with(ErrorCode::DupKeyname, &[&name]));
                    }
                    let text = format!(
                        "Key '{name}' is recorded; statements that use it are answered by a scan for now"
                    );
                    warnings.warn(MySqlError::text(ErrorCode::NotSupportedYet, text));
                    self.keys.push(KeyMeta { name, columns });
                }
            }
        }
        Ok(())
    }

    /// The columns of a key's parts.
    ///
    /// # Errors
    /// A column that does not exist or stands twice, or a kind of part that is not supported.
    pub fn key_columns(&self, parts: &[KeyPart]) -> Result<Vec<u16>> {
        let mut columns = Vec::new();
        for part in parts {
            let KeyPart::Column { name, prefix, .. } = part else {
                return Err(not_yet("functional key parts"));
            };
            if prefix.is_some() {
                return Err(not_yet("prefix keys"));
            }
            let missing = || MySqlError::with(ErrorCode::KeyColumnDoesNotExist, &[name]);
            let column = self.column(name).ok_or_else(missing)?;
            if columns.contains(&column) {
                return Err(MySqlError::with(ErrorCode::DupFieldname, &[name]));
            }
            columns.push(column);
        }
        Ok(columns)
    }

    fn set_primary(&mut self, columns: Vec<u16>) -> Result<()> {
        if !self.primary_key.is_empty() {
            return Err(MySqlError::new(ErrorCode::MultiplePriKey));
        }
        for &i in &columns {
            let column = &mut self.columns[usize::from(i)];
            if column.ty.is_lob() {
                return Err(MySqlError::with(ErrorCode::BlobUsedAsKey, &[&column.name]));
            }
            column.nullable = false;
        }
        self.primary_key = columns;
        Ok(())
    }

    /// Checks that need all columns and keys, and the hidden key for tables that have none.
    fn finish(&mut self) -> Result<()> {
        let counting: Vec<usize> =
            (0..self.columns.len()).filter(|&i| self.columns[i].auto_increment).collect();
        match counting[..] {
            [] => {}
            [one] if self.primary_key.first() == Some(&(one as u16)) => {}
            [one] if self.keys.iter().any(|k| k.columns.first() == Some(&(one as u16))) => {}
            _ => return Err(MySqlError::new(ErrorCode::WrongAutoKey)),
        }
        // TEXT and BLOB take what a row has left, so only the others are promised their full length.
        let promised = self.columns.iter().filter(|c| !c.ty.is_lob()).map(|c| c.ty.storage_bytes_max());
        if promised.fold(0, u64::saturating_add) > MAX_ROW_BYTES as u64 {
            return Err(MySqlError::with(ErrorCode::TooBigRowsize, &[&MAX_ROW_BYTES]));
        }
        if self.primary_key.is_empty() {
            if !counting.is_empty() {
                return Err(not_yet("AUTO_INCREMENT in a table without PRIMARY KEY"));
            }
            self.primary_key = vec![self.columns.len() as u16];
            self.columns.push(ColumnMeta {
                name: HIDDEN_KEY.to_owned(),
                ty: SqlType::unsigned(IntSize::Big),
                nullable: false,
                default: ColumnDefault::None,
                on_update_now: false,
                auto_increment: false,
                hidden: true,
                comment: String::new(),
            });
        }
        Ok(())
    }
}

fn build_column(column: &ast::ColumnDef, collation: Collation) -> Result<ColumnMeta> {
    check_name(&column.name, ErrorCode::WrongColumnName)?;
    if column.generated.is_some() {
        return Err(not_yet("generated columns"));
    }
    if !column.checks.is_empty() {
        return Err(not_yet("CHECK constraints"));
    }
    if column.storage == Some(ast::Storage::Disk) {
        return Err(not_yet("STORAGE DISK"));
    }
    let ty = sql_type(&column.ty, collation, &column.name)?;
    let mut nullable = column.nullable.unwrap_or(!column.primary);
    if column.auto_increment {
        if !ty.is_integer() {
            return Err(MySqlError::with(ErrorCode::WrongFieldSpec, &[&column.name]));
        }
        nullable = false;
    }
    let invalid = || MySqlError::with(ErrorCode::InvalidDefault, &[&column.name]);
    let default = match &column.default {
        None => ColumnDefault::None,
        Some(_) if column.auto_increment => return Err(invalid()),
        Some(ast::ColumnDefault::Now(fsp)) => ColumnDefault::Now { fsp: (*fsp).min(6) as u8 },
        Some(ast::ColumnDefault::Value(expr)) => match constant(expr).ok_or_else(invalid)? {
            Value::Null if !nullable => return Err(invalid()),
            Value::Null => ColumnDefault::None,
            _ if ty.is_lob() => {
                return Err(MySqlError::with(ErrorCode::BlobCantHaveDefault, &[&column.name]));
            }
            value => ColumnDefault::Value(value),
        },
        Some(ast::ColumnDefault::Expr(_)) => return Err(not_yet("expressions as DEFAULT")),
    };
    Ok(ColumnMeta {
        name: column.name.to_string(),
        ty,
        nullable,
        default,
        on_update_now: column.on_update.is_some(),
        auto_increment: column.auto_increment,
        hidden: false,
        comment: column.comment.as_deref().unwrap_or_default().to_owned(),
    })
}

/// The value of a literal, with its sign if any.
pub fn constant(expr: &Expr) -> Option<Value> {
    Some(match expr {
        Expr::Lit(lit) => literal(lit)?,
        Expr::Unary(UnOp::Plus, inner) => constant(inner)?,
        Expr::Unary(UnOp::Neg, inner) => match constant(inner)? {
            Value::Int(n) => Value::Int(n.checked_neg()?),
            Value::UInt(n) => Value::Decimal(Decimal::from(n).neg()),
            Value::Decimal(n) => Value::Decimal(n.neg()),
            Value::Double(n) => Value::Double(-n),
            _ => return None,
        },
        _ => return None,
    })
}

/// The value of a literal.
pub fn literal(lit: &Lit) -> Option<Value> {
    Some(match lit {
        Lit::Null => Value::Null,
        Lit::Bool(b) => Value::from_bool(*b),
        Lit::Int(n) => i64::try_from(*n).map_or(Value::UInt(*n), Value::Int),
        Lit::Dec(text) => Value::Decimal(Decimal::parse(text.as_bytes())?.value),
        Lit::Float(text) => Value::Double(number::parse_f64(text.as_bytes()).value),
        Lit::Str(bytes) => Value::Text(Text::new(bytes, Collation::UTF8MB4_0900_AI_CI)),
        Lit::IntroStr(charset, bytes) => {
            Value::Text(Text::new(bytes, Charset::by_name(charset)?.default_collation()))
        }
        Lit::Hex(_, bytes) | Lit::Bit(_, bytes) => Value::bytes(bytes),
        Lit::Date(text) | Lit::Time(text) | Lit::Timestamp(text) => temporal_literal(lit, text)?,
    })
}

fn temporal_literal(lit: &Lit, text: &str) -> Option<Value> {
    use crate::value::temporal::{DateRules, parse_date, parse_datetime, parse_time};
    let rules = DateRules::from_mode(crate::value::SqlMode::EMPTY);
    Some(match lit {
        Lit::Date(_) => Value::Date(parse_date(text, rules)?.value),
        Lit::Time(_) => Value::Time(parse_time(text)?.value),
        _ => Value::DateTime(parse_datetime(text, rules)?.value),
    })
}
