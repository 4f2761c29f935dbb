//! The accepted configuration on disk: `ndb_<id>_config.bin` in the server's data directory.
//!
//! File: 8 bytes of magic and format version, CRC-32C of the rest (4 bytes), the encoded `ClusterConfig`.
//! It is written beside the old one, synced and renamed, so that a crash leaves one of the two whole. A
//! file that does not check is refused, never guessed at.

use config::ClusterConfig;
use signals::ids::NodeId;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Magic and format version.
const MAGIC: [u8; 8] = *b"NUCCFG\x00\x01";
/// Bytes before the encoded configuration.
const HEADER_BYTES: usize = 12;
/// Largest file read.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// Where the accepted configuration of this server is kept.
pub(crate) fn path(data_dir: &Path, node: NodeId) -> PathBuf {
    data_dir.join(format!("ndb_{node}_config.bin"))
}

/// Reads it; `None` if there is none yet.
pub(crate) fn read(path: &Path) -> io::Result<Option<ClusterConfig>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    let damaged = |why: &str| io::Error::new(io::ErrorKind::InvalidData, format!("damaged: {why}"));
    let (header, body) = bytes.split_at_checked(HEADER_BYTES).ok_or_else(|| damaged("too short"))?;
    let (magic, crc) = header.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(damaged("no accepted configuration of this release"));
    }
    if crc != crc32c::crc32c(body).to_le_bytes() {
        return Err(damaged("checksum mismatch"));
    }
    let config = signals::codec::decode(body).map_err(|e| damaged(&e.to_string()))?;
    Ok(Some(config))
}

/// Replaces it, durably.
pub(crate) fn write(path: &Path, config: &ClusterConfig) -> io::Result<()> {
    let body = signals::codec::encode(config);
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
    bytes.extend_from_slice(&body);
    let beside = path.with_extension("bin.new");
    let mut file = File::create(&beside)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => File::open(dir)?.sync_all(),
        Some(_) | None => File::open(".")?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_byte_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path(), NodeId(145));
        assert_eq!(read(&path).unwrap(), None);
        let mut config = config::parse("t", b"[ndbd]\n[ndbd]\n[mgm]\n[api]\n").unwrap().config;
        config.generation = 7;
        write(&path, &config).unwrap();
        assert_eq!(read(&path).unwrap(), Some(config));
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x40;
            std::fs::write(&path, &bad).unwrap();
            assert!(read(&path).is_err(), "byte {at}");
            std::fs::write(&path, &good[..at]).unwrap();
            assert!(read(&path).is_err(), "cut at {at}");
        }
    }
}
