//! Protocol constants: the numbers of MySQL's client/server protocol under their own names.
//!
//! Bits are kept as plain integers in small newtypes because that is what travels; enums are closed where the
//! protocol's list is closed.

/// Defines a set of bits with named members.
macro_rules! bits {
    ($(#[$meta:meta])* $name:ident($int:ty) { $($(#[$bit_meta:meta])* $bit:ident = $value:expr;)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
        pub struct $name(pub $int);

        impl $name {
            $($(#[$bit_meta])* pub const $bit: Self = Self($value);)*

            /// True when every bit of `other` is set.
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Both sets together.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// This set with `other` added when `on`, and unchanged otherwise.
            #[must_use]
            pub const fn with_if(self, on: bool, other: Self) -> Self {
                if on { self.with(other) } else { self }
            }

            /// This set without the bits of `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }
    };
}

bits! {
    /// What client and server agree to do (capability flags).
    Capabilities(u32) {
        /// The old "long password" bit; always set by MySQL servers.
        LONG_PASSWORD = 1;
        /// Affected rows of an UPDATE count the rows found, not the rows changed.
        FOUND_ROWS = 1 << 1;
        /// Column flags have two bytes.
        LONG_FLAG = 1 << 2;
        /// The login packet may name a database.
        CONNECT_WITH_DB = 1 << 3;
        /// zlib compression of the stream; refused.
        COMPRESS = 1 << 5;
        /// LOAD DATA LOCAL; refused.
        LOCAL_FILES = 1 << 7;
        /// Spaces before `(` are ignored.
        IGNORE_SPACE = 1 << 8;
        /// The 4.1 protocol: the only one spoken here.
        PROTOCOL_41 = 1 << 9;
        /// The client is a person at a terminal: `interactive_timeout` applies.
        INTERACTIVE = 1 << 10;
        /// The client wants TLS.
        SSL = 1 << 11;
        /// Status flags carry transaction state.
        TRANSACTIONS = 1 << 13;
        /// The 4.1 login response; set by every server that speaks it.
        SECURE_CONNECTION = 1 << 15;
        /// Several statements in one COM_QUERY.
        MULTI_STATEMENTS = 1 << 16;
        /// Several results of one COM_QUERY.
        MULTI_RESULTS = 1 << 17;
        /// Several results of one COM_STMT_EXECUTE.
        PS_MULTI_RESULTS = 1 << 18;
        /// Login plugins have names.
        PLUGIN_AUTH = 1 << 19;
        /// The login packet carries key-value attributes.
        CONNECT_ATTRS = 1 << 20;
        /// The login response is length-encoded.
        PLUGIN_AUTH_LENENC_CLIENT_DATA = 1 << 21;
        /// OK packets carry changes of session state; not offered.
        SESSION_TRACK = 1 << 23;
        /// Results end with an OK packet instead of EOF packets.
        DEPRECATE_EOF = 1 << 24;
    }
}

bits! {
    /// The state of the session that every OK and EOF packet reports.
    StatusFlags(u16) {
        /// A transaction is open.
        IN_TRANS = 1;
        /// Autocommit is on.
        AUTOCOMMIT = 2;
        /// Another result follows this one.
        MORE_RESULTS_EXISTS = 8;
        /// No index could be used.
        NO_INDEX_USED = 0x20;
        /// A cursor has been opened.
        CURSOR_EXISTS = 0x40;
        /// The cursor has no more rows.
        LAST_ROW_SENT = 0x80;
        /// A database was dropped.
        DB_DROPPED = 0x100;
        /// Backslash is not an escape character.
        NO_BACKSLASH_ESCAPES = 0x200;
        /// The open transaction is read-only.
        IN_TRANS_READONLY = 0x2000;
    }
}

bits! {
    /// What is known about a column of a result.
    ColumnFlags(u16) {
        /// NULL cannot occur.
        NOT_NULL = 1;
        /// Part of the primary key.
        PRI_KEY = 2;
        /// Part of a unique key.
        UNIQUE_KEY = 4;
        /// Part of a key that is not unique.
        MULTIPLE_KEY = 8;
        /// A BLOB or TEXT.
        BLOB = 16;
        /// An integer without sign.
        UNSIGNED = 32;
        /// ZEROFILL was given.
        ZEROFILL = 64;
        /// Binary collation.
        BINARY = 128;
        /// An ENUM.
        ENUM = 256;
        /// AUTO_INCREMENT.
        AUTO_INCREMENT = 512;
        /// A TIMESTAMP.
        TIMESTAMP = 1024;
        /// A SET.
        SET = 2048;
        /// No default value.
        NO_DEFAULT_VALUE = 4096;
        /// Set to the time of an UPDATE.
        ON_UPDATE_NOW = 8192;
        /// A number.
        NUM = 32768;
    }
}

/// The type of a column or parameter as the protocol numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ColumnType {
    /// DECIMAL of old servers; only accepted as a parameter type.
    Decimal = 0,
    /// TINYINT.
    Tiny = 1,
    /// SMALLINT.
    Short = 2,
    /// INT.
    Long = 3,
    /// FLOAT.
    Float = 4,
    /// DOUBLE.
    Double = 5,
    /// The NULL literal.
    Null = 6,
    /// TIMESTAMP.
    Timestamp = 7,
    /// BIGINT.
    LongLong = 8,
    /// MEDIUMINT.
    Int24 = 9,
    /// DATE.
    Date = 10,
    /// TIME.
    Time = 11,
    /// DATETIME.
    DateTime = 12,
    /// YEAR.
    Year = 13,
    /// VARCHAR in some clients' parameters.
    VarChar = 15,
    /// BIT.
    Bit = 16,
    /// JSON.
    Json = 245,
    /// DECIMAL.
    NewDecimal = 246,
    /// ENUM.
    Enum = 247,
    /// SET.
    Set = 248,
    /// TINYBLOB, TINYTEXT.
    TinyBlob = 249,
    /// MEDIUMBLOB, MEDIUMTEXT.
    MediumBlob = 250,
    /// LONGBLOB, LONGTEXT.
    LongBlob = 251,
    /// BLOB, TEXT.
    Blob = 252,
    /// VARCHAR, VARBINARY.
    VarString = 253,
    /// CHAR, BINARY.
    String = 254,
    /// GEOMETRY.
    Geometry = 255,
}

impl ColumnType {
    /// The type with this number, if there is one.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Decimal,
            1 => Self::Tiny,
            2 => Self::Short,
            3 => Self::Long,
            4 => Self::Float,
            5 => Self::Double,
            6 => Self::Null,
            7 => Self::Timestamp,
            8 => Self::LongLong,
            9 => Self::Int24,
            10 => Self::Date,
            11 => Self::Time,
            12 => Self::DateTime,
            13 => Self::Year,
            15 => Self::VarChar,
            16 => Self::Bit,
            245 => Self::Json,
            246 => Self::NewDecimal,
            247 => Self::Enum,
            248 => Self::Set,
            249 => Self::TinyBlob,
            250 => Self::MediumBlob,
            251 => Self::LongBlob,
            252 => Self::Blob,
            253 => Self::VarString,
            254 => Self::String,
            255 => Self::Geometry,
            _ => return None,
        })
    }
}

/// The collation number of `utf8mb4_0900_ai_ci`, the server's default.
pub const COLLATION_UTF8MB4_0900_AI_CI: u16 = 255;
/// The collation number of `binary`.
pub const COLLATION_BINARY: u16 = 63;
