//! Commands: what a client asks for after login, parsed from one packet into a closed enum.
//!
//! Parsing borrows from the packet and checks everything it reads. The arguments of COM_STMT_EXECUTE need the
//! statement's parameter count, so they stay raw here and [`super::params`] reads them.

use super::error::ProtocolError;
use super::wire::Reader;

/// One command packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'a> {
    /// The client says goodbye; no answer.
    Quit,
    /// USE through the protocol.
    InitDb(&'a [u8]),
    /// A statement as text.
    Query(&'a [u8]),
    /// The columns of a table (deprecated, but the command-line client asks).
    FieldList {
        /// The table.
        table: &'a [u8],
        /// A LIKE pattern of column names; empty for all.
        wildcard: &'a [u8],
    },
    /// One line of figures.
    Statistics,
    /// The process list.
    ProcessInfo,
    /// Ends another connection.
    ProcessKill(u32),
    /// Asks the server to write debug information to its log.
    Debug,
    /// Asks for an OK.
    Ping,
    /// Logs in anew on the same connection.
    ChangeUser(&'a [u8]),
    /// Clears the session without a new login.
    ResetConnection,
    /// Switches multi-statements on (0) or off (1).
    SetOption(u16),
    /// Prepares a statement.
    StmtPrepare(&'a [u8]),
    /// Executes a prepared statement.
    StmtExecute {
        /// The statement.
        id: u32,
        /// The cursor the client would like.
        cursor: u8,
        /// Null bitmap, types and values.
        parameters: &'a [u8],
    },
    /// Appends to a parameter; no answer.
    StmtSendLongData {
        /// The statement.
        id: u32,
        /// The parameter's position.
        parameter: u16,
        /// The bytes.
        data: &'a [u8],
    },
    /// Forgets a prepared statement; no answer.
    StmtClose(u32),
    /// Forgets a prepared statement's long data.
    StmtReset(u32),
    /// Rows from a cursor.
    StmtFetch {
        /// The statement.
        id: u32,
        /// How many rows.
        rows: u32,
    },
}

impl<'a> Command<'a> {
    /// Reads a command packet.
    pub fn parse(packet: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut r = Reader::new(packet);
        let code = r.u8("the command byte")?;
        Ok(match code {
            0x01 => Self::Quit,
            0x02 => Self::InitDb(r.take_rest()),
            0x03 => Self::Query(r.take_rest()),
            0x04 => Self::FieldList { table: r.null_or_end_terminated(), wildcard: r.take_rest() },
            0x09 => Self::Statistics,
            0x0a => Self::ProcessInfo,
            0x0c => Self::ProcessKill(r.u32("the connection id")?),
            0x0d => Self::Debug,
            0x0e => Self::Ping,
            0x11 => Self::ChangeUser(r.take_rest()),
            0x16 => Self::StmtPrepare(r.take_rest()),
            0x17 => {
                let id = r.u32("the statement id")?;
                let cursor = r.u8("the cursor flags")?;
                // The iteration count is always one; some clients send garbage there, nobody reads it.
                r.u32("the iteration count")?;
                Self::StmtExecute { id, cursor, parameters: r.take_rest() }
            }
            0x18 => Self::StmtSendLongData {
                id: r.u32("the statement id")?,
                parameter: r.u16("the parameter number")?,
                data: r.take_rest(),
            },
            0x19 => Self::StmtClose(r.u32("the statement id")?),
            0x1a => Self::StmtReset(r.u32("the statement id")?),
            0x1b => Self::SetOption(r.u16("the option")?),
            0x1c => Self::StmtFetch { id: r.u32("the statement id")?, rows: r.u32("the row count")? },
            0x1f => Self::ResetConnection,
            other => return Err(ProtocolError::UnknownCommand(other)),
        })
    }

    /// The command's name as PROCESSLIST shows it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Quit => "Quit",
            Self::InitDb(_) => "Init DB",
            Self::Query(_) => "Query",
            Self::FieldList { .. } => "Field List",
            Self::Statistics => "Statistics",
            Self::ProcessInfo => "Processlist",
            Self::ProcessKill(_) => "Kill",
            Self::Debug => "Debug",
            Self::Ping => "Ping",
            Self::ChangeUser(_) => "Change user",
            Self::ResetConnection => "Reset Connection",
            Self::SetOption(_) => "Set option",
            Self::StmtPrepare(_) => "Prepare",
            Self::StmtExecute { .. } => "Execute",
            Self::StmtSendLongData { .. } => "Long Data",
            Self::StmtClose(_) => "Close stmt",
            Self::StmtReset(_) => "Reset stmt",
            Self::StmtFetch { .. } => "Fetch",
        }
    }

    /// True for commands that are never answered, not even with an error.
    pub fn is_silent(code: u8) -> bool {
        matches!(code, 0x01 | 0x18 | 0x19)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_their_arguments() {
        assert_eq!(Command::parse(b"\x03select 1"), Ok(Command::Query(b"select 1")));
        assert_eq!(Command::parse(b"\x02db"), Ok(Command::InitDb(b"db")));
        assert_eq!(Command::parse(b"\x04t\0a%"), Ok(Command::FieldList { table: b"t", wildcard: b"a%" }));
        assert_eq!(
            Command::parse(b"\x17\x01\0\0\0\0\x01\0\0\0xyz"),
            Ok(Command::StmtExecute { id: 1, cursor: 0, parameters: b"xyz" })
        );
        assert_eq!(
            Command::parse(b"\x18\x01\0\0\0\x02\0xyz"),
            Ok(Command::StmtSendLongData { id: 1, parameter: 2, data: b"xyz" })
        );
    }

    #[test]
    fn every_first_byte_and_every_cut_answers_a_value() {
        for code in 0..=255_u8 {
            for length in 0..16 {
                let mut packet = vec![code];
                packet.extend(std::iter::repeat_n(0xfe, length));
                let _ = Command::parse(&packet);
            }
        }
        assert_eq!(Command::parse(b"\x99"), Err(ProtocolError::UnknownCommand(0x99)));
        assert_eq!(Command::parse(b"").unwrap_err().code(), 1835);
        assert_eq!(Command::parse(b"\x0c\x01").unwrap_err().code(), 1835);
    }
}
