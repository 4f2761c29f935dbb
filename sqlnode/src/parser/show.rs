//! SHOW in its many forms.

use super::ast::{Name, Show, ShowFilter, Stmt, TableName, UserName, VarScope};
use super::cursor::{Parser, R};
use super::keyword::Kw;
use super::lexer::T;

impl Parser<'_> {
    /// SHOW.
    pub(super) fn show(&mut self) -> R<Stmt> {
        self.expect(Kw::SHOW)?;
        Ok(Stmt::Show(Box::new(self.show_what()?)))
    }

    fn show_what(&mut self) -> R<Show> {
        let kw = self.tok.kw;
        match kw {
            Kw::DATABASES | Kw::SCHEMAS => {
                self.bump();
                Ok(Show::Databases(self.show_filter()?))
            }
            Kw::FULL | Kw::EXTENDED | Kw::TABLES | Kw::COLUMNS | Kw::FIELDS | Kw::PROCESSLIST => {
                self.show_full()
            }
            Kw::INDEX | Kw::INDEXES | Kw::KEYS => self.show_index(),
            Kw::CREATE => {
                self.bump();
                self.show_create()
            }
            Kw::TABLE | Kw::OPEN | Kw::TRIGGERS | Kw::EVENTS => self.show_of_database(kw),
            Kw::WARNINGS | Kw::ERRORS => {
                self.bump();
                let limit = self.limit()?;
                Ok(if kw == Kw::WARNINGS { Show::Warnings(limit) } else { Show::Errors(limit) })
            }
            Kw::COUNT => {
                self.bump();
                self.expect_t(T::LParen)?;
                self.expect_t(T::Star)?;
                self.expect_t(T::RParen)?;
                let warnings = self.expect_any(&[Kw::WARNINGS, Kw::ERRORS])? == Kw::WARNINGS;
                Ok(if warnings { Show::CountWarnings } else { Show::CountErrors })
            }
            Kw::GLOBAL | Kw::SESSION | Kw::LOCAL | Kw::VARIABLES | Kw::STATUS => self.show_variables(),
            Kw::STORAGE | Kw::ENGINES => {
                let _ = self.eat(Kw::STORAGE);
                self.expect(Kw::ENGINES)?;
                Ok(Show::Engines)
            }
            Kw::CHARACTER | Kw::CHARSET | Kw::COLLATION => {
                self.bump();
                if kw == Kw::CHARACTER {
                    self.expect(Kw::SET)?;
                }
                let filter = self.show_filter()?;
                Ok(if kw == Kw::COLLATION { Show::Collation(filter) } else { Show::Charset(filter) })
            }
            _ => self.show_server(kw),
        }
    }

    /// SHOW about the server itself.
    fn show_server(&mut self, kw: Kw) -> R<Show> {
        match kw {
            Kw::ENGINE => {
                self.bump();
                let engine = if self.at(Kw::ALL) { self.any_word()? } else { self.ident_or_text()? };
                let what = self.expect_any(&[Kw::STATUS, Kw::MUTEX, Kw::LOGS])?;
                Ok(Show::Engine(engine, what.name()))
            }
            Kw::GRANTS => {
                self.bump();
                let user = if self.eat(Kw::FOR) { Some(self.user_name()?) } else { None };
                if self.eat(Kw::USING) {
                    self.list(Self::user_name)?;
                }
                Ok(Show::Grants(user))
            }
            Kw::PRIVILEGES => {
                self.bump();
                Ok(Show::Privileges)
            }
            Kw::PLUGINS => {
                self.bump();
                Ok(Show::Plugins)
            }
            Kw::PROCEDURE | Kw::FUNCTION => {
                self.bump();
                if self.eat(Kw::CODE) {
                    let name = self.rest();
                    return Ok(Show::Other(format!("{} CODE {name}", kw.name()).into()));
                }
                self.expect(Kw::STATUS)?;
                Ok(Show::Routines(kw == Kw::PROCEDURE, self.show_filter()?))
            }
            _ => self.show_replication(),
        }
    }

    fn show_replication(&mut self) -> R<Show> {
        let word = self.text(self.tok).to_ascii_uppercase();
        let next = self.peek().kw;
        let show = match (word.as_slice(), next) {
            (b"MASTER", Kw::STATUS) => Show::MasterStatus,
            (b"REPLICA" | b"SLAVE", Kw::STATUS) => Show::ReplicaStatus,
            (b"SLAVE", Kw::HOSTS) => Show::Replicas,
            (b"BINARY" | b"MASTER", Kw::LOGS) => Show::BinaryLogs,
            (b"REPLICAS", _) => {
                self.bump();
                return Ok(Show::Replicas);
            }
            (b"BINARY", _) if self.eat_binary_log_status() => return Ok(Show::MasterStatus),
            (b"BINLOG" | b"RELAYLOG" | b"PROFILE" | b"PROFILES", _) => return Ok(Show::Other(self.rest())),
            _ => return self.fail(),
        };
        self.bump();
        self.bump();
        if matches!(show, Show::ReplicaStatus) && self.eat(Kw::FOR) {
            self.rest();
        }
        Ok(show)
    }

    /// `BINARY LOG STATUS`; LOG is no keyword.
    fn eat_binary_log_status(&mut self) -> bool {
        let mut lex = self.lex;
        let (log, status) = (lex.next(), lex.next());
        let hit = self.text(log).eq_ignore_ascii_case(b"LOG") && status.kw == Kw::STATUS;
        if hit {
            self.bump();
            self.bump();
            self.bump();
        }
        hit
    }

    fn show_full(&mut self) -> R<Show> {
        let _ = self.eat(Kw::EXTENDED);
        let full = self.eat(Kw::FULL);
        match self.expect_any(&[Kw::TABLES, Kw::COLUMNS, Kw::FIELDS, Kw::PROCESSLIST])? {
            Kw::TABLES => {
                let db = self.show_database()?;
                Ok(Show::Tables { full, db, filter: self.show_filter()? })
            }
            Kw::PROCESSLIST => Ok(Show::Processlist { full }),
            _ => {
                let table = self.show_table()?;
                Ok(Show::Columns { full, table, filter: self.show_filter()? })
            }
        }
    }

    fn show_index(&mut self) -> R<Show> {
        self.bump();
        let table = self.show_table()?;
        Ok(Show::Index { table, filter: self.show_filter()? })
    }

    /// `FROM t [FROM db]`.
    fn show_table(&mut self) -> R<TableName> {
        self.expect_any(&[Kw::FROM, Kw::IN])?;
        let mut table = self.table_name()?;
        if let Some(db) = self.show_database()? {
            table.db = Some(db);
        }
        Ok(table)
    }

    /// `FROM db`, or nothing.
    fn show_database(&mut self) -> R<Option<Name>> {
        if self.eat_any(&[Kw::FROM, Kw::IN]).is_some() { self.ident().map(Some) } else { Ok(None) }
    }

    fn show_filter(&mut self) -> R<ShowFilter> {
        if self.eat(Kw::LIKE) {
            return Ok(ShowFilter::Like(self.string_text()?));
        }
        if self.eat(Kw::WHERE) {
            return Ok(ShowFilter::Where(self.expr()?));
        }
        Ok(ShowFilter::None)
    }

    /// SHOW TABLE STATUS, OPEN TABLES, TRIGGERS, EVENTS.
    fn show_of_database(&mut self, kw: Kw) -> R<Show> {
        self.bump();
        match kw {
            Kw::TABLE => self.expect(Kw::STATUS)?,
            Kw::OPEN => self.expect(Kw::TABLES)?,
            _ => {}
        }
        let db = self.show_database()?;
        let filter = self.show_filter()?;
        Ok(match kw {
            Kw::TABLE => Show::TableStatus { db, filter },
            Kw::OPEN => Show::OpenTables { db, filter },
            Kw::TRIGGERS => Show::Triggers { db, filter },
            _ => Show::Events { db, filter },
        })
    }

    fn show_variables(&mut self) -> R<Show> {
        let scope = match self.eat_any(&[Kw::GLOBAL, Kw::SESSION, Kw::LOCAL]) {
            Some(Kw::GLOBAL) => VarScope::Global,
            Some(_) => VarScope::Session,
            None => VarScope::None,
        };
        let variables = self.expect_any(&[Kw::VARIABLES, Kw::STATUS])? == Kw::VARIABLES;
        let filter = self.show_filter()?;
        Ok(if variables { Show::Variables(scope, filter) } else { Show::Status(scope, filter) })
    }

    fn show_create(&mut self) -> R<Show> {
        let kw = self.tok.kw;
        match kw {
            Kw::TABLE | Kw::VIEW => {
                self.bump();
                let name = self.table_name()?;
                Ok(if kw == Kw::TABLE { Show::CreateTable(name) } else { Show::CreateView(name) })
            }
            Kw::DATABASE | Kw::SCHEMA => {
                self.bump();
                let if_not_exists = self.if_not_exists();
                Ok(Show::CreateDatabase { if_not_exists, name: self.ident()? })
            }
            Kw::USER => {
                self.bump();
                let user = if self.at_end() { UserName::Current } else { self.user_name()? };
                Ok(Show::CreateUser(user))
            }
            Kw::PROCEDURE | Kw::FUNCTION | Kw::TRIGGER | Kw::EVENT => {
                let rest = self.rest();
                Ok(Show::Other(format!("CREATE {rest}").into()))
            }
            _ => self.fail(),
        }
    }
}
