//! What the benchmark's rows contain: a function of key, loop and phase, so that every value read can be
//! checked and a value of another loop, another phase or another row is noticed.

use ndbapi::Row;

/// Which write made a row's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    /// The insert of this loop.
    Inserted(u32),
    /// The update of this loop.
    Updated(u32),
}

impl Version {
    fn number(self) -> u64 {
        match self {
            Self::Inserted(turn) => 2 * u64::from(turn),
            Self::Updated(turn) => 2 * u64::from(turn) + 1,
        }
    }
}

/// One step of a mixing function (the finaliser of MurmurHash3, public domain).
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

/// Fills `out` with attribute `attribute` of row `key`; all attributes of a row are `out.len()` bytes, a
/// multiple of 4.
#[inline]
pub(super) fn fill(out: &mut [u8], key: u32, version: Version, attribute: u16) {
    let seed = mix(u64::from(key) << 32 | version.number() << 12 | u64::from(attribute));
    for (i, word) in out.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&mix(seed ^ i as u64).to_le_bytes());
    }
    let odd = out.len() / 8 * 8;
    let rest = mix(seed ^ 0xffff).to_le_bytes();
    for (to, from) in out[odd..].iter_mut().zip(rest) {
        *to = from;
    }
}

/// What is wrong with a row that was read, if anything. `scratch` has the length of an attribute.
#[inline]
pub(super) fn mismatch(row: &Row<'_>, key: u32, version: Version, scratch: &mut [u8]) -> Option<String> {
    let mut entries = row.entries();
    let found = entries.next();
    if found != Some((0, Some(&key.to_le_bytes()[..]))) {
        return Some(format!("row {key}: key column is {found:?}"));
    }
    let attributes = row.table().columns().len() as u16;
    for attribute in 1..attributes {
        fill(scratch, key, version, attribute);
        let found = entries.next();
        if found != Some((attribute, Some(&*scratch))) {
            return Some(format!(
                "row {key}: {found:?} is not what {version:?} wrote into attribute {attribute}"
            ));
        }
    }
    entries.next().map(|extra| format!("row {key}: unexpected {extra:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_differ_by_row_version_attribute_and_place() {
        let mut seen = std::collections::BTreeSet::new();
        for key in 0..50 {
            for turn in 0..5 {
                for version in [Version::Inserted(turn), Version::Updated(turn)] {
                    for attribute in 1..4 {
                        let mut bytes = [0; 12];
                        fill(&mut bytes, key, version, attribute);
                        assert!(seen.insert(bytes[..8].to_vec()) && seen.insert(bytes[4..].to_vec()));
                    }
                }
            }
        }
    }
}
