//! TLS set-up: the certificate of the MySQL port, made by itself when nobody provides one.
//!
//! Clients of today try TLS first, so it is on out of the box: `server-cert.pem` and `server-key.pem`
//! (MySQL's own file names) are read from the data directory, or a self-signed pair is made there on the
//! first start and kept, so that clients which pin it see the same one after a restart. Without a directory
//! the pair lives in memory only. The whole chain found in the certificate file is sent.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

const CERTIFICATE_FILE: &str = "server-cert.pem";
const KEY_FILE: &str = "server-key.pem";

/// Why TLS could not be set up.
#[derive(Debug)]
pub enum TlsError {
    /// A file could not be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        cause: String,
    },
    /// The certificate or the key is not usable.
    Certificate(String),
}

impl std::fmt::Display for TlsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { path, cause } => write!(f, "TLS file {}: {cause}", path.display()),
            Self::Certificate(cause) => write!(f, "TLS certificate or key: {cause}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// Makes the acceptor from the files in `directory`, creating them if both are missing.
pub fn acceptor(directory: Option<&Path>) -> Result<TlsAcceptor, TlsError> {
    let (certificate, key) = match directory {
        None => self_signed()?,
        Some(directory) => {
            let paths = (directory.join(CERTIFICATE_FILE), directory.join(KEY_FILE));
            if paths.0.exists() || paths.1.exists() {
                (read(&paths.0)?, read(&paths.1)?)
            } else {
                let pair = self_signed()?;
                write(&paths.1, &pair.1, 0o600)?;
                write(&paths.0, &pair.0, 0o644)?;
                pair
            }
        }
    };
    let bad = |cause: String| TlsError::Certificate(cause);
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|e| bad(e.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|e| bad(e.to_string()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| bad(e.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|e| bad(e.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A new key and its certificate for the names of this machine, as PEM.
fn self_signed() -> Result<(String, String), TlsError> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if let Ok(host) = fs::read_to_string("/proc/sys/kernel/hostname") {
        let host = host.trim();
        if !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-') {
            names.push(host.to_owned());
        }
    }
    let made = rcgen::generate_simple_self_signed(names).map_err(|e| TlsError::Certificate(e.to_string()))?;
    Ok((made.cert.pem(), made.signing_key.serialize_pem()))
}

fn read(path: &Path) -> Result<String, TlsError> {
    fs::read_to_string(path).map_err(|e| TlsError::File { path: path.to_owned(), cause: e.to_string() })
}

/// Writes a file that never exists half: to a neighbour first, then renamed.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), TlsError> {
    use std::os::unix::fs::OpenOptionsExt;
    let neighbour = path.with_extension("pem.new");
    let work = || -> std::io::Result<()> {
        let _ = fs::remove_file(&neighbour);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&neighbour)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&neighbour, path)
    };
    work().map_err(|e| TlsError::File { path: path.to_owned(), cause: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("nucdb-tls-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_pair_is_made_once_and_kept() {
        let directory = directory("kept");
        acceptor(Some(&directory)).unwrap();
        let first = fs::read_to_string(directory.join(CERTIFICATE_FILE)).unwrap();
        acceptor(Some(&directory)).unwrap();
        assert_eq!(fs::read_to_string(directory.join(CERTIFICATE_FILE)).unwrap(), first);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_damaged_or_half_pair_is_refused_with_its_path() {
        let directory = directory("damaged");
        fs::write(directory.join(CERTIFICATE_FILE), "not a certificate").unwrap();
        let error = acceptor(Some(&directory)).err().unwrap();
        assert!(error.to_string().contains(KEY_FILE), "{error}");
        fs::write(directory.join(KEY_FILE), "not a key").unwrap();
        assert!(matches!(acceptor(Some(&directory)), Err(TlsError::Certificate(_))));
        fs::remove_dir_all(&directory).unwrap();
    }
}
