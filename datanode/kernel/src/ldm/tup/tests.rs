//! Rows: contents, refusals, memory per row, scans, and a long random run against a model with memory running
//! out.

use signals::attr::{self, AttrReader};
use signals::ids::{SchemaVersion, TableId};
use signals::key::push_normal;
use signals::partition::PartitionBalance;
use signals::table::{ColumnDef, ColumnStorage, ColumnType, TableDef};

use super::*;
use crate::ldm::fragment::Fragment;

mod model;

const UTF8MB4_GENERAL_CI: u16 = 45;

fn fixed(name: &str, size: u16) -> ColumnDef {
    ColumnDef {
        name: name.into(),
        kind: ColumnType::Binary,
        storage: ColumnStorage::Fixed { size },
        nullable: false,
        collation: 63,
        default: None,
        sql: vec![],
    }
}

fn var(name: &str, max_len: u16) -> ColumnDef {
    ColumnDef { storage: ColumnStorage::Var { max_len }, ..fixed(name, 1) }
}

fn nullable(column: ColumnDef) -> ColumnDef {
    ColumnDef { nullable: true, ..column }
}

fn table(columns: Vec<ColumnDef>, primary_key: &[u16]) -> TableDef {
    TableDef {
        id: TableId(1),
        version: SchemaVersion(1),
        database: "test".into(),
        name: "t".into(),
        columns,
        primary_key: primary_key.into(),
        distribution_key: primary_key.into(),
        partition_balance: PartitionBalance::ForRpByLdm,
        nologging: false,
        read_backup: true,
        fully_replicated: false,
        sql: vec![],
    }
}

/// Key `id`, a nullable number, a nullable string, a fixed string with a default, a string with a default.
fn mixed_table() -> TableDef {
    let mut tag = fixed("tag", 5);
    tag.default = Some(b"dflt!".to_vec());
    let mut note = var("note", 4000);
    note.default = Some(b"no note".to_vec());
    table(vec![nullable(fixed("n", 4)), fixed("id", 8), nullable(var("name", 300)), tag, note], &[1])
}

type Values<'a> = &'a [(u16, Option<&'a [u8]>)];

fn attrs(values: Values<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for (column, value) in values {
        attr::push(&mut out, *column, *value);
    }
    out
}

fn fragment(table: &TableDef, memory: &DataMemory) -> Fragment {
    Fragment::new(Arc::new(RowLayout::new(table).unwrap()), memory)
}

fn insert(fragment: &mut Fragment, key: &[u8], values: Values<'_>) -> Result<RowRef, TupError> {
    fragment.insert(KeyHash::of(key), key, &attrs(values))
}

fn read_all(fragment: &Fragment, row: RowRef) -> Vec<u8> {
    let mut out = Vec::new();
    fragment.tup.read_all(row, &mut out);
    out
}

#[test]
fn a_row_comes_back_as_it_was_written() {
    let memory = DataMemory::new(100);
    let mut f = fragment(&mixed_table(), &memory);
    let id = 77u64.to_le_bytes();
    let written: Values<'_> = &[
        (0, Some(&[1, 2, 3, 4])),
        (1, Some(&id)),
        (2, Some("Grüße".as_bytes())),
        (3, Some(b"abcde")),
        (4, Some(b"")),
    ];
    let row = insert(&mut f, &id, written).unwrap();
    assert!(f.tup.is_uncommitted(row));
    assert_eq!((f.tup.epoch(row), f.tup.op_head(row)), (0, NO_OPERATION));
    assert_eq!(f.find(KeyHash::of(&id), &id), Some(row));
    f.tup.commit_insert(row, 0x1_0000_0002);
    f.tup.set_op_head(row, 5);
    assert!(!f.tup.is_uncommitted(row));
    assert_eq!((f.tup.epoch(row), f.tup.op_head(row)), (0x1_0000_0002, 5));
    assert_eq!(read_all(&f, row), attrs(written));
    let mut out = vec![9, 9, 9, 9];
    f.tup.read(row, &[4, 2, 2, 0], &mut out).unwrap();
    let expected = attrs(&[(4, Some(b"")), (2, written[2].1), (2, written[2].1), (0, written[0].1)]);
    assert_eq!(out, [&[9, 9, 9, 9], &expected[..]].concat());
    assert_eq!(f.tup.read(row, &[0, 5], &mut out), Err(TupError::UnknownColumn { column: 5 }));
    assert_eq!(f.tup.layout().value(f.tup.tuple(row), 3), Some(Some(&b"abcde"[..])));
    assert_eq!(f.tup.layout().value(f.tup.tuple(row), 9), None);
}

#[test]
fn columns_not_named_get_default_or_null() {
    let memory = DataMemory::new(100);
    let mut f = fragment(&mixed_table(), &memory);
    let id = 1u64.to_le_bytes();
    let row = insert(&mut f, &id, &[(1, Some(&id))]).unwrap();
    let expected = attrs(&[(0, None), (1, Some(&id)), (2, None), (3, Some(b"dflt!")), (4, Some(b"no note"))]);
    assert_eq!(read_all(&f, row), expected);
    let (stats, index_bytes) = f.stats();
    assert_eq!((stats.rows, stats.var_rows, index_bytes), (1, 1, 32768));
    f.abort_insert(KeyHash::of(&id), row);
    assert_eq!(memory.used(), 0);
}

#[test]
fn what_cannot_be_stored_is_refused_and_changes_nothing() {
    let memory = DataMemory::new(100);
    let mut f = fragment(&mixed_table(), &memory);
    let id = 1u64.to_le_bytes();
    let long = [0; 301];
    let cases: [(Values<'_>, TupError, u16); 6] = [
        (&[(0, None)], TupError::NullNotAllowed { column: 1 }, 839),
        (&[(1, None)], TupError::NullNotAllowed { column: 1 }, 839),
        (&[(1, Some(&id)), (5, None)], TupError::UnknownColumn { column: 5 }, 4004),
        (&[(1, Some(&id[..7]))], TupError::WrongLength { column: 1, len: 7 }, 850),
        (&[(1, Some(&id)), (2, Some(&long))], TupError::WrongLength { column: 2, len: 301 }, 850),
        (&[(1, Some(&[9; 8]))], TupError::KeyMismatch, 850),
    ];
    for (values, error, code) in cases {
        assert_eq!(insert(&mut f, &id, values), Err(error));
        assert_eq!(error.code().0, code);
        assert!(!error.to_string().is_empty());
    }
    assert_eq!(f.tup.insert(&[1, 0, 8, 0, 1]), Err(TupError::MalformedAttrInfo));
    assert_eq!((memory.used(), f.stats().0.rows), (0, 0));

    let row = insert(&mut f, &id, &[(1, Some(&id))]).unwrap();
    f.tup.commit_insert(row, 7);
    let before = read_all(&f, row);
    let used = memory.used();
    let mut copy = CopyTuple::default();
    let cases: [(Values<'_>, TupError); 4] = [
        (&[(3, None)], TupError::NullNotAllowed { column: 3 }),
        (&[(4, Some(b"x")), (1, Some(&[9; 8]))], TupError::KeyChanged { column: 1 }),
        (&[(0, Some(&[0; 5]))], TupError::WrongLength { column: 0, len: 5 }),
        (&[(6, None)], TupError::UnknownColumn { column: 6 }),
    ];
    for (values, error) in cases {
        assert_eq!(f.tup.prepare_update(row, Before::Row, &attrs(values), &mut copy), Err(error));
        assert_eq!((read_all(&f, row), memory.used()), (before.clone(), used));
    }
}

#[test]
fn an_update_shows_at_commit_and_not_before() {
    let memory = DataMemory::new(100);
    let mut f = fragment(&mixed_table(), &memory);
    let id = 1u64.to_le_bytes();
    let row = insert(&mut f, &id, &[(1, Some(&id)), (2, Some(b"old"))]).unwrap();
    f.tup.commit_insert(row, 7);
    let before = read_all(&f, row);
    let long = [7u8; 4000];
    let mut first = CopyTuple::default();
    let change = attrs(&[(4, Some(&long)), (1, Some(&id)), (0, Some(b"1234"))]);
    f.tup.prepare_update(row, Before::Row, &change, &mut first).unwrap();
    let mut second = CopyTuple::default();
    f.tup.prepare_update(row, Before::Copy(&first), &attrs(&[(2, None)]), &mut second).unwrap();
    assert_eq!(read_all(&f, row), before);
    let mut out = Vec::new();
    f.tup.read_copy(&first, &[2, 0], &mut out).unwrap();
    assert_eq!(out, attrs(&[(2, Some(b"old")), (0, Some(b"1234"))]));
    f.tup.abort_update(&mut first);
    f.tup.commit_update(row, &mut second, 8);
    let expected =
        attrs(&[(0, Some(b"1234")), (1, Some(&id)), (2, None), (3, Some(b"dflt!")), (4, Some(&long))]);
    assert_eq!((read_all(&f, row), f.tup.epoch(row)), (expected, 8));

    // Deleted and inserted again by one transaction: nothing of the old row is left but its key.
    f.tup
        .prepare_update(row, Before::Deleted, &attrs(&[(1, Some(&id)), (4, Some(b"!"))]), &mut first)
        .unwrap();
    f.tup.commit_update(row, &mut first, 9);
    let expected = attrs(&[(0, None), (1, Some(&id)), (2, None), (3, Some(b"dflt!")), (4, Some(b"!"))]);
    assert_eq!(read_all(&f, row), expected);
    assert!(f.stats().0.var_free_bytes > 32_000, "the long body was not given back");
    f.commit_delete(KeyHash::of(&id), row);
    assert_eq!((memory.used(), f.find(KeyHash::of(&id), &id)), (0, None));
}

#[test]
fn keys_compare_in_their_collation() {
    let mut name = var("name", 40);
    name.kind = ColumnType::Char;
    name.collation = UTF8MB4_GENERAL_CI;
    let table = table(vec![fixed("v", 4), name.clone(), fixed("part", 2)], &[1, 2]);
    let key_of = |text: &str| {
        let mut key = Vec::new();
        push_normal(&mut key, &name, text.as_bytes());
        push_normal(&mut key, &table.columns[2], &[5, 0]);
        key
    };
    let memory = DataMemory::new(100);
    let mut f = fragment(&table, &memory);
    let key = key_of("Müller");
    let row = insert(&mut f, &key, &[(0, Some(&[0; 4])), (1, Some("Müller".as_bytes())), (2, Some(&[5, 0]))])
        .unwrap();
    f.tup.commit_insert(row, 1);
    let upper = key_of("MULLER");
    assert_eq!(f.find(KeyHash::of(&upper), &upper), Some(row));
    let other = key_of("MULLERS");
    assert_eq!(f.find(KeyHash::of(&other), &other), None);
    let mut built = Vec::new();
    f.tup.append_key(row, &mut built);
    assert_eq!((built, f.tup.key_hash(row)), (key.clone(), KeyHash::of(&key)));
    // The spelling may change, the key may not.
    let mut copy = CopyTuple::default();
    let refused = f.tup.prepare_update(row, Before::Row, &attrs(&[(1, Some(b"Miller"))]), &mut copy);
    assert_eq!(refused, Err(TupError::KeyChanged { column: 1 }));
    f.tup.prepare_update(row, Before::Row, &attrs(&[(1, Some(b"mULLER"))]), &mut copy).unwrap();
    f.tup.commit_update(row, &mut copy, 2);
    assert_eq!(f.tup.layout().value(f.tup.tuple(row), 1), Some(Some(&b"mULLER"[..])));
    assert_eq!(f.find(KeyHash::of(&key), &key), Some(row));
    f.commit_delete(KeyHash::of(&key), row);
    assert_eq!(memory.used(), 0);
}

#[test]
fn rows_up_to_the_limit_are_kept() {
    let memory = DataMemory::new(100);
    let big = table(vec![fixed("id", 8), fixed("all", 29_992)], &[0]);
    let mut f = fragment(&big, &memory);
    let id = 3u64.to_le_bytes();
    let value: Vec<u8> = (0..29_992u32).map(|i| (i * 7) as u8).collect();
    let row = insert(&mut f, &id, &[(0, Some(&id)), (1, Some(&value))]).unwrap();
    assert_eq!(read_all(&f, row), attrs(&[(0, Some(&id)), (1, Some(&value))]));

    let big = table(vec![fixed("id", 8), var("all", 29_992)], &[0]);
    let mut f = fragment(&big, &memory);
    let row = insert(&mut f, &id, &[(0, Some(&id)), (1, Some(&value))]).unwrap();
    f.tup.commit_insert(row, 1);
    let mut copy = CopyTuple::default();
    let turned: Vec<u8> = value.iter().rev().copied().collect();
    f.tup.prepare_update(row, Before::Row, &attrs(&[(1, Some(&turned))]), &mut copy).unwrap();
    f.tup.commit_update(row, &mut copy, 2);
    assert_eq!(read_all(&f, row), attrs(&[(0, Some(&id)), (1, Some(&turned))]));

    let mut many: Vec<_> = (0..511).map(|i| nullable(var(&format!("c{i}"), 57))).collect();
    many.insert(0, fixed("id", 8));
    let mut f = fragment(&table(many, &[0]), &memory);
    let value = [0x5A; 57];
    let values: Vec<_> = (0..512u16).map(|c| (c, Some(if c == 0 { &id[..] } else { &value[..] }))).collect();
    let row = insert(&mut f, &id, &values).unwrap();
    assert_eq!(read_all(&f, row), attrs(&values));
}

#[test]
fn columns_share_the_row_and_one_byte_more_is_refused() {
    let memory = DataMemory::new(100);
    let wide = table(vec![fixed("id", 8), var("a", 30_000), nullable(var("b", 30_000))], &[0]);
    let mut f = fragment(&wide, &memory);
    let id = 3u64.to_le_bytes();
    let (a, b) = (vec![1; 20_000], vec![2; 9_992]);
    let row = insert(&mut f, &id, &[(0, Some(&id)), (1, Some(&a)), (2, Some(&b))]).unwrap();
    f.tup.commit_insert(row, 1);
    let more = [b.as_slice(), &[2]].concat();
    let refused = TupError::RowTooBig { bytes: 30_001 };
    let mut copy = CopyTuple::default();
    let change = attrs(&[(2, Some(&more))]);
    assert_eq!(f.tup.prepare_update(row, Before::Row, &change, &mut copy), Err(refused));
    assert_eq!((copy.promised_bytes(), refused.code().0), (0, 738));
    let other = 4u64.to_le_bytes();
    let long = [(0, Some(&other[..])), (1, Some(&a[..])), (2, Some(&more[..]))];
    assert_eq!(insert(&mut f, &other, &long), Err(refused));
    assert_eq!(read_all(&f, row), attrs(&[(0, Some(&id)), (1, Some(&a)), (2, Some(&b))]));
    // What one column gives up the other may take.
    f.tup
        .prepare_update(row, Before::Row, &attrs(&[(1, Some(&a[1..])), (2, Some(&more))]), &mut copy)
        .unwrap();
    f.tup.commit_update(row, &mut copy, 2);
    assert_eq!(read_all(&f, row), attrs(&[(0, Some(&id)), (1, Some(&a[1..])), (2, Some(&more))]));
}

#[test]
fn overhead_per_row_is_within_the_promise() {
    let memory = DataMemory::new(10_000);
    let mut f = fragment(&table(vec![fixed("id", 8), fixed("v", 8)], &[0]), &memory);
    let rows = 200_000u64;
    for n in 0..rows {
        let id = n.to_le_bytes();
        insert(&mut f, &id, &[(0, Some(&id)), (1, Some(&id))]).unwrap();
    }
    let per_row = (memory.used() * PAGE_BYTES as u64) as f64 / rows as f64;
    assert!(per_row <= 16.0 + 16.0 + 18.0, "{per_row} bytes per row of 16");

    let mut f = fragment(&table(vec![fixed("id", 8), var("v", 100), var("w", 100)], &[0]), &memory);
    let before = memory.used();
    for n in 0..rows {
        let id = n.to_le_bytes();
        insert(&mut f, &id, &[(0, Some(&id)), (1, Some(&[1; 30])), (2, Some(&[2; 20]))]).unwrap();
    }
    let per_row = ((memory.used() - before) * PAGE_BYTES as u64) as f64 / rows as f64;
    // Reference 8, entry head 6, 2 per variable column.
    assert!(per_row <= 58.0 + 16.0 + 18.0 + 8.0 + 6.0 + 4.0, "{per_row} bytes per row of 58");
}

#[test]
fn a_scan_sees_what_stays_and_works_in_bounded_steps() {
    let memory = DataMemory::new(1000);
    let mut f = fragment(&table(vec![fixed("id", 8)], &[0]), &memory);
    let key = |n: u64| n.to_le_bytes();
    for n in 0..20_000u64 {
        let row = insert(&mut f, &key(n), &[(0, Some(&key(n)))]).unwrap();
        f.tup.commit_insert(row, 1);
    }
    // The scan runs in steps of 100 slots; between steps rows before and behind it go, and new ones come.
    let (mut cursor, mut seen, mut steps, mut next_new) = (f.tup.start_scan(), Vec::new(), 0, 100_000u64);
    loop {
        let mut budget = 100;
        let done = loop {
            match f.tup.next(&mut cursor, &mut budget) {
                ScanStep::Row(row) => {
                    let value = f.tup.layout().value(f.tup.tuple(row), 0).unwrap().unwrap();
                    seen.push(u64::from_le_bytes(value.try_into().unwrap()));
                }
                ScanStep::Pause => break false,
                ScanStep::End => break true,
            }
        };
        assert!(done || budget == 0);
        if done {
            break;
        }
        steps += 1;
        for gone in [steps * 3 + 1, 20_000 - steps * 3 - 1] {
            let key = key(gone);
            if !gone.is_multiple_of(3)
                && let Some(row) = f.find(KeyHash::of(&key), &key)
            {
                f.commit_delete(KeyHash::of(&key), row);
            }
        }
        insert(&mut f, &key(next_new), &[(0, Some(&key(next_new)))]).unwrap();
        next_new += 1;
    }
    assert!(steps >= 200);
    let stayed: Vec<u64> = seen.iter().copied().filter(|n| *n < 20_000 && n % 3 == 0).collect();
    assert_eq!(stayed, (0..20_000).step_by(3).collect::<Vec<_>>());
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count, "a row was seen twice");
}

#[test]
fn emptied_pages_serve_other_tables() {
    let memory = DataMemory::new(60);
    let columns = || vec![fixed("id", 8), var("text", 400)];
    let (mut a, mut b) =
        (fragment(&table(columns(), &[0]), &memory), fragment(&table(columns(), &[0]), &memory));
    let fill = |f: &mut Fragment| {
        let mut n = 0u64;
        loop {
            let id = n.to_le_bytes();
            match insert(f, &id, &[(0, Some(&id)), (1, Some(&[n as u8; 200]))]) {
                Ok(row) => f.tup.commit_insert(row, 1),
                Err(error) => {
                    assert_eq!(error, TupError::Full(MemoryFull::DataMemory));
                    return n;
                }
            }
            n += 1;
        }
    };
    let rows = fill(&mut a);
    assert!(rows > 60 * 32_768 / 280, "only {rows} rows");
    assert_eq!(fill(&mut b), 0);
    for n in 0..rows * 95 / 100 {
        let id = n.to_le_bytes();
        let row = a.find(KeyHash::of(&id), &id).unwrap();
        a.commit_delete(KeyHash::of(&id), row);
    }
    let second = fill(&mut b);
    assert!(second * 10 >= rows * 8, "{second} rows after {rows}");
    let mut before = memory.used();
    while !b.free_some(4) {
        assert!(before - memory.used() <= 8);
        before = memory.used();
    }
    drop(a);
    assert_eq!(memory.used(), 0);
}
