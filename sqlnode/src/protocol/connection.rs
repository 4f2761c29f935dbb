//! Connection: one client from its greeting to its goodbye.
//!
//! States: *greeting* (the scramble is out), *TLS* (optional, the client asked), *login* (see
//! [`super::login`]), *commands* (see [`super::dispatch`]), *over*. Every state before commands shares one
//! deadline, so a client that says nothing costs a task for ten seconds and no more. An error that leaves
//! the two sides in step is answered and the connection goes on; one that does not is answered, the rest is
//! drained for a moment so that the answer arrives, and the connection ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::auth::make_scramble;
use super::constants::{COLLATION_UTF8MB4_0900_AI_CI, Capabilities};
use super::dispatch::{Commands, End, Parts};
use super::error::ProtocolError;
use super::handshake::{Greeting, HandshakeResponse, SCRAMBLE_LENGTH, parse_tls_request};
use super::login::{Login, LoginStep};
use super::processes::ProcessGuard;
use super::response::{OkPacket, encode_err, encode_ok};
use super::server::{INITIAL_STATUS, SERVER_VERSION, Shared};
use super::session::{LoginInfo, Session, SessionFactory};
use super::stream::{Input, Output, ReadError, split, start_tls};
use crate::error::{ErrorCode, MySqlError};

/// The largest packet before login: names, a password and attributes.
const LOGIN_PACKET_MAX: usize = 128 * 1024;
/// How long the rest of a client's bytes is read after a fatal error.
const DRAIN: Duration = Duration::from_millis(500);

/// Why a login did not come to its end.
enum LoginFailure {
    /// Nobody is there to be told.
    Gone,
    /// The client shall see this.
    Refused(MySqlError),
}

impl From<ReadError> for LoginFailure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Gone => Self::Gone,
            ReadError::TimedOut => Self::Refused(MySqlError::new(ErrorCode::NetReadInterrupted)),
            ReadError::Protocol(error) => Self::Refused(error.into()),
        }
    }
}

impl From<std::io::Error> for LoginFailure {
    fn from(_: std::io::Error) -> Self {
        Self::Gone
    }
}

/// Serves one client until one of the two sides ends it.
pub(super) async fn serve<F: SessionFactory>(
    shared: Arc<Shared<F>>,
    stream: TcpStream,
    peer: SocketAddr,
    guard: ProcessGuard,
) {
    let (input, output) = split(stream, LOGIN_PACKET_MAX, shared.config.net_write_timeout);
    let patience = shared.config.connect_timeout;
    let process = guard.process();
    let login = tokio::select! {
        login = timeout(patience, log_in(&shared, input, output, peer, &guard)) => login,
        _ = process.killed() => return,
    };
    let Ok(Some(mut commands)) = login else {
        tracing::debug!(%peer, "a MySQL client did not log in");
        return;
    };
    let end = commands.run().await;
    let Parts { session, mut input, mut output } = commands.into_parts();
    session.close().await;
    if let End::Error(error) = end {
        send_error(&mut output, &error, true).await;
        output.close().await;
        input.drain(DRAIN).await;
    } else {
        output.close().await;
    }
}

/// Greets a client and lets it log in; None when that failed, after the client has been told why.
async fn log_in<F: SessionFactory>(
    shared: &Arc<Shared<F>>,
    mut input: Input,
    mut output: Output,
    peer: SocketAddr,
    guard: &ProcessGuard,
) -> Option<Commands<F>> {
    let scramble = new_scramble()?;
    let offered = shared.capabilities();
    Greeting {
        server_version: SERVER_VERSION,
        connection_id: guard.process().id(),
        scramble: &scramble,
        capabilities: offered,
        collation: COLLATION_UTF8MB4_0900_AI_CI,
        status: INITIAL_STATUS.0,
        plugin: shared.config.default_authentication_plugin.name(),
    }
    .encode(output.encoder.begin());
    output.encoder.end();
    output.flush().await.ok()?;
    input.decoder().expect_sequence(1);
    let patience = shared.config.connect_timeout;
    if let Err(failure) = receive(&mut input, &mut output, patience).await {
        return refuse(&mut input, &mut output, failure, false).await;
    }
    let mut tls = false;
    if let Ok(Some(_)) = parse_tls_request(input.payload()) {
        let Some(acceptor) = shared.tls.as_ref() else {
            let error = ProtocolError::BadHandshake { reason: "TLS is not enabled on this server" };
            return refuse(&mut input, &mut output, LoginFailure::Refused(error.into()), true).await;
        };
        (input, output) = start_tls(input, output, acceptor, patience).await.ok()?;
        tls = true;
        if let Err(failure) = receive(&mut input, &mut output, patience).await {
            return refuse(&mut input, &mut output, failure, true).await;
        }
    }
    let response = match HandshakeResponse::parse(input.payload()) {
        Ok(response) => response,
        Err(error) => {
            return refuse(&mut input, &mut output, LoginFailure::Refused(error.into()), true).await;
        }
    };
    let host = peer.ip().to_canonical().to_string();
    let request = Request { response: &response, host: &host, tls, scramble, patience };
    let opened = open(shared, &mut input, &mut output, request, guard, offered).await;
    match opened {
        Ok((session, capabilities)) => {
            input.decoder().set_limit(shared.config.max_allowed_packet);
            let commands =
                Commands::new(Arc::clone(shared), session, input, output, capabilities, (host, tls), guard);
            Some(commands)
        }
        Err(failure) => refuse(&mut input, &mut output, failure, true).await,
    }
}

/// A client's wish to log in, at first or by COM_CHANGE_USER.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) response: &'a HandshakeResponse,
    pub(super) host: &'a str,
    pub(super) tls: bool,
    pub(super) scramble: [u8; SCRAMBLE_LENGTH],
    pub(super) patience: Duration,
}

/// Checks the password, opens the session, changes to the database and sends the OK.
async fn open<F: SessionFactory>(
    shared: &Arc<Shared<F>>,
    input: &mut Input,
    output: &mut Output,
    request: Request<'_>,
    guard: &ProcessGuard,
    offered: Capabilities,
) -> Result<(F::Session, Capabilities), LoginFailure> {
    authenticate(shared, input, output, request).await?;
    let response = request.response;
    let capabilities = Capabilities(response.capabilities.0 & offered.0);
    let process = guard.process();
    process.set_user(&response.user);
    let login = LoginInfo {
        user: response.user.clone(),
        host: request.host.to_owned(),
        capabilities,
        collation: response.collation,
        tls: request.tls,
        attributes: response.attributes.clone(),
        process: Arc::clone(process),
        processes: Arc::clone(&shared.processes),
    };
    let mut session = shared.factory.open(login).await.map_err(LoginFailure::Refused)?;
    if let Some(database) = &response.database {
        if let Err(error) = session.init_db(database).await {
            session.close().await;
            return Err(LoginFailure::Refused(error));
        }
        process.set_database(Some(database));
    }
    let ok = OkPacket { status: session.status(), ..OkPacket::default() };
    encode_ok(output.encoder.begin(), 0, &ok);
    output.encoder.end();
    output.flush().await?;
    Ok((session, capabilities))
}

/// Runs the login conversation to its end.
async fn authenticate<F: SessionFactory>(
    shared: &Arc<Shared<F>>,
    input: &mut Input,
    output: &mut Output,
    request: Request<'_>,
) -> Result<(), LoginFailure> {
    let fresh = new_scramble().ok_or(LoginFailure::Gone)?;
    let Request { response, host, tls, scramble, patience } = request;
    let accounts = shared.factory.accounts();
    let (mut login, mut step) = Login::begin(accounts, response, host, tls, scramble, fresh);
    loop {
        match step {
            LoginStep::Ask(packet) => {
                output.encoder.packet(&packet);
                output.flush().await?;
                input.decoder().expect_sequence(output.encoder.sequence());
                receive(input, output, patience).await?;
                step = login.on_packet(input.payload());
            }
            LoginStep::Accept { before_ok } => {
                if let Some(packet) = before_ok {
                    output.encoder.packet(&packet);
                }
                return Ok(());
            }
            LoginStep::Refuse(error) => return Err(LoginFailure::Refused(error)),
        }
    }
}

/// Logs another user in on a living connection; the new session has replaced nothing yet when this fails.
pub(super) async fn change_user<F: SessionFactory>(
    shared: &Arc<Shared<F>>,
    input: &mut Input,
    output: &mut Output,
    request: Request<'_>,
) -> Result<(), Option<MySqlError>> {
    authenticate(shared, input, output, request).await.map_err(|failure| match failure {
        LoginFailure::Gone => None,
        LoginFailure::Refused(error) => Some(error),
    })
}

/// Reads one packet of a login, never a byte more, and numbers the answer.
async fn receive(input: &mut Input, output: &mut Output, patience: Duration) -> Result<(), LoginFailure> {
    input.packet(patience, patience, true).await?;
    output.encoder.set_sequence(input.decoder().next_sequence());
    Ok(())
}

async fn refuse<T>(
    input: &mut Input,
    output: &mut Output,
    failure: LoginFailure,
    with_state: bool,
) -> Option<T> {
    if let LoginFailure::Refused(error) = failure {
        send_error(output, &error, with_state).await;
        output.close().await;
        input.drain(DRAIN).await;
    }
    None
}

async fn send_error(output: &mut Output, error: &MySqlError, with_state: bool) {
    encode_err(output.encoder.begin(), error, with_state);
    output.encoder.end();
    let _ = output.flush().await;
}

/// A new scramble; None if the system has no random numbers.
pub(super) fn new_scramble() -> Option<[u8; SCRAMBLE_LENGTH]> {
    let mut failed = false;
    let scramble = make_scramble(&mut |bytes| failed = getrandom::fill(bytes).is_err());
    if failed {
        tracing::error!("the system's random number generator failed; refusing logins");
        return None;
    }
    Some(scramble)
}
