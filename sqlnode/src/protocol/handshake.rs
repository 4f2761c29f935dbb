//! Handshake: the packets of a login, in both directions.
//!
//! The server greets with [`Greeting`] (handshake v10: version, connection id, a random scramble, what it
//! can do). The client may answer with a short packet that asks for TLS and then repeats itself inside TLS;
//! the real answer is [`HandshakeResponse`]. COM_CHANGE_USER carries the same facts in another order
//! ([`HandshakeResponse::parse_change_user`]). This file only turns bytes into values and back; who may
//! come in is decided in [`super::login`].

use super::constants::Capabilities;
use super::error::ProtocolError;
use super::wire::{Reader, put_null_terminated};

/// The length of a login scramble.
pub const SCRAMBLE_LENGTH: usize = 20;
/// More attributes than this are dropped; the rest of the login goes on.
const ATTRIBUTES_MAX: usize = 64;

/// The server's first packet.
#[derive(Debug, Clone)]
pub struct Greeting<'a> {
    /// The version text, such as `8.0.40-nucdb-0.1.0`.
    pub server_version: &'a str,
    /// The connection's number.
    pub connection_id: u32,
    /// Random bytes, none of them zero or `$`, for the client to mix into its answer.
    pub scramble: &'a [u8; SCRAMBLE_LENGTH],
    /// What the server offers.
    pub capabilities: Capabilities,
    /// The server's default collation.
    pub collation: u16,
    /// Session state at the start.
    pub status: u16,
    /// The login method the server likes best.
    pub plugin: &'a str,
}

impl Greeting<'_> {
    /// Appends the packet's payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(10);
        put_null_terminated(out, self.server_version);
        out.extend_from_slice(&self.connection_id.to_le_bytes());
        out.extend_from_slice(&self.scramble[..8]);
        out.push(0);
        let [a, b, c, d] = self.capabilities.0.to_le_bytes();
        out.extend_from_slice(&[a, b]);
        out.push(self.collation.min(255) as u8);
        out.extend_from_slice(&self.status.to_le_bytes());
        out.extend_from_slice(&[c, d]);
        out.push(SCRAMBLE_LENGTH as u8 + 1);
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(&self.scramble[8..]);
        out.push(0);
        put_null_terminated(out, self.plugin);
    }
}

/// What a client said about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HandshakeResponse {
    /// What the client can do.
    pub capabilities: Capabilities,
    /// The largest packet the client takes; informational.
    pub max_packet: u32,
    /// The collation the client wants for its connection.
    pub collation: u16,
    /// The user's name.
    pub user: String,
    /// The answer to the scramble.
    pub auth_response: Vec<u8>,
    /// The database to start in.
    pub database: Option<String>,
    /// The login method that made `auth_response`.
    pub plugin: Option<String>,
    /// Facts about the client program.
    pub attributes: Vec<(String, String)>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const fn bad(reason: &'static str) -> ProtocolError {
    ProtocolError::BadHandshake { reason }
}

/// The fixed 32 bytes at the start of both the TLS request and the full response.
fn parse_prefix(r: &mut Reader<'_>) -> Result<(Capabilities, u32, u16), ProtocolError> {
    let capabilities = Capabilities(r.u32("the capability flags")?);
    if !capabilities.has(Capabilities::PROTOCOL_41) {
        return Err(bad("the client does not speak the 4.1 protocol"));
    }
    let max_packet = r.u32("the packet size")?;
    let collation = r.u8("the collation")?;
    r.bytes(23, "the reserved bytes")?;
    Ok((capabilities, max_packet, u16::from(collation)))
}

/// If the packet is a request for TLS, its capability flags.
pub fn parse_tls_request(packet: &[u8]) -> Result<Option<Capabilities>, ProtocolError> {
    let mut r = Reader::new(packet);
    let (capabilities, _, _) = parse_prefix(&mut r)?;
    if capabilities.has(Capabilities::SSL) && r.is_empty() { Ok(Some(capabilities)) } else { Ok(None) }
}

impl HandshakeResponse {
    /// Reads the client's answer to the greeting.
    pub fn parse(packet: &[u8]) -> Result<Self, ProtocolError> {
        let mut r = Reader::new(packet);
        let (capabilities, max_packet, collation) = parse_prefix(&mut r)?;
        if capabilities.has(Capabilities::COMPRESS) {
            return Err(bad("compression is not supported"));
        }
        let mut response = Self { capabilities, max_packet, collation, ..Self::default() };
        response.user = text(r.null_terminated("the user name")?);
        response.auth_response = if capabilities.has(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            r.lenenc_bytes("the login response")?.to_vec()
        } else if capabilities.has(Capabilities::SECURE_CONNECTION) {
            let length = r.u8("the length of the login response")?;
            r.bytes(usize::from(length), "the login response")?.to_vec()
        } else {
            r.null_or_end_terminated().to_vec()
        };
        if capabilities.has(Capabilities::CONNECT_WITH_DB) && !r.is_empty() {
            response.set_database(r.null_or_end_terminated());
        }
        response.parse_tail(&mut r)?;
        Ok(response)
    }

    /// Reads the arguments of COM_CHANGE_USER, given what was agreed at login.
    pub fn parse_change_user(arguments: &[u8], agreed: Capabilities) -> Result<Self, ProtocolError> {
        let mut r = Reader::new(arguments);
        let mut response = Self { capabilities: agreed, ..Self::default() };
        response.user = text(r.null_terminated("the user name")?);
        let length = r.u8("the length of the login response")?;
        response.auth_response = r.bytes(usize::from(length), "the login response")?.to_vec();
        response.set_database(r.null_or_end_terminated());
        if !r.is_empty() {
            response.collation = r.u16("the collation")?;
        }
        response.parse_tail(&mut r)?;
        Ok(response)
    }

    fn set_database(&mut self, name: &[u8]) {
        if !name.is_empty() {
            self.database = Some(text(name));
        }
    }

    fn parse_tail(&mut self, r: &mut Reader<'_>) -> Result<(), ProtocolError> {
        if self.capabilities.has(Capabilities::PLUGIN_AUTH) && !r.is_empty() {
            self.plugin = Some(text(r.null_or_end_terminated())).filter(|name| !name.is_empty());
        }
        if self.capabilities.has(Capabilities::CONNECT_ATTRS) && !r.is_empty() {
            let mut attributes = Reader::new(r.lenenc_bytes("the connection attributes")?);
            while !attributes.is_empty() {
                let key = attributes.lenenc_bytes("an attribute name")?;
                let value = attributes.lenenc_bytes("an attribute value")?;
                if self.attributes.len() < ATTRIBUTES_MAX {
                    self.attributes.push((text(key), text(value)));
                }
            }
        }
        Ok(())
    }
}

/// Appends an AuthSwitchRequest: the client shall use `plugin` with a new scramble.
pub fn encode_auth_switch(out: &mut Vec<u8>, plugin: &str, scramble: &[u8; SCRAMBLE_LENGTH]) {
    out.push(0xfe);
    put_null_terminated(out, plugin);
    out.extend_from_slice(scramble);
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response_packet() -> Vec<u8> {
        let capabilities = Capabilities::PROTOCOL_41
            .with(Capabilities::SECURE_CONNECTION)
            .with(Capabilities::CONNECT_WITH_DB)
            .with(Capabilities::PLUGIN_AUTH)
            .with(Capabilities::CONNECT_ATTRS);
        let mut packet = capabilities.0.to_le_bytes().to_vec();
        packet.extend_from_slice(&(1_u32 << 24).to_le_bytes());
        packet.push(45);
        packet.extend_from_slice(&[0; 23]);
        packet.extend_from_slice(b"root\0\x03abcshop\0mysql_native_password\0");
        packet.extend_from_slice(b"\x0a\x03_os\x05Linux");
        packet
    }

    #[test]
    fn a_full_response_is_read_field_by_field() {
        let response = HandshakeResponse::parse(&response_packet()).unwrap();
        assert_eq!(response.user, "root");
        assert_eq!(response.auth_response, b"abc");
        assert_eq!(response.database.as_deref(), Some("shop"));
        assert_eq!(response.plugin.as_deref(), Some("mysql_native_password"));
        assert_eq!(response.attributes, vec![("_os".to_owned(), "Linux".to_owned())]);
        assert_eq!(response.collation, 45);
    }

    #[test]
    fn every_truncation_is_an_error_or_a_shorter_login() {
        let packet = response_packet();
        for cut in 0..packet.len() {
            if let Ok(response) = HandshakeResponse::parse(&packet[..cut]) {
                assert_eq!(response.user, "root", "cut at {cut}");
            } else {
                assert!(cut < packet.len());
            }
        }
    }

    #[test]
    fn old_protocols_and_compression_are_refused_by_name() {
        let error = HandshakeResponse::parse(&[0; 40]).unwrap_err();
        assert!(error.to_string().contains("4.1"), "{error}");
        let mut packet = response_packet();
        packet[0] |= 1 << 5;
        let error = HandshakeResponse::parse(&packet).unwrap_err();
        assert!(error.to_string().contains("compression"), "{error}");
    }

    #[test]
    fn change_user_is_read() {
        let agreed = Capabilities::PLUGIN_AUTH.with(Capabilities::SECURE_CONNECTION);
        let r = HandshakeResponse::parse_change_user(b"u\0\x02xydb\0\x2d\0mysql_native_password\0", agreed)
            .unwrap();
        assert_eq!((r.user.as_str(), r.database.as_deref(), r.collation), ("u", Some("db"), 45));
        assert_eq!(r.plugin.as_deref(), Some("mysql_native_password"));
        assert!(HandshakeResponse::parse_change_user(b"u", agreed).is_err());
        assert!(HandshakeResponse::parse_change_user(b"u\0\xffxy", agreed).is_err());
    }
}
