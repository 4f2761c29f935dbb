//! The operator's client: a connect string, one server of it, questions and answers.

use super::link::MgmLink;
use signals::ErrorCode;
use signals::control::Refusal;
use signals::ids::NodeId;
use signals::mgm::{MgmAnswer, MgmConf, MgmHelloConf, MgmReq};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Port of a server when the connect string names none.
const DEFAULT_PORT: u16 = 1186;
/// Most servers in a connect string.
const SERVERS_MAX: usize = 16;
/// Longest wait for an answer; a SHUTDOWN waits for all data nodes.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// What went wrong on the way to, from or at the management server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MgmError {
    /// The code, whose class tells whether trying again may help.
    pub code: ErrorCode,
    /// The particular cause, and what to do.
    pub detail: String,
}

impl MgmError {
    /// An error with its particular cause.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> MgmError {
        MgmError { code, detail: detail.into() }
    }

    /// May the server be there a moment later?
    pub fn is_link_trouble(&self) -> bool {
        matches!(self.code, ErrorCode::MGM_UNREACHABLE | ErrorCode::MGM_LINK_LOST | ErrorCode::MGM_NO_ANSWER)
    }
}

impl fmt::Display for MgmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (error {}: {})", self.detail, self.code.0, self.code.message())
    }
}

impl std::error::Error for MgmError {}

impl From<Refusal> for MgmError {
    fn from(refusal: Refusal) -> MgmError {
        MgmError { code: refusal.code, detail: refusal.detail }
    }
}

impl From<MgmError> for Refusal {
    fn from(error: MgmError) -> Refusal {
        Refusal { code: error.code, detail: error.detail }
    }
}

/// Where management servers are: `[nodeid=N,]host[:port][,host[:port]...]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectString {
    /// The node id asked for, if any.
    pub node_id: Option<NodeId>,
    /// Hosts and ports, in order of preference.
    pub servers: Vec<(String, u16)>,
}

impl ConnectString {
    /// Reads a connect string.
    pub fn parse(text: &str) -> Result<ConnectString, MgmError> {
        let bad = |why: String| {
            let detail =
                format!("connect string {text:?}: {why}; the form is [nodeid=N,]host[:port][,host[:port]]");
            MgmError::new(ErrorCode::MGM_SYNTAX, detail)
        };
        let mut parsed = ConnectString { node_id: None, servers: Vec::new() };
        for part in text.split([',', ';']).map(str::trim).filter(|p| !p.is_empty()) {
            if let Some((key, value)) = part.split_once('=') {
                if !key.trim().eq_ignore_ascii_case("nodeid") {
                    return Err(bad(format!("unknown word {key}")));
                }
                let id = value.trim().parse::<u8>().ok().filter(|id| *id > 0);
                parsed.node_id =
                    Some(NodeId(id.ok_or_else(|| bad(format!("{value} is no node id from 1 to 255")))?));
                continue;
            }
            parsed.servers.push(host_port(part).ok_or_else(|| bad(format!("{part} is no host[:port]")))?);
        }
        if parsed.servers.is_empty() {
            parsed.servers.push(("localhost".to_owned(), DEFAULT_PORT));
        }
        if parsed.servers.len() > SERVERS_MAX {
            return Err(bad(format!("more than {SERVERS_MAX} servers")));
        }
        Ok(parsed)
    }
}

impl fmt::Display for ConnectString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |(host, port): &(String, u16)| {
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
        };
        f.write_str(&self.servers.iter().map(show).collect::<Vec<_>>().join(","))
    }
}

/// Splits `host`, `host:port`, `[v6]`, `[v6]:port`.
fn host_port(text: &str) -> Option<(String, u16)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        let port = match after.strip_prefix(':') {
            Some(port) => port.parse().ok()?,
            None if after.is_empty() => DEFAULT_PORT,
            None => return None,
        };
        return (!host.is_empty()).then(|| (host.to_owned(), port));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (text, DEFAULT_PORT),
    };
    let is_host = !host.is_empty() && !host.contains(char::is_whitespace) && port > 0;
    is_host.then(|| (host.to_owned(), port))
}

/// All addresses of a host, IPv4 first: hosts without IPv6 are ordinary.
pub(super) async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, MgmError> {
    let found = tokio::net::lookup_host((host, port)).await.map_err(|e| {
        MgmError::new(ErrorCode::MGM_UNREACHABLE, format!("{host}:{port}: the host name has no address: {e}"))
    })?;
    let mut addresses: Vec<SocketAddr> = found.take(16).collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    Ok(addresses)
}

/// Connects to the first server that answers; the error lists what was tried.
pub(super) async fn connect_any(
    servers: &ConnectString,
    program: &str,
) -> Result<(MgmLink, MgmHelloConf), MgmError> {
    let mut reasons = Vec::new();
    for (host, port) in &servers.servers {
        let addresses = match resolve(host, *port).await {
            Ok(addresses) => addresses,
            Err(error) => {
                reasons.push(error.detail);
                continue;
            }
        };
        for address in addresses {
            match MgmLink::connect(address, program).await {
                Ok(connected) => return Ok(connected),
                // A server that is there and refuses speaks for all of them.
                Err(error) if !error.is_link_trouble() => return Err(error),
                Err(error) => reasons.push(error.detail),
            }
        }
    }
    let detail = format!(
        "no management server can be reached ({}); is nucdb-mgmd running, and is UDP open?",
        reasons.join("; ")
    );
    Err(MgmError::new(ErrorCode::MGM_UNREACHABLE, detail))
}

/// A client of one management server.
#[derive(Debug, Clone)]
pub struct MgmClient {
    link: MgmLink,
    server: MgmHelloConf,
}

impl MgmClient {
    /// Connects to the first server of the connect string that answers.
    pub async fn connect(connect_string: &str, program: &str) -> Result<MgmClient, MgmError> {
        let servers = ConnectString::parse(connect_string)?;
        let (link, server) = connect_any(&servers, program).await?;
        Ok(MgmClient { link, server })
    }

    /// What the server said of itself.
    pub fn server(&self) -> &MgmHelloConf {
        &self.server
    }

    /// The server's address.
    pub fn address(&self) -> SocketAddr {
        self.link.peer()
    }

    /// The link below, for who wants to know when it is gone.
    pub fn link(&self) -> &MgmLink {
        &self.link
    }

    /// Asks; a refusal is an error.
    pub async fn request(&self, request: &MgmReq) -> Result<MgmConf, MgmError> {
        let answer: MgmAnswer = self.link.ask(request, ANSWER_TIMEOUT).await?;
        answer.map_err(MgmError::from)
    }

    /// Ends the link and waits until the server has been told.
    pub async fn close(&self) {
        self.link.close_and_wait("client done").await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_strings() {
        let good = |text: &str| ConnectString::parse(text).unwrap();
        assert_eq!(good("").servers, [("localhost".to_owned(), 1186)]);
        assert_eq!(good("nodeid=4, a:1187,b").node_id, Some(NodeId(4)));
        assert_eq!(good("nodeid=4, a:1187,b").to_string(), "a:1187,b:1186");
        assert_eq!(good("[::1]:7,[fe80::1]").to_string(), "[::1]:7,[fe80::1]:1186");
        for bad in
            ["a:b", "a:0", "a:70000", "nodeid=0,a", "nodeid=x", "foo=1", "[::1", ":5", "a b:1", "[::1]x"]
        {
            assert_eq!(ConnectString::parse(bad).unwrap_err().code, ErrorCode::MGM_SYNTAX, "{bad}");
        }
        assert!(ConnectString::parse(&"a,".repeat(17)).is_err());
    }
}
