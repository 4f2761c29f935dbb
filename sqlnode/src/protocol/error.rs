//! Protocol errors: what can be wrong with the bytes of a client, as values.
//!
//! A broken frame or a broken login ends the connection; a broken command is answered with an ERR packet
//! and the connection lives. Which of the two applies is decided by [`ProtocolError::is_fatal`], in one
//! place.

use std::fmt;

use crate::error::MySqlError;

/// Something a client sent that this side cannot accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProtocolError {
    /// The packet ended inside a field.
    Truncated {
        /// The field that was being read.
        what: &'static str,
    },
    /// A length-encoded integer with a reserved marker, or one that no packet can hold.
    BadLength {
        /// The field that was being read.
        what: &'static str,
    },
    /// A frame arrived with the wrong sequence number.
    OutOfOrder {
        /// The number that was due.
        expected: u8,
        /// The number that came.
        got: u8,
    },
    /// A packet is larger than `max_allowed_packet` (or than the smaller limit before login).
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The login packet makes no sense or asks for something this server does not do.
    BadHandshake {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The first byte of a command packet is not a command.
    UnknownCommand(u8),
    /// The arguments of a known command make no sense.
    BadArguments {
        /// The command.
        command: &'static str,
        /// What is wrong.
        reason: &'static str,
    },
    /// A prepared statement that does not exist in this session.
    UnknownStatement {
        /// The id the client used.
        id: u32,
        /// The command it was used in.
        command: &'static str,
    },
    /// FETCH for a statement that has no cursor.
    NoCursor {
        /// The statement.
        id: u32,
    },
}

impl ProtocolError {
    /// True when the two sides no longer agree where a packet begins, so that the connection must end.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::OutOfOrder { .. } | Self::BadHandshake { .. })
    }

    /// The MySQL error number.
    pub fn code(&self) -> u16 {
        match self {
            Self::Truncated { .. } | Self::BadLength { .. } | Self::BadArguments { .. } => 1835,
            Self::OutOfOrder { .. } => 1156,
            Self::TooLarge { .. } => 1153,
            Self::BadHandshake { .. } => 1043,
            Self::UnknownCommand(_) => 1047,
            Self::UnknownStatement { .. } => 1243,
            Self::NoCursor { .. } => 1421,
        }
    }

    /// The SQLSTATE that goes with [`Self::code`].
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Truncated { .. }
            | Self::BadLength { .. }
            | Self::BadArguments { .. }
            | Self::UnknownStatement { .. }
            | Self::NoCursor { .. } => "HY000",
            Self::OutOfOrder { .. }
            | Self::TooLarge { .. }
            | Self::BadHandshake { .. }
            | Self::UnknownCommand(_) => "08S01",
        }
    }
}

impl From<ProtocolError> for MySqlError {
    fn from(error: ProtocolError) -> Self {
        Self { code: error.code(), sqlstate: error.sqlstate(), message: error.to_string().into() }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { what } => write!(f, "Malformed communication packet: it ends inside {what}"),
            Self::BadLength { what } => write!(f, "Malformed communication packet: bad length of {what}"),
            Self::OutOfOrder { expected, got } => {
                write!(f, "Got packets out of order: sequence number {got} where {expected} was due")
            }
            Self::TooLarge { limit } => {
                write!(f, "Got a packet bigger than 'max_allowed_packet' bytes ({limit})")
            }
            Self::BadHandshake { reason } => write!(f, "Bad handshake: {reason}"),
            Self::UnknownCommand(_) => write!(f, "Unknown command"),
            Self::BadArguments { command, reason } => {
                write!(f, "Malformed communication packet: {command}: {reason}")
            }
            Self::NoCursor { id } => write!(f, "The statement ({id}) has no open cursor."),
            Self::UnknownStatement { id, command } => {
                write!(f, "Unknown prepared statement handler ({id}) given to {command}")
            }
        }
    }
}

impl std::error::Error for ProtocolError {}
