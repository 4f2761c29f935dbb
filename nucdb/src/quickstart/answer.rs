//! Whether SQL really answers: log in as a MySQL client would and ask something that only the data nodes
//! know.
//!
//! A few fixed packets of MySQL's protocol, enough for an account without a password: greeting, login with
//! an empty `mysql_native_password` answer, `SHOW DATABASES`. `SELECT 1` would not do: the SQL node answers
//! it alone.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// The SQL node waits for the cluster with a statement in hand; a little of that wait is enough at a time,
/// so that the caller can look after its processes.
const TIMEOUT: Duration = Duration::from_secs(1);
/// CLIENT_LONG_PASSWORD, CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION, CLIENT_PLUGIN_AUTH.
const CAPABILITIES: u32 = 0x1 | 0x200 | 0x8000 | 0x8_0000;
/// An ordinary packet is far shorter.
const PACKET_MAX: usize = 64 * 1024;

/// Logs in and lists the databases, which the data nodes keep.
pub(super) fn list_databases(port: u16) -> Result<(), String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream =
        TcpStream::connect_timeout(&address, TIMEOUT).map_err(|e| format!("SQL port {port}: {e}"))?;
    let timeouts =
        stream.set_read_timeout(Some(TIMEOUT)).and_then(|()| stream.set_write_timeout(Some(TIMEOUT)));
    timeouts.map_err(|e| e.to_string())?;
    let (sequence, greeting) = read_packet(&mut stream)?;
    refuse_error(&greeting)?;
    let mut login = Vec::new();
    login.extend_from_slice(&CAPABILITIES.to_le_bytes());
    login.extend_from_slice(&(1u32 << 24).to_le_bytes());
    login.push(45);
    login.extend_from_slice(&[0; 23]);
    login.extend_from_slice(b"root\0\0mysql_native_password\0");
    write_packet(&mut stream, sequence.wrapping_add(1), &login)?;
    loop {
        let (sequence, answer) = read_packet(&mut stream)?;
        refuse_error(&answer)?;
        match answer.first() {
            Some(0) => break,
            // Another method is asked for: without a password every method's answer is empty.
            Some(0xfe) => write_packet(&mut stream, sequence.wrapping_add(1), &[])?,
            // More data of the method, the success of caching_sha2_password: the OK follows.
            Some(1) => {}
            _ => return Err("SQL answers the login with an unknown packet".into()),
        }
    }
    write_packet(&mut stream, 0, b"\x03SHOW DATABASES")?;
    // Column count, column, end of columns, rows, end of rows; an error may stand anywhere.
    let mut ends = 0;
    while ends < 2 {
        let (_, packet) = read_packet(&mut stream)?;
        refuse_error(&packet)?;
        if packet.first() == Some(&0xfe) && packet.len() < 9 {
            ends += 1;
        }
    }
    Ok(())
}

fn read_packet(stream: &mut TcpStream) -> Result<(u8, Vec<u8>), String> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).map_err(|e| format!("SQL does not speak: {e}"))?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
    if length > PACKET_MAX {
        return Err("the SQL port speaks another protocol".into());
    }
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).map_err(|e| format!("SQL stops in a packet: {e}"))?;
    Ok((head[3], payload))
}

fn write_packet(stream: &mut TcpStream, sequence: u8, payload: &[u8]) -> Result<(), String> {
    let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    packet.push(sequence);
    packet.extend_from_slice(payload);
    stream.write_all(&packet).map_err(|e| format!("SQL does not listen: {e}"))
}

fn refuse_error(payload: &[u8]) -> Result<(), String> {
    match payload {
        [0xff, a, b, text @ ..] => {
            let code = u16::from_le_bytes([*a, *b]);
            Err(format!("SQL error {code}: {}", String::from_utf8_lossy(text)))
        }
        _ => Ok(()),
    }
}
