//! The index against a model, its memory, its bounded work, and its behaviour when memory runs out.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A hash as good as a real one, from the number of the row.
fn hash_of(row: RowRef) -> u64 {
    let mut x = u64::from(row.0).wrapping_add(0x1234_5678_9ABC_DEF1).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^= x >> 29;
    x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 32)
}

/// Few different values: long chains.
fn poor_hash_of(row: RowRef) -> u64 {
    hash_of(RowRef(row.0 % 7))
}

fn find(index: &HashIndex, row: RowRef, hash: fn(RowRef) -> u64) -> Option<RowRef> {
    index.probe(hash(row), |candidate| candidate == row)
}

/// Every invariant of the essay, and the set of rows in the index.
fn check(index: &HashIndex, hash: fn(RowRef) -> u64) -> Vec<u32> {
    let mut rows = Vec::new();
    let mut overflows = 0;
    for number in 0..index.buckets {
        let mut place = Tail { bucket: number, link: 0 };
        let mask = index.bucket(number).tag_mask();
        loop {
            let bucket = index.at(place);
            assert!(bucket.link() == 0 || bucket.count() == ENTRIES, "a hole in the chain");
            assert!(place.link == 0 || bucket.count() > 0, "an empty overflow bucket");
            for i in 0..bucket.count() {
                let row = RowRef(bucket.rows[i]);
                let (home, tag) = index.place(mix(hash(row)));
                assert_eq!(home, number, "row in a wrong bucket");
                assert_eq!(tag & mask, bucket.tag(i) & mask, "wrong tag");
                rows.push(row.0);
            }
            overflows += u64::from(place.link != 0);
            match bucket.link() {
                0 => break,
                link => place.link = link,
            }
        }
    }
    assert_eq!(overflows, index.overflow.used);
    assert_eq!(rows.len() as u64, index.rows());
    rows.sort_unstable();
    rows
}

#[test]
fn a_million_rows_grow_without_stall_and_within_18_bytes() {
    let memory = DataMemory::new(1000);
    let mut index = HashIndex::new(&memory);
    let mut asked = 0u64;
    let mut bytes_per_row_max = 0.0f64;
    for n in 0..1_000_000u32 {
        let (before, asked_before) = (index.counters(), asked);
        index
            .insert(hash_of(RowRef(n)), RowRef(n), |row| {
                asked += 1;
                hash_of(row)
            })
            .unwrap();
        let after = index.counters();
        assert!(after.splits - before.splits <= u64::from(SPLITS_PER_INSERT));
        assert!(asked - asked_before <= 100, "an insert looked at {} rows", asked - asked_before);
        if n > 100_000 && n % 1000 == 0 {
            bytes_per_row_max = bytes_per_row_max.max(index.bytes() as f64 / index.rows() as f64);
        }
    }
    assert!(bytes_per_row_max <= 18.0, "{bytes_per_row_max} bytes per row");
    assert!(asked < 1_000_000, "rows were looked at {asked} times for 1,000,000 inserts");
    for n in (0..1_000_000).step_by(7) {
        assert_eq!(find(&index, RowRef(n), hash_of), Some(RowRef(n)));
        assert_eq!(find(&index, RowRef(n + 1_000_000), hash_of), None);
    }
    assert_eq!(check(&index, hash_of), (0..1_000_000).collect::<Vec<_>>());

    for n in 0..1_000_000u32 {
        let before = index.counters();
        assert!(index.remove(hash_of(RowRef(n)), RowRef(n)));
        assert!(index.counters().merges - before.merges <= u64::from(MERGES_PER_REMOVE));
        let left = 999_999 - n;
        if left > 100_000 && left.is_multiple_of(10_000) {
            assert!(index.bytes() as f64 / f64::from(left) <= 18.0);
        }
        if left == 1_000 {
            assert!(memory.used() <= 2, "{} pages for 1,000 rows", memory.used());
            assert_eq!(check(&index, hash_of), (999_000..1_000_000).collect::<Vec<_>>());
        }
    }
    assert_eq!(memory.used(), 0);
}

#[test]
fn few_rows_touch_wrong_keys_or_second_lines() {
    let memory = DataMemory::new(1000);
    let mut index = HashIndex::new(&memory);
    for n in 0..300_000 {
        index.insert(hash_of(RowRef(n)), RowRef(n), hash_of).unwrap();
    }
    let mut looked_at = 0;
    for n in 0..300_000 {
        let found = index.probe(hash_of(RowRef(n)), |row| {
            looked_at += 1;
            row.0 == n
        });
        assert_eq!(found, Some(RowRef(n)));
    }
    assert!(looked_at < 303_000, "{looked_at} rows looked at for 300,000 probes");
    assert!(index.overflow.used * 20 < u64::from(index.buckets), "{} overflow buckets", index.overflow.used);
}

#[test]
fn hashes_that_agree_in_the_bits_that_chose_the_fragment_spread() {
    let memory = DataMemory::new(1000);
    let mut index = HashIndex::new(&memory);
    let narrowed = |row: RowRef| hash_of(row) << 12 | 0xABC;
    for n in 0..100_000 {
        index.insert(narrowed(RowRef(n)), RowRef(n), narrowed).unwrap();
    }
    assert!(index.overflow.used * 20 < u64::from(index.buckets), "{} overflow buckets", index.overflow.used);
    let high = |row: RowRef| hash_of(row) & 0xFFFF_FFFF | 0x1234_5678 << 32;
    let mut index = HashIndex::new(&memory);
    for n in 0..100_000 {
        index.insert(high(RowRef(n)), RowRef(n), high).unwrap();
    }
    assert!(index.overflow.used * 20 < u64::from(index.buckets), "{} overflow buckets", index.overflow.used);
}

#[test]
fn a_full_memory_refuses_the_one_insert_and_changes_nothing() {
    let memory = DataMemory::new(3);
    let mut index = HashIndex::new(&memory);
    let mut inserted = Vec::new();
    let mut refused = 0;
    for n in 0..50_000 {
        let before = index.rows();
        match index.insert(hash_of(RowRef(n)), RowRef(n), hash_of) {
            Ok(()) => inserted.push(n),
            Err(full) => {
                assert_eq!(full, MemoryFull::DataMemory);
                assert_eq!(index.rows(), before);
                refused += 1;
            }
        }
    }
    assert!(refused > 0 && inserted.len() > 9_000, "{} inserted", inserted.len());
    assert_eq!(check(&index, hash_of), inserted);
    // More memory elsewhere makes the index catch up, and it shrinks to nothing.
    for &n in &inserted {
        assert!(index.remove(hash_of(RowRef(n)), RowRef(n)));
    }
    assert_eq!((memory.used(), index.rows()), (0, 0));
    assert!(!index.remove(hash_of(RowRef(1)), RowRef(1)));
    assert_eq!(find(&index, RowRef(1), hash_of), None);
}

#[test]
fn dropped_in_slices() {
    let memory = DataMemory::new(1000);
    let mut index = HashIndex::new(&memory);
    for n in 0..100_000 {
        index.insert(hash_of(RowRef(n)), RowRef(n), hash_of).unwrap();
    }
    let mut before = memory.used();
    while !index.free_some(3) {
        assert!(before - memory.used() <= 3);
        before = memory.used();
    }
    assert_eq!((memory.used(), index.rows(), find(&index, RowRef(5), hash_of)), (0, 0, None));
    index.insert(hash_of(RowRef(5)), RowRef(5), hash_of).unwrap();
    assert_eq!(check(&index, hash_of), [5]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_a_map(
        moves in prop::collection::vec((0..400u32, prop::bool::weighted(0.55)), 1..3000),
        poor in any::<bool>(),
        pages in 1..6u64,
        emptied in any::<bool>(),
    ) {
        let hash = if poor { poor_hash_of } else { hash_of };
        let memory = DataMemory::new(pages);
        let mut index = HashIndex::new(&memory);
        let mut model = BTreeMap::new();
        for (key, insert) in moves {
            let row = RowRef(key);
            prop_assert_eq!(find(&index, row, hash).is_some(), model.contains_key(&key));
            if insert && !model.contains_key(&key) {
                if index.insert(hash(row), row, hash).is_ok() {
                    model.insert(key, ());
                }
            } else if !insert {
                prop_assert_eq!(index.remove(hash(row), row), model.remove(&key).is_some());
            }
        }
        prop_assert_eq!(check(&index, hash), model.keys().copied().collect::<Vec<_>>());
        if emptied {
            for key in model.into_keys() {
                prop_assert!(index.remove(hash(RowRef(key)), RowRef(key)));
            }
            prop_assert_eq!(memory.used(), 0);
        }
    }
}
