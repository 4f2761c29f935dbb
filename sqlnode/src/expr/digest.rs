//! MD5 and CRC32, which no dependency of this crate brings.
//!
//! Both are for MD5() and CRC32() in SQL, never for security.

/// The CRC32 of zlib.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0u32; 256];
        let mut i = 0;
        while i < 256 {
            let mut c = i as u32;
            let mut k = 0;
            while k < 8 {
                c = if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 };
                k += 1;
            }
            table[i] = c;
            i += 1;
        }
        table
    };
    !bytes.iter().fold(!0u32, |c, b| TABLE[((c ^ u32::from(*b)) & 0xff) as usize] ^ (c >> 8))
}

/// Rotations of the four rounds.
const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// MD5 (RFC 1321).
pub(super) fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut tail = bytes[bytes.len() - bytes.len() % 64..].to_vec();
    tail.push(0x80);
    while tail.len() % 64 != 56 {
        tail.push(0);
    }
    tail.extend_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_le_bytes());
    // The constants are the fractional parts of sines.
    let sines: [u32; 64] = std::array::from_fn(|i| (((i + 1) as f64).sin().abs() * 4_294_967_296.0) as u32);
    for block in bytes.chunks_exact(64).chain(tail.chunks_exact(64)) {
        md5_block(&mut state, block, &sines);
    }
    let mut out = [0; 16];
    for (to, word) in out.chunks_exact_mut(4).zip(state) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    out
}

fn md5_block(state: &mut [u32; 4], block: &[u8], sines: &[u32; 64]) {
    let words: [u32; 16] =
        std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|j| block[4 * i + j])));
    let [mut a, mut b, mut c, mut d] = *state;
    for i in 0..64 {
        let (mix, word) = match i / 16 {
            0 => ((b & c) | (!b & d), i),
            1 => ((d & b) | (!d & c), (5 * i + 1) % 16),
            2 => (b ^ c ^ d, (3 * i + 5) % 16),
            _ => (c ^ (b | !d), (7 * i) % 16),
        };
        let sum = a.wrapping_add(mix).wrapping_add(sines[i]).wrapping_add(words[word]);
        (a, d, c) = (d, c, b);
        b = b.wrapping_add(sum.rotate_left(SHIFTS[i / 16][i % 4]));
    }
    for (to, add) in state.iter_mut().zip([a, b, c, d]) {
        *to = to.wrapping_add(add);
    }
}
