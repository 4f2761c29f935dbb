//! The list of collations: numbers, names and what each one is made of.
//!
//! Role: a closed table. The numbers are MySQL's, because clients send them in the handshake and column
//! definitions carry them; a number that is not in the table is unknown to this release and is refused with
//! MySQL's error 1273 by whoever reads it.

use super::{Charset, PadAttribute, Scheme, tables};

/// A collation, by MySQL's number. A number this release does not know compares bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Collation(pub u16);

/// What the table knows of a collation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Info {
    id: u16,
    name: &'static str,
    charset: Charset,
    pad: PadAttribute,
    pub(super) scheme: Scheme,
}

use Charset::{Ascii, Binary, Latin1, Utf8mb3, Utf8mb4};
use PadAttribute::{NoPad, PadSpace};
use Scheme::{Bytes, General, Table, Uca};

const fn info(id: u16, name: &'static str, charset: Charset, pad: PadAttribute, scheme: Scheme) -> Info {
    Info { id, name, charset, pad, scheme }
}

/// Sorted by number.
static INFOS: &[Info] = &[
    info(8, "latin1_swedish_ci", Latin1, PadSpace, Table(&tables::LATIN1_SWEDISH)),
    info(11, "ascii_general_ci", Ascii, PadSpace, Table(&tables::ASCII_GENERAL)),
    info(33, "utf8mb3_general_ci", Utf8mb3, PadSpace, General),
    info(45, "utf8mb4_general_ci", Utf8mb4, PadSpace, General),
    info(46, "utf8mb4_bin", Utf8mb4, PadSpace, Bytes),
    info(47, "latin1_bin", Latin1, PadSpace, Bytes),
    info(63, "binary", Binary, NoPad, Bytes),
    info(65, "ascii_bin", Ascii, PadSpace, Bytes),
    info(83, "utf8mb3_bin", Utf8mb3, PadSpace, Bytes),
    info(192, "utf8mb3_unicode_ci", Utf8mb3, PadSpace, Uca),
    info(214, "utf8mb3_unicode_520_ci", Utf8mb3, PadSpace, Uca),
    info(224, "utf8mb4_unicode_ci", Utf8mb4, PadSpace, Uca),
    info(246, "utf8mb4_unicode_520_ci", Utf8mb4, PadSpace, Uca),
    info(255, "utf8mb4_0900_ai_ci", Utf8mb4, NoPad, Uca),
    info(309, "utf8mb4_0900_bin", Utf8mb4, NoPad, Bytes),
];

impl Collation {
    /// `latin1_swedish_ci`.
    pub const LATIN1_SWEDISH_CI: Collation = Collation(8);
    /// `ascii_general_ci`.
    pub const ASCII_GENERAL_CI: Collation = Collation(11);
    /// `utf8mb3_general_ci`.
    pub const UTF8MB3_GENERAL_CI: Collation = Collation(33);
    /// `utf8mb4_general_ci`.
    pub const UTF8MB4_GENERAL_CI: Collation = Collation(45);
    /// `utf8mb4_bin`.
    pub const UTF8MB4_BIN: Collation = Collation(46);
    /// `latin1_bin`.
    pub const LATIN1_BIN: Collation = Collation(47);
    /// `binary`.
    pub const BINARY: Collation = Collation(63);
    /// `ascii_bin`.
    pub const ASCII_BIN: Collation = Collation(65);
    /// `utf8mb3_bin`.
    pub const UTF8MB3_BIN: Collation = Collation(83);
    /// `utf8mb4_unicode_ci`.
    pub const UTF8MB4_UNICODE_CI: Collation = Collation(224);
    /// `utf8mb4_0900_ai_ci`, the default.
    pub const UTF8MB4_0900_AI_CI: Collation = Collation(255);
    /// `utf8mb4_0900_bin`.
    pub const UTF8MB4_0900_BIN: Collation = Collation(309);

    /// Every collation, by number.
    pub fn all() -> impl Iterator<Item = Collation> {
        INFOS.iter().map(|info| Collation(info.id))
    }

    /// The collation of a number, if this release has it.
    pub fn by_id(id: u16) -> Option<Collation> {
        let collation = Collation(id);
        collation.info().map(|_| collation)
    }

    /// The collation of a name, in any case; `utf8_...` is `utf8mb3_...`, as in MySQL 8.
    pub fn by_name(name: &str) -> Option<Collation> {
        let found = |name: &str| {
            INFOS.iter().find(|info| info.name.eq_ignore_ascii_case(name)).map(|info| Collation(info.id))
        };
        found(name).or_else(|| match name.get(..5) {
            Some(prefix) if prefix.eq_ignore_ascii_case("utf8_") => found(&format!("utf8mb3_{}", &name[5..])),
            _ => None,
        })
    }

    /// MySQL's number.
    pub const fn id(self) -> u16 {
        self.0
    }

    /// The name.
    pub fn name(self) -> &'static str {
        self.info().map_or("binary", |info| info.name)
    }

    /// The character set whose strings it orders.
    pub fn charset(self) -> Charset {
        self.info().map_or(Charset::Binary, |info| info.charset)
    }

    /// Whether trailing spaces matter.
    pub fn pad(self) -> PadAttribute {
        self.info().map_or(PadAttribute::NoPad, |info| info.pad)
    }

    /// Whether it is the one its character set uses when none is named.
    pub fn is_default(self) -> bool {
        self.charset().default_collation() == self
    }

    /// Whether it orders raw bytes that are not text.
    pub const fn is_binary(self) -> bool {
        self.0 == Collation::BINARY.0
    }

    /// The entry of the table; none for a number from a newer release.
    pub(super) fn info(self) -> Option<&'static Info> {
        INFOS.binary_search_by_key(&self.0, |info| info.id).ok().map(|at| &INFOS[at])
    }
}

impl Default for Collation {
    fn default() -> Self {
        Collation::UTF8MB4_0900_AI_CI
    }
}

impl std::fmt::Debug for Collation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::fmt::Display for Collation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
