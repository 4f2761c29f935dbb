//! How our QUIC endpoints are set up.

use super::watch::{Stray, Watched};
use super::{IDLE_TIMEOUT, KEEP_ALIVE};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::crypto::{CryptoError, HmacKey};
use quinn::{ClientConfig, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, ServerConfig};
use quinn::{Runtime, TokioRuntime, TransportConfig, VarInt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use sha2::{Digest, Sha256};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What the two sides call the protocol while they shake hands.
const ALPN: &[u8] = b"nucdb-mgm";
/// Streams a peer may have open: questions in flight.
const STREAMS_MAX: u32 = 64;
/// Connections that may be shaking hands.
const INCOMING_MAX: usize = 128;
/// Length of our connection ids.
const CID_BYTES: usize = 8;

/// Any error of setting up, as text: all of them are the program's environment or its own fault.
pub(super) type SetupError = Box<dyn std::error::Error + Send + Sync>;

/// A server endpoint on this address, with a certificate of its own. Datagrams nobody asked for go to
/// `strays` as well.
pub(super) fn server(address: SocketAddr, strays: mpsc::Sender<Stray>) -> Result<Endpoint, SetupError> {
    let certified = rcgen::generate_simple_self_signed(vec!["nucdb-mgmd".to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport()).max_incoming(INCOMING_MAX).migration(false);
    let socket = TokioRuntime.wrap_udp_socket(UdpSocket::bind(address)?)?;
    let socket = Arc::new(Watched::new(socket, strays));
    let runtime = Arc::new(TokioRuntime);
    Ok(Endpoint::new_with_abstract_socket(endpoint_config(), Some(config), socket, runtime)?)
}

/// A client endpoint that can reach this address.
pub(super) fn client(remote: SocketAddr) -> Result<Endpoint, SetupError> {
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(ring::default_provider())))
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport());
    let socket = UdpSocket::bind(SocketAddr::new(local_for(remote.ip()), 0))?;
    let mut endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// The address to bind to in order to reach another.
pub(super) fn local_for(remote: IpAddr) -> IpAddr {
    match (remote, remote.is_loopback()) {
        (IpAddr::V4(_), true) => Ipv4Addr::LOCALHOST.into(),
        (IpAddr::V4(_), false) => Ipv4Addr::UNSPECIFIED.into(),
        (IpAddr::V6(_), true) => Ipv6Addr::LOCALHOST.into(),
        (IpAddr::V6(_), false) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let idle = VarInt::from_u32(u32::try_from(IDLE_TIMEOUT.as_millis()).unwrap_or(u32::MAX));
    transport
        .max_idle_timeout(Some(idle.into()))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS_MAX))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None)
        // Loopback and LAN: a lost handshake packet is sent again soon.
        .initial_rtt(Duration::from_millis(30));
    Arc::new(transport)
}

/// A restarted server must be able to tell the peers of its predecessor that their links are gone, at once
/// and not after their idle timeout. For that its reset tokens must be those of the predecessor, so their
/// key is fixed, and connection ids must be acceptable to the successor, so they are plain random ones.
fn endpoint_config() -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(ResetKey));
    config.cid_generator(|| Box::new(RandomCids(RandomState::new(), 0)));
    config
}

/// Signs connection ids for stateless resets. The key is no secret: whoever can guess a connection id of a
/// private network can end that link, and the peers simply come back.
struct ResetKey;

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        let digest = Sha256::new().chain_update(b"nucdb management link reset").chain_update(data).finalize();
        for (out, byte) in signature_out.iter_mut().zip(digest) {
            *out = byte;
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut wanted = [0u8; 32];
        self.sign(data, &mut wanted);
        if signature == wanted { Ok(()) } else { Err(CryptoError) }
    }
}

/// Connection ids from the standard library's keyed hash of a counter: unguessable and never the same.
struct RandomCids(RandomState, u64);

impl ConnectionIdGenerator for RandomCids {
    fn generate_cid(&mut self) -> ConnectionId {
        self.1 += 1;
        ConnectionId::new(&self.0.hash_one(self.1).to_le_bytes())
    }

    fn cid_len(&self) -> usize {
        CID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// Takes any certificate (see the module's words on trust), but checks that the peer holds its key.
#[derive(Debug)]
struct AnyCertificate(CryptoProvider);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
