//! Column types and column definitions.

use super::ast::{
    CheckDef, ColumnDef, ColumnDefault, ColumnFormat, Expr, Generated, IntSize, LobSize, Name, Storage,
    TypeKind, TypeName, UnOp,
};
use super::cursor::{Parser, R};
use super::keyword::Kw;
use super::lexer::T;

impl Parser<'_> {
    /// A type with its character attributes.
    pub(super) fn type_name(&mut self) -> R<TypeName> {
        let mut charset = None;
        let kind = match self.tok.kw {
            Kw::CHAR
            | Kw::CHARACTER
            | Kw::VARCHAR
            | Kw::VARCHARACTER
            | Kw::NCHAR
            | Kw::NVARCHAR
            | Kw::NATIONAL => self.char_type(&mut charset)?,
            kw => match simple_type(kw) {
                Some(kind) => {
                    self.bump();
                    kind
                }
                None => self.sized_type(kw)?,
            },
        };
        let mut ty = TypeName { kind, charset, collate: None, binary: false };
        self.char_attributes(&mut ty)?;
        Ok(ty)
    }

    fn char_type(&mut self, charset: &mut Option<Name>) -> R<TypeKind> {
        let mut first = self.bump().kw;
        if matches!(first, Kw::NCHAR | Kw::NVARCHAR | Kw::NATIONAL) {
            *charset = Some("utf8mb3".into());
            if first == Kw::NATIONAL {
                first = self.expect_any(&[Kw::CHAR, Kw::CHARACTER, Kw::VARCHAR, Kw::VARCHARACTER])?;
            } else if first == Kw::NCHAR && self.at(Kw::VARCHAR) {
                first = self.bump().kw;
            }
        }
        let fixed = matches!(first, Kw::CHAR | Kw::CHARACTER | Kw::NCHAR) && !self.eat(Kw::VARYING);
        if fixed {
            Ok(TypeKind::Char(self.opt_size()?))
        } else {
            Ok(TypeKind::VarChar(self.parens(Self::size)?))
        }
    }

    /// Types with a length, a sign or a list.
    fn sized_type(&mut self, kw: Kw) -> R<TypeKind> {
        if let Some(size) = int_size(kw) {
            self.bump();
            let width = self.opt_size()?;
            let (unsigned, zerofill) = self.number_attributes();
            return Ok(TypeKind::Int { size, width, unsigned, zerofill });
        }
        match kw {
            Kw::DECIMAL | Kw::DEC | Kw::NUMERIC | Kw::FIXED => {
                self.bump();
                let (precision, scale) = self.precision_scale()?;
                let (unsigned, zerofill) = self.number_attributes();
                Ok(TypeKind::Decimal { precision, scale, unsigned, zerofill })
            }
            Kw::FLOAT | Kw::FLOAT4 | Kw::DOUBLE | Kw::REAL | Kw::FLOAT8 => self.float_type(kw),
            Kw::LONG => {
                self.bump();
                if self.eat(Kw::VARBINARY) {
                    return Ok(TypeKind::Blob(LobSize::Medium, None));
                }
                if self.eat_any(&[Kw::CHAR, Kw::CHARACTER]).is_some() {
                    self.expect(Kw::VARYING)?;
                } else {
                    let _ = self.eat_any(&[Kw::VARCHAR, Kw::VARCHARACTER]);
                }
                Ok(TypeKind::Text(LobSize::Medium, None))
            }
            Kw::ENUM | Kw::SET => {
                self.bump();
                let values = self.parens(|p| p.list(|p| Ok(p.string_bytes()?.into())))?;
                Ok(if kw == Kw::ENUM { TypeKind::Enum(values) } else { TypeKind::Set(values) })
            }
            Kw::BIT
            | Kw::BINARY
            | Kw::TIME
            | Kw::DATETIME
            | Kw::TIMESTAMP
            | Kw::YEAR
            | Kw::TEXT
            | Kw::BLOB => {
                self.bump();
                let size = self.opt_size()?;
                Ok(match kw {
                    Kw::BIT => TypeKind::Bit(size),
                    Kw::BINARY => TypeKind::Binary(size),
                    Kw::TIME => TypeKind::Time(size),
                    Kw::DATETIME => TypeKind::DateTime(size),
                    Kw::TIMESTAMP => TypeKind::Timestamp(size),
                    Kw::TEXT => TypeKind::Text(LobSize::Normal, size),
                    Kw::BLOB => TypeKind::Blob(LobSize::Normal, size),
                    _ => TypeKind::Year,
                })
            }
            Kw::VARBINARY => {
                self.bump();
                Ok(TypeKind::VarBinary(self.parens(Self::size)?))
            }
            _ => self.fail(),
        }
    }

    fn float_type(&mut self, kw: Kw) -> R<TypeKind> {
        self.bump();
        let mut double = matches!(kw, Kw::DOUBLE | Kw::REAL | Kw::FLOAT8);
        if kw == Kw::DOUBLE {
            let _ = self.eat(Kw::PRECISION);
        }
        let mut size = None;
        if self.eat_t(T::LParen) {
            let first = self.size()?;
            if self.eat_t(T::Comma) {
                size = Some((first, self.size()?));
            } else if double {
                return self.fail();
            } else {
                // FLOAT(p): only the number of bits matters, and it chooses the type.
                double = first > 24;
            }
            self.expect_t(T::RParen)?;
        }
        let (unsigned, zerofill) = self.number_attributes();
        Ok(if double {
            TypeKind::Double { size, unsigned, zerofill }
        } else {
            TypeKind::Float { size, unsigned, zerofill }
        })
    }

    /// `(n)`, or nothing.
    fn opt_size(&mut self) -> R<Option<u32>> {
        if self.at_t(T::LParen) { self.parens(Self::size).map(Some) } else { Ok(None) }
    }

    /// `(m [, d])`, or nothing.
    pub(super) fn precision_scale(&mut self) -> R<(Option<u32>, Option<u32>)> {
        if !self.eat_t(T::LParen) {
            return Ok((None, None));
        }
        let precision = self.size()?;
        let scale = if self.eat_t(T::Comma) { Some(self.size()?) } else { None };
        self.expect_t(T::RParen)?;
        Ok((Some(precision), scale))
    }

    /// UNSIGNED, SIGNED, ZEROFILL in any order: (unsigned, zerofill).
    fn number_attributes(&mut self) -> (bool, bool) {
        let (mut unsigned, mut zerofill) = (false, false);
        while let Some(word) = self.eat_any(&[Kw::UNSIGNED, Kw::SIGNED, Kw::ZEROFILL]) {
            match word {
                Kw::UNSIGNED => unsigned = true,
                Kw::ZEROFILL => (unsigned, zerofill) = (true, true),
                _ => {}
            }
        }
        (unsigned, zerofill)
    }

    /// CHARACTER SET, BINARY, ASCII and so on after a text type.
    fn char_attributes(&mut self, ty: &mut TypeName) -> R<()> {
        let texty = matches!(
            ty.kind,
            TypeKind::Char(_)
                | TypeKind::VarChar(_)
                | TypeKind::Text(..)
                | TypeKind::Enum(_)
                | TypeKind::Set(_)
        );
        loop {
            match self.tok.kw {
                Kw::CHARACTER | Kw::CHAR | Kw::CHARSET if texty => ty.charset = Some(self.charset_clause()?),
                Kw::ASCII | Kw::UNICODE | Kw::BYTE if texty => {
                    ty.charset = Some(match self.bump().kw {
                        Kw::ASCII => "latin1".into(),
                        Kw::UNICODE => "ucs2".into(),
                        _ => "binary".into(),
                    });
                }
                Kw::BINARY if texty => {
                    self.bump();
                    ty.binary = true;
                }
                Kw::COLLATE => {
                    self.bump();
                    ty.collate = Some(self.collation_name()?);
                }
                _ => return Ok(()),
            }
        }
    }

    /// `CHARACTER SET [=] c` or `CHARSET [=] c`.
    pub(super) fn charset_clause(&mut self) -> R<Name> {
        if !self.eat(Kw::CHARSET) {
            self.expect_any(&[Kw::CHARACTER, Kw::CHAR])?;
            self.expect(Kw::SET)?;
        }
        self.eat_eq();
        self.charset_name()
    }

    /// A collation's name: a name, a string, or BINARY.
    pub(super) fn collation_name(&mut self) -> R<Name> {
        if self.at(Kw::BINARY) {
            self.bump();
            return Ok("binary".into());
        }
        self.ident_or_text()
    }

    /// A column: its name, type and attributes.
    pub(super) fn column_def(&mut self) -> R<ColumnDef> {
        let name = self.ident()?;
        // In definitions MySQL accepts `t.c` and drops the table.
        let name = if self.eat_t(T::Dot) { self.any_word()? } else { name };
        let serial = self.at(Kw::SERIAL);
        let ty = if serial {
            self.bump();
            let kind = TypeKind::Int { size: IntSize::Big, width: None, unsigned: true, zerofill: false };
            TypeName { kind, charset: None, collate: None, binary: false }
        } else {
            self.type_name()?
        };
        let mut column = ColumnDef {
            name,
            ty,
            nullable: serial.then_some(false),
            default: None,
            on_update: None,
            auto_increment: serial,
            unique: serial,
            primary: false,
            comment: None,
            column_format: None,
            storage: None,
            generated: None,
            checks: Vec::new(),
            references: None,
            visible: None,
            srid: None,
        };
        while self.column_attribute(&mut column)? {}
        Ok(column)
    }

    /// One attribute; false if there is none.
    fn column_attribute(&mut self, column: &mut ColumnDef) -> R<bool> {
        match self.tok.kw {
            Kw::NOT => {
                self.bump();
                self.expect(Kw::NULL)?;
                column.nullable = Some(false);
            }
            Kw::NULL => {
                self.bump();
                column.nullable = Some(true);
            }
            Kw::DEFAULT => {
                self.bump();
                column.default = Some(self.column_default()?);
            }
            Kw::ON => {
                self.bump();
                self.expect(Kw::UPDATE)?;
                match self.now()? {
                    Some(fsp) => column.on_update = Some(fsp),
                    None => return self.fail(),
                }
            }
            Kw::AUTO_INCREMENT => {
                self.bump();
                column.auto_increment = true;
            }
            Kw::SERIAL => {
                self.bump();
                self.expect(Kw::DEFAULT)?;
                self.expect(Kw::VALUE)?;
                column.nullable = Some(false);
                column.auto_increment = true;
                column.unique = true;
            }
            Kw::UNIQUE => {
                self.bump();
                let _ = self.eat(Kw::KEY);
                column.unique = true;
            }
            Kw::PRIMARY | Kw::KEY => {
                if self.bump().kw == Kw::PRIMARY {
                    self.expect(Kw::KEY)?;
                }
                column.primary = true;
            }
            Kw::COMMENT => {
                self.bump();
                column.comment = Some(self.string_text()?);
            }
            Kw::COLLATE => {
                self.bump();
                column.ty.collate = Some(self.collation_name()?);
            }
            _ => return self.rare_attribute(column),
        }
        Ok(true)
    }

    fn rare_attribute(&mut self, column: &mut ColumnDef) -> R<bool> {
        match self.tok.kw {
            Kw::COLUMN_FORMAT => {
                self.bump();
                column.column_format =
                    Some(match self.expect_any(&[Kw::FIXED, Kw::DYNAMIC, Kw::DEFAULT])? {
                        Kw::FIXED => ColumnFormat::Fixed,
                        Kw::DYNAMIC => ColumnFormat::Dynamic,
                        _ => ColumnFormat::Default,
                    });
            }
            Kw::STORAGE => {
                self.bump();
                column.storage = Some(self.storage()?);
            }
            Kw::GENERATED | Kw::AS => {
                if self.bump().kw == Kw::GENERATED {
                    self.expect(Kw::ALWAYS)?;
                    self.expect(Kw::AS)?;
                }
                let expr = self.parens(Self::expr)?;
                let stored = self.eat_any(&[Kw::VIRTUAL, Kw::STORED]) == Some(Kw::STORED);
                column.generated = Some(Generated { expr, stored });
            }
            Kw::CONSTRAINT | Kw::CHECK => {
                let name =
                    if self.eat(Kw::CONSTRAINT) && !self.at(Kw::CHECK) { Some(self.ident()?) } else { None };
                column.checks.push(self.check(name)?);
            }
            Kw::REFERENCES => column.references = Some(Box::new(self.reference()?)),
            Kw::VISIBLE | Kw::INVISIBLE => column.visible = Some(self.bump().kw == Kw::VISIBLE),
            Kw::SRID => {
                self.bump();
                column.srid = Some(self.uint()?);
            }
            Kw::ENGINE_ATTRIBUTE | Kw::SECONDARY_ENGINE_ATTRIBUTE => {
                self.bump();
                self.eat_eq();
                self.string_text()?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn storage(&mut self) -> R<Storage> {
        Ok(match self.expect_any(&[Kw::DISK, Kw::MEMORY, Kw::DEFAULT])? {
            Kw::DISK => Storage::Disk,
            Kw::MEMORY => Storage::Memory,
            _ => Storage::Default,
        })
    }

    /// `CHECK (expr) [[NOT] ENFORCED]`.
    pub(super) fn check(&mut self, name: Option<Name>) -> R<CheckDef> {
        self.expect(Kw::CHECK)?;
        let expr = self.parens(Self::expr)?;
        let not = self.at(Kw::NOT) && self.peek().kw == Kw::ENFORCED && self.eat(Kw::NOT);
        let _ = self.eat(Kw::ENFORCED);
        Ok(CheckDef { name, expr, enforced: !not })
    }

    /// `CURRENT_TIMESTAMP [(fsp)]` and its other names, if that is what follows.
    fn now(&mut self) -> R<Option<u32>> {
        let known = self.at_any(&[Kw::CURRENT_TIMESTAMP, Kw::LOCALTIME, Kw::LOCALTIMESTAMP])
            || (self.at(Kw::NOW) && self.peek().t == T::LParen);
        if !known {
            return Ok(None);
        }
        self.bump();
        if !self.eat_t(T::LParen) || self.eat_t(T::RParen) {
            return Ok(Some(0));
        }
        let fsp = self.size()?;
        self.expect_t(T::RParen)?;
        Ok(Some(fsp))
    }

    /// What stands after DEFAULT.
    pub(super) fn column_default(&mut self) -> R<ColumnDefault> {
        if self.at_t(T::LParen) {
            return Ok(ColumnDefault::Expr(self.parens(Self::expr)?));
        }
        if let Some(fsp) = self.now()? {
            return Ok(ColumnDefault::Now(fsp));
        }
        let sign = match self.tok.t {
            T::Minus => Some(UnOp::Neg),
            T::Plus => Some(UnOp::Plus),
            _ => None,
        };
        if let Some(sign) = sign {
            self.bump();
            if !matches!(self.tok.t, T::Int | T::Dec | T::Float) {
                return self.fail();
            }
            return Ok(ColumnDefault::Value(Expr::Unary(sign, Box::new(Expr::Lit(self.literal()?)))));
        }
        match self.expr_at(super::expr::level::ATOM)? {
            value @ Expr::Lit(_) => Ok(ColumnDefault::Value(value)),
            _ => self.fail(),
        }
    }
}

/// Types that are one word.
fn simple_type(kw: Kw) -> Option<TypeKind> {
    Some(match kw {
        Kw::BOOL | Kw::BOOLEAN => {
            TypeKind::Int { size: IntSize::Tiny, width: Some(1), unsigned: false, zerofill: false }
        }
        Kw::TINYTEXT => TypeKind::Text(LobSize::Tiny, None),
        Kw::MEDIUMTEXT => TypeKind::Text(LobSize::Medium, None),
        Kw::LONGTEXT => TypeKind::Text(LobSize::Long, None),
        Kw::TINYBLOB => TypeKind::Blob(LobSize::Tiny, None),
        Kw::MEDIUMBLOB => TypeKind::Blob(LobSize::Medium, None),
        Kw::LONGBLOB => TypeKind::Blob(LobSize::Long, None),
        Kw::DATE => TypeKind::Date,
        Kw::JSON => TypeKind::Json,
        Kw::GEOMETRY
        | Kw::POINT
        | Kw::LINESTRING
        | Kw::POLYGON
        | Kw::MULTIPOINT
        | Kw::MULTILINESTRING
        | Kw::MULTIPOLYGON
        | Kw::GEOMETRYCOLLECTION => TypeKind::Geometry(kw.name()),
        Kw::GEOMCOLLECTION => TypeKind::Geometry("GEOMETRYCOLLECTION"),
        _ => return None,
    })
}

fn int_size(kw: Kw) -> Option<IntSize> {
    Some(match kw {
        Kw::TINYINT | Kw::INT1 => IntSize::Tiny,
        Kw::SMALLINT | Kw::INT2 => IntSize::Small,
        Kw::MEDIUMINT | Kw::MIDDLEINT | Kw::INT3 => IntSize::Medium,
        Kw::INT | Kw::INTEGER | Kw::INT4 => IntSize::Int,
        Kw::BIGINT | Kw::INT8 => IntSize::Big,
        _ => return None,
    })
}
