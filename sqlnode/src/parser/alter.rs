//! ALTER TABLE, and PARTITION BY which it shares with CREATE TABLE.

use super::ast::{
    AlterSpec, AlterTable, ColumnPosition, Expr, Lit, Name, PartitionBy, PartitionDef, PartitionMethod,
    PartitionValues, Stmt, TableOption,
};
use super::cursor::{Parser, R};
use super::ddl::Constraint;
use super::keyword::Kw;
use super::lexer::T;

impl Parser<'_> {
    /// ALTER anything.
    pub(super) fn alter(&mut self) -> R<Stmt> {
        let start = self.tok.start;
        self.expect(Kw::ALTER)?;
        match self.tok.kw {
            Kw::TABLE => {
                self.bump();
                self.alter_table()
            }
            Kw::DATABASE | Kw::SCHEMA => {
                self.bump();
                self.alter_database()
            }
            Kw::USER => self.user_statement(true),
            Kw::VIEW
            | Kw::PROCEDURE
            | Kw::FUNCTION
            | Kw::EVENT
            | Kw::TABLESPACE
            | Kw::LOGFILE
            | Kw::SERVER
            | Kw::INSTANCE
            | Kw::RESOURCE => {
                let what = format!("ALTER {}", self.tok.kw.name());
                Ok(self.unsupported(what, start))
            }
            _ => self.fail(),
        }
    }

    fn alter_table(&mut self) -> R<Stmt> {
        let name = self.table_name()?;
        let mut specs = Vec::new();
        while !self.at_end() {
            if self.at(Kw::PARTITION) {
                specs.push(AlterSpec::PartitionBy(self.partition_by()?));
            } else {
                self.alter_spec(&mut specs)?;
            }
            // PARTITION BY and further table options follow without a comma.
            if !self.eat_t(T::Comma)
                && !self.at(Kw::PARTITION)
                && !matches!(specs.last(), Some(AlterSpec::Option(_)))
            {
                break;
            }
        }
        Ok(Stmt::AlterTable(Box::new(AlterTable { name, specs })))
    }

    fn alter_spec(&mut self, specs: &mut Vec<AlterSpec>) -> R<()> {
        let spec = match self.tok.kw {
            Kw::ADD => {
                self.bump();
                self.alter_add(specs)?
            }
            Kw::DROP => {
                self.bump();
                self.alter_drop()?
            }
            Kw::ALTER => {
                self.bump();
                self.alter_alter()?
            }
            Kw::MODIFY => {
                self.bump();
                let _ = self.eat(Kw::COLUMN);
                let column = Box::new(self.column_def()?);
                AlterSpec::ModifyColumn(column, self.column_position()?)
            }
            Kw::CHANGE => {
                self.bump();
                let _ = self.eat(Kw::COLUMN);
                let old = self.ident()?;
                let column = Box::new(self.column_def()?);
                AlterSpec::ChangeColumn(old, column, self.column_position()?)
            }
            Kw::RENAME => {
                self.bump();
                self.alter_rename()?
            }
            Kw::CONVERT => {
                self.bump();
                self.expect(Kw::TO)?;
                let charset = self.charset_clause()?;
                let collate = if self.eat(Kw::COLLATE) { Some(self.collation_name()?) } else { None };
                AlterSpec::ConvertCharset(charset, collate)
            }
            Kw::ORDER => {
                self.bump();
                self.expect(Kw::BY)?;
                AlterSpec::OrderBy(self.order_list()?)
            }
            Kw::FORCE => {
                self.bump();
                AlterSpec::Force
            }
            Kw::ENABLE | Kw::DISABLE => {
                let enable = self.bump().kw == Kw::ENABLE;
                self.expect(Kw::KEYS)?;
                AlterSpec::EnableKeys(enable)
            }
            Kw::WITH | Kw::WITHOUT => {
                let with = self.bump().kw == Kw::WITH;
                self.expect(Kw::VALIDATION)?;
                AlterSpec::Validation(with)
            }
            _ => return self.alter_other(specs),
        };
        specs.push(spec);
        Ok(())
    }

    /// Partition management, ALGORITHM and LOCK, and table options.
    fn alter_other(&mut self, specs: &mut Vec<AlterSpec>) -> R<()> {
        let kw = self.tok.kw;
        if matches!(kw, Kw::ALGORITHM | Kw::LOCK) {
            specs.extend(self.online_options()?);
            return Ok(());
        }
        if matches!(kw, Kw::DISCARD | Kw::IMPORT) {
            self.bump();
            self.expect(Kw::TABLESPACE)?;
            specs.push(AlterSpec::Tablespace(kw == Kw::IMPORT));
            return Ok(());
        }
        if kw == Kw::REMOVE {
            self.bump();
            self.expect(Kw::PARTITIONING)?;
            specs.push(AlterSpec::RemovePartitioning);
            return Ok(());
        }
        if self.peek().kw == Kw::PARTITION
            && let Some(spec) = self.alter_partitions(kw)?
        {
            specs.push(spec);
            return Ok(());
        }
        match self.table_option()? {
            Some(option) => specs.push(AlterSpec::Option(option)),
            None => return self.fail(),
        }
        Ok(())
    }

    fn alter_partitions(&mut self, kw: Kw) -> R<Option<AlterSpec>> {
        let verb = match kw {
            Kw::ANALYZE | Kw::CHECK | Kw::OPTIMIZE | Kw::REBUILD | Kw::REPAIR => kw.name(),
            Kw::TRUNCATE | Kw::COALESCE | Kw::REORGANIZE => "",
            _ => return Ok(None),
        };
        self.bump();
        self.bump();
        let _ = self.eat_any(&[Kw::NO_WRITE_TO_BINLOG, Kw::LOCAL]);
        if kw == Kw::COALESCE {
            return Ok(Some(AlterSpec::CoalescePartition(self.uint()?)));
        }
        if kw == Kw::REORGANIZE {
            if !self.at_ident() {
                return Ok(Some(AlterSpec::ReorganizePartition(Vec::new(), Vec::new())));
            }
            let names = self.list(Self::ident)?;
            self.expect(Kw::INTO)?;
            return Ok(Some(AlterSpec::ReorganizePartition(names, self.partition_defs()?)));
        }
        let names = if self.eat(Kw::ALL) { Vec::new() } else { self.list(Self::ident)? };
        if kw == Kw::TRUNCATE {
            return Ok(Some(AlterSpec::TruncatePartition(names)));
        }
        Ok(Some(AlterSpec::PartitionAdmin(verb, names)))
    }

    fn alter_add(&mut self, specs: &mut Vec<AlterSpec>) -> R<AlterSpec> {
        if self.eat(Kw::PARTITION) {
            let _ = self.eat_any(&[Kw::NO_WRITE_TO_BINLOG, Kw::LOCAL]);
            if self.eat(Kw::PARTITIONS) {
                return Ok(AlterSpec::AddPartitions(self.uint()?));
            }
            return Ok(AlterSpec::AddPartition(self.partition_defs()?));
        }
        match self.constraint()? {
            Some(Constraint::Key(key)) => return Ok(AlterSpec::AddKey(key)),
            Some(Constraint::Foreign(key)) => return Ok(AlterSpec::AddForeignKey(key)),
            Some(Constraint::Check(check)) => return Ok(AlterSpec::AddCheck(check)),
            None => {}
        }
        let _ = self.eat(Kw::COLUMN);
        if !self.at_t(T::LParen) {
            let column = self.column_def()?;
            return Ok(AlterSpec::AddColumn(vec![column], self.column_position()?));
        }
        // In parentheses keys may stand among the columns.
        let mut columns = Vec::new();
        self.parens(|p| {
            p.list(|p| {
                match p.constraint()? {
                    Some(Constraint::Key(key)) => specs.push(AlterSpec::AddKey(key)),
                    Some(Constraint::Foreign(key)) => specs.push(AlterSpec::AddForeignKey(key)),
                    Some(Constraint::Check(check)) => specs.push(AlterSpec::AddCheck(check)),
                    None => columns.push(p.column_def()?),
                }
                Ok(())
            })
        })?;
        Ok(AlterSpec::AddColumn(columns, ColumnPosition::Default))
    }

    fn column_position(&mut self) -> R<ColumnPosition> {
        if self.eat(Kw::FIRST) {
            return Ok(ColumnPosition::First);
        }
        if self.eat(Kw::AFTER) {
            return Ok(ColumnPosition::After(self.ident()?));
        }
        Ok(ColumnPosition::Default)
    }

    fn alter_drop(&mut self) -> R<AlterSpec> {
        match self.tok.kw {
            Kw::PRIMARY => {
                self.bump();
                self.expect(Kw::KEY)?;
                Ok(AlterSpec::DropPrimaryKey)
            }
            Kw::INDEX | Kw::KEY => {
                self.bump();
                Ok(AlterSpec::DropKey(self.ident()?))
            }
            Kw::FOREIGN => {
                self.bump();
                self.expect(Kw::KEY)?;
                Ok(AlterSpec::DropForeignKey(self.ident()?))
            }
            Kw::CHECK | Kw::CONSTRAINT => {
                self.bump();
                Ok(AlterSpec::DropConstraint(self.ident()?))
            }
            Kw::PARTITION => {
                self.bump();
                Ok(AlterSpec::DropPartition(self.list(Self::ident)?))
            }
            _ => {
                let _ = self.eat(Kw::COLUMN);
                let name = self.ident()?;
                let _ = self.eat_any(&[Kw::RESTRICT, Kw::CASCADE]);
                Ok(AlterSpec::DropColumn(name))
            }
        }
    }

    fn alter_alter(&mut self) -> R<AlterSpec> {
        if self.eat(Kw::INDEX) {
            let name = self.ident()?;
            let visible = self.expect_any(&[Kw::VISIBLE, Kw::INVISIBLE])? == Kw::VISIBLE;
            return Ok(AlterSpec::AlterIndexVisible(name, visible));
        }
        if self.eat_any(&[Kw::CHECK, Kw::CONSTRAINT]).is_some() {
            let name = self.ident()?;
            let enforced = !self.eat(Kw::NOT);
            self.expect(Kw::ENFORCED)?;
            return Ok(AlterSpec::AlterCheck(name, enforced));
        }
        let _ = self.eat(Kw::COLUMN);
        let name = self.ident()?;
        if self.eat(Kw::DROP) {
            self.expect(Kw::DEFAULT)?;
            return Ok(AlterSpec::AlterDefault(name, None));
        }
        self.expect(Kw::SET)?;
        match self.expect_any(&[Kw::DEFAULT, Kw::VISIBLE, Kw::INVISIBLE])? {
            Kw::DEFAULT => Ok(AlterSpec::AlterDefault(name, Some(self.column_default()?))),
            word => Ok(AlterSpec::AlterVisible(name, word == Kw::VISIBLE)),
        }
    }

    fn alter_rename(&mut self) -> R<AlterSpec> {
        let pair = |p: &mut Self| -> R<(Name, Name)> {
            let from = p.ident()?;
            p.expect(Kw::TO)?;
            Ok((from, p.ident()?))
        };
        if self.eat(Kw::COLUMN) {
            let (from, to) = pair(self)?;
            return Ok(AlterSpec::RenameColumn(from, to));
        }
        if self.eat_any(&[Kw::INDEX, Kw::KEY]).is_some() {
            let (from, to) = pair(self)?;
            return Ok(AlterSpec::RenameIndex(from, to));
        }
        let _ = self.eat_any(&[Kw::TO, Kw::AS]).is_some() || self.eat_t(T::Eq);
        Ok(AlterSpec::Rename(self.table_name()?))
    }

    /// `ALGORITHM [=] x` and `LOCK [=] x`, any number.
    pub(super) fn online_options(&mut self) -> R<Vec<AlterSpec>> {
        let mut options = Vec::new();
        while let Some(kw) = self.eat_any(&[Kw::ALGORITHM, Kw::LOCK]) {
            self.eat_eq();
            let value = self.any_word()?.to_ascii_uppercase().into();
            options.push(if kw == Kw::ALGORITHM {
                AlterSpec::Algorithm(value)
            } else {
                AlterSpec::Lock(value)
            });
        }
        Ok(options)
    }

    /// PARTITION BY.
    pub(super) fn partition_by(&mut self) -> R<PartitionBy> {
        self.expect(Kw::PARTITION)?;
        self.expect(Kw::BY)?;
        let method = self.partition_method()?;
        let count = if self.eat(Kw::PARTITIONS) { Some(self.uint()?) } else { None };
        let mut sub = None;
        if self.eat(Kw::SUBPARTITION) {
            self.expect(Kw::BY)?;
            let method = self.partition_method()?;
            sub = Some((method, if self.eat(Kw::SUBPARTITIONS) { Some(self.uint()?) } else { None }));
        }
        let partitions = if self.at_t(T::LParen) { self.partition_defs()? } else { Vec::new() };
        Ok(PartitionBy { method, count, sub, partitions })
    }

    fn partition_method(&mut self) -> R<PartitionMethod> {
        let linear = self.eat(Kw::LINEAR);
        match self.tok.kw {
            Kw::KEY => {
                self.bump();
                let mut algorithm = None;
                if self.eat(Kw::ALGORITHM) {
                    self.eat_eq();
                    algorithm = Some(self.uint()?);
                }
                self.expect_t(T::LParen)?;
                let columns = if self.at_t(T::RParen) { Vec::new() } else { self.list(Self::ident)? };
                self.expect_t(T::RParen)?;
                Ok(PartitionMethod::Key { linear, algorithm, columns })
            }
            Kw::HASH => {
                self.bump();
                Ok(PartitionMethod::Hash { linear, expr: Box::new(self.parens(Self::expr)?) })
            }
            Kw::RANGE | Kw::LIST if !linear => {
                let range = self.bump().kw == Kw::RANGE;
                if self.eat(Kw::COLUMNS) {
                    let columns = self.ident_list()?;
                    return Ok(if range {
                        PartitionMethod::RangeColumns(columns)
                    } else {
                        PartitionMethod::ListColumns(columns)
                    });
                }
                let expr = Box::new(self.parens(Self::expr)?);
                Ok(if range { PartitionMethod::Range(expr) } else { PartitionMethod::List(expr) })
            }
            _ => self.fail(),
        }
    }

    /// `(PARTITION p0 ..., PARTITION p1 ...)`.
    fn partition_defs(&mut self) -> R<Vec<PartitionDef>> {
        self.parens(|p| p.list(Self::partition_def))
    }

    fn partition_def(&mut self) -> R<PartitionDef> {
        self.expect(Kw::PARTITION)?;
        let name = self.ident()?;
        let mut values = PartitionValues::None;
        if self.eat(Kw::VALUES) {
            values = if self.eat(Kw::IN) {
                PartitionValues::In(self.parens(|p| p.list(Self::expr))?)
            } else {
                self.expect(Kw::LESS)?;
                self.expect(Kw::THAN)?;
                if self.eat(Kw::MAXVALUE) {
                    PartitionValues::MaxValue
                } else {
                    PartitionValues::LessThan(self.parens(|p| p.list(Self::partition_bound))?)
                }
            };
        }
        let options = self.partition_options()?;
        let mut subs = Vec::new();
        if self.at_t(T::LParen) {
            subs = self.parens(|p| {
                p.list(|p| {
                    p.expect(Kw::SUBPARTITION)?;
                    let name = p.ident_or_text()?;
                    Ok((name, p.partition_options()?))
                })
            })?;
        }
        Ok(PartitionDef { name, values, options, subs })
    }

    fn partition_bound(&mut self) -> R<Expr> {
        if self.at(Kw::MAXVALUE) {
            let name = self.any_word()?.to_ascii_uppercase();
            return Ok(Expr::Col(super::ast::ColName::bare(name)));
        }
        if self.at(Kw::NULL) {
            self.bump();
            return Ok(Expr::Lit(Lit::Null));
        }
        self.expr()
    }

    /// Options of one partition; unlike a table's they are not separated by commas.
    fn partition_options(&mut self) -> R<Vec<TableOption>> {
        let mut options = Vec::new();
        while let Some(option) = self.table_option()? {
            options.push(option);
        }
        Ok(options)
    }
}
