//! Packets: cutting the byte stream into numbered frames and joining frames into packets, both ways.
//!
//! A frame is three bytes of length, one byte of sequence number and the payload. A packet of 16 MiB - 1
//! bytes or more is spread over several frames; a frame shorter than that ends it. Sequence numbers start
//! at zero with every command and are counted through by both sides.
//!
//! [`PacketDecoder`] is fed whatever bytes arrived. States: *header* (collecting four bytes), *body* (copying
//! the payload), and within both *skipping* once the packet has outgrown its limit: the bytes are counted
//! off and thrown away, so that an oversized statement costs no memory and the connection can go on after
//! the error. [`PacketEncoder`] gathers the packets of one response in one buffer so that they leave in one
//! write.

use super::error::ProtocolError;

/// The largest payload of one frame; a payload of exactly this size is followed by another frame.
pub const FRAME_PAYLOAD_MAX: usize = 0xff_ffff;
const HEADER: usize = 4;

/// What [`PacketDecoder::decode`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// All bytes were used and the packet is not complete.
    NeedMore,
    /// A packet is complete: [`PacketDecoder::payload`] holds it. Bytes after it are untouched.
    Packet {
        /// How many bytes of the input were used.
        used: usize,
    },
    /// An oversized packet was skipped to its end; its payload is gone.
    TooLarge {
        /// How many bytes of the input were used.
        used: usize,
    },
}

/// Joins incoming frames to packets.
#[derive(Debug)]
pub struct PacketDecoder {
    header: [u8; HEADER],
    header_got: usize,
    body_left: usize,
    /// A frame of a packet has begun and the packet is not complete.
    in_packet: bool,
    last_frame: bool,
    payload: Vec<u8>,
    skipping: bool,
    next_sequence: u8,
    limit: usize,
}

impl PacketDecoder {
    /// A decoder whose packets may have at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            header: [0; HEADER],
            header_got: 0,
            body_left: 0,
            in_packet: false,
            last_frame: false,
            payload: Vec::new(),
            skipping: false,
            next_sequence: 0,
            limit,
        }
    }

    /// Changes the size limit for packets that begin from now on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The size limit.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The sequence number the next frame must carry.
    pub fn next_sequence(&self) -> u8 {
        self.next_sequence
    }

    /// Says which sequence number the next frame must carry: zero for a new command, or one more than the
    /// last frame this side sent.
    pub fn expect_sequence(&mut self, sequence: u8) {
        self.next_sequence = sequence;
    }

    /// True when the decoder stands between two packets.
    pub fn at_boundary(&self) -> bool {
        self.header_got == 0 && !self.in_packet
    }

    /// How many bytes complete the header or body being collected. Reading exactly so many never reads past
    /// the packet, which matters before TLS starts.
    pub fn missing(&self) -> usize {
        if self.header_got < HEADER { HEADER - self.header_got } else { self.body_left }
    }

    /// The bytes of the packet that [`Decoded::Packet`] announced. Valid until the next [`Self::decode`].
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Moves the finished packet out; [`Self::give_back`] returns its memory for the next one.
    pub fn take_payload(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.payload)
    }

    /// Takes a finished packet's memory back. A buffer that one huge packet has blown up is freed.
    pub fn give_back(&mut self, mut packet: Vec<u8>) {
        if self.at_boundary() && packet.capacity() <= 1 << 20 {
            packet.clear();
            self.payload = packet;
        }
    }

    /// Takes bytes from `input` until a packet is complete or the input is used up.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, ProtocolError> {
        let mut used = 0;
        if self.at_boundary() {
            self.payload.clear();
        }
        loop {
            if self.header_got < HEADER {
                let take = (HEADER - self.header_got).min(input.len() - used);
                self.header[self.header_got..self.header_got + take]
                    .copy_from_slice(&input[used..used + take]);
                self.header_got += take;
                used += take;
                if self.header_got < HEADER {
                    return Ok(Decoded::NeedMore);
                }
                self.begin_frame()?;
            }
            let take = self.body_left.min(input.len() - used);
            if !self.skipping {
                self.payload.extend_from_slice(&input[used..used + take]);
            }
            self.body_left -= take;
            used += take;
            if self.body_left > 0 {
                return Ok(Decoded::NeedMore);
            }
            self.header_got = 0;
            if self.last_frame {
                self.in_packet = false;
                if std::mem::take(&mut self.skipping) {
                    self.payload.clear();
                    return Ok(Decoded::TooLarge { used });
                }
                return Ok(Decoded::Packet { used });
            }
        }
    }

    fn begin_frame(&mut self) -> Result<(), ProtocolError> {
        let [a, b, c, sequence] = self.header;
        if sequence != self.next_sequence {
            return Err(ProtocolError::OutOfOrder { expected: self.next_sequence, got: sequence });
        }
        self.next_sequence = sequence.wrapping_add(1);
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        self.in_packet = true;
        self.body_left = length;
        self.last_frame = length < FRAME_PAYLOAD_MAX;
        if self.payload.len() + length > self.limit {
            self.skipping = true;
            self.payload = Vec::new();
        }
        Ok(())
    }
}

/// Gathers outgoing packets with their headers and sequence numbers.
#[derive(Debug, Default)]
pub struct PacketEncoder {
    buffer: Vec<u8>,
    packet_start: usize,
    sequence: u8,
}

impl PacketEncoder {
    /// An empty encoder at sequence number zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the sequence number of the next frame: that of the request plus one.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// The sequence number the next frame will carry.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// The finished bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// How many bytes are waiting.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// True when nothing waits to be written.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Forgets the bytes, which have been written; gives back a buffer that one huge row has blown up.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.packet_start = 0;
        if self.buffer.capacity() > 1 << 20 {
            self.buffer = Vec::new();
        }
    }

    /// Begins a packet; the payload is appended to the returned buffer.
    pub fn begin(&mut self) -> &mut Vec<u8> {
        self.packet_start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; HEADER]);
        &mut self.buffer
    }

    /// The buffer of the packet that was begun.
    pub fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Takes back the packet that was begun and not ended, if there is one.
    pub fn abandon(&mut self) {
        self.buffer.truncate(self.packet_start);
    }

    /// Ends the packet: fills its header in, and splits it when it is larger than one frame can be.
    pub fn end(&mut self) {
        let length = self.buffer.len() - self.packet_start - HEADER;
        if length >= FRAME_PAYLOAD_MAX {
            self.split();
            return;
        }
        let header = self.next_header(length);
        self.buffer[self.packet_start..self.packet_start + HEADER].copy_from_slice(&header);
        self.packet_start = self.buffer.len();
    }

    /// Appends a whole packet.
    pub fn packet(&mut self, payload: &[u8]) {
        self.begin().extend_from_slice(payload);
        self.end();
    }

    #[cold]
    fn split(&mut self) {
        let payload = self.buffer.split_off(self.packet_start + HEADER);
        self.buffer.truncate(self.packet_start);
        let mut chunks = payload.chunks(FRAME_PAYLOAD_MAX).peekable();
        while let Some(chunk) = chunks.next() {
            let header = self.next_header(chunk.len());
            self.buffer.extend_from_slice(&header);
            self.buffer.extend_from_slice(chunk);
            if chunks.peek().is_none() && chunk.len() == FRAME_PAYLOAD_MAX {
                let header = self.next_header(0);
                self.buffer.extend_from_slice(&header);
            }
        }
        self.packet_start = self.buffer.len();
    }

    fn next_header(&mut self, length: usize) -> [u8; HEADER] {
        let [a, b, c, _] = (length as u32).to_le_bytes();
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        [a, b, c, sequence]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(payload: &[u8]) -> Vec<u8> {
        let mut encoder = PacketEncoder::new();
        encoder.packet(payload);
        encoder.bytes().to_vec()
    }

    /// Feeds `bytes` in pieces of `step` and returns the packets found.
    fn decode_all(bytes: &[u8], step: usize, limit: usize) -> Vec<Result<Vec<u8>, ()>> {
        let mut decoder = PacketDecoder::new(limit);
        let mut found = Vec::new();
        for piece in bytes.chunks(step) {
            let mut piece = piece;
            loop {
                match decoder.decode(piece).unwrap() {
                    Decoded::NeedMore => break,
                    Decoded::Packet { used } => {
                        found.push(Ok(decoder.payload().to_vec()));
                        piece = &piece[used..];
                    }
                    Decoded::TooLarge { used } => {
                        found.push(Err(()));
                        piece = &piece[used..];
                    }
                }
                if piece.is_empty() {
                    break;
                }
            }
        }
        found
    }

    #[test]
    fn packets_survive_any_cut_of_the_stream() {
        let mut encoder = PacketEncoder::new();
        encoder.packet(b"hello");
        encoder.packet(b"");
        encoder.packet(&[7; 300]);
        let bytes = encoder.bytes().to_vec();
        for step in 1..bytes.len() {
            let found = decode_all(&bytes, step, 1000);
            assert_eq!(found, vec![Ok(b"hello".to_vec()), Ok(vec![]), Ok(vec![7; 300])], "step {step}");
        }
    }

    #[test]
    fn packets_around_sixteen_mebibytes_are_split_and_joined() {
        for size in [FRAME_PAYLOAD_MAX - 1, FRAME_PAYLOAD_MAX, FRAME_PAYLOAD_MAX + 1, 2 * FRAME_PAYLOAD_MAX] {
            let payload: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let mut bytes = encode(&payload);
            let frames = size / FRAME_PAYLOAD_MAX + 1;
            assert_eq!(bytes.len(), size + 4 * frames);
            bytes.extend(encode(b"next"));
            bytes[size + 4 * frames + 3] = (frames % 256) as u8;
            let found = decode_all(&bytes, 65_536, 64 << 20);
            assert_eq!(found, vec![Ok(payload), Ok(b"next".to_vec())], "size {size}");
        }
    }

    #[test]
    fn an_oversized_packet_is_skipped_and_the_next_one_is_read() {
        let mut encoder = PacketEncoder::new();
        encoder.packet(&vec![1; FRAME_PAYLOAD_MAX + 10]);
        encoder.packet(b"next");
        let found = decode_all(encoder.bytes(), 100_000, 1 << 20);
        assert_eq!(found, vec![Err(()), Ok(b"next".to_vec())]);
        let mut encoder = PacketEncoder::new();
        encoder.packet(&[1; 101]);
        encoder.packet(&[2; 100]);
        assert_eq!(decode_all(encoder.bytes(), 3, 100), vec![Err(()), Ok(vec![2; 100])]);
    }

    #[test]
    fn a_wrong_sequence_number_is_an_error() {
        let mut decoder = PacketDecoder::new(100);
        decoder.expect_sequence(3);
        let error = decoder.decode(&[1, 0, 0, 4, 9]).unwrap_err();
        assert_eq!(error, ProtocolError::OutOfOrder { expected: 3, got: 4 });
        assert!(error.is_fatal());
    }

    #[test]
    fn missing_never_reaches_past_the_packet() {
        let bytes = encode(b"abc");
        let mut decoder = PacketDecoder::new(100);
        assert_eq!(decoder.missing(), 4);
        assert_eq!(decoder.decode(&bytes[..4]).unwrap(), Decoded::NeedMore);
        assert_eq!(decoder.missing(), 3);
        assert_eq!(decoder.decode(&bytes[4..]).unwrap(), Decoded::Packet { used: 3 });
        assert!(decoder.at_boundary());
    }

    #[test]
    fn an_abandoned_packet_leaves_nothing_behind() {
        let mut encoder = PacketEncoder::new();
        encoder.packet(b"a");
        encoder.begin().extend_from_slice(b"half a row");
        encoder.abandon();
        encoder.packet(b"b");
        assert_eq!(encoder.bytes(), [1, 0, 0, 0, b'a', 1, 0, 0, 1, b'b']);
    }
}
