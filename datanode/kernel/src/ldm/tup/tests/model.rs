//! A long random run of transactions on rows, compared with a model after every step.
//!
//! The model keeps for every key what is committed and what its transaction sees. Memory is scarce in most
//! runs, so that every move meets `MemoryFull` somewhere; what is refused must leave everything as it was.

use std::collections::BTreeMap;

use super::*;

type Row = Vec<Option<Vec<u8>>>;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// What the model knows of one key.
#[derive(Default)]
struct Key {
    row: Option<RowRef>,
    /// What readers without locks see: the slot.
    slot: Row,
    uncommitted: bool,
    /// What the transaction sees, while it has changed the row; `None` within: it has deleted it.
    seen: Option<Option<Row>>,
    copies: Vec<CopyTuple>,
    epoch: u64,
}

struct Run {
    memory: DataMemory,
    f: Fragment,
    random: Random,
    keys: BTreeMap<u64, Key>,
    pool: Vec<CopyTuple>,
    epoch: u64,
    long: u64,
    refused: u64,
}

/// Columns of the table: n (nullable, 4), id (key, 8), name (nullable, var), tag (5, default), note (var,
/// default).
const COLUMNS: u16 = 5;

impl Run {
    fn new(seed: u64, pages: u64, long: u64) -> Self {
        let memory = DataMemory::new(pages);
        Run {
            f: fragment(&mixed_table(), &memory),
            memory,
            random: Random(seed),
            keys: BTreeMap::new(),
            pool: Vec::new(),
            epoch: 0,
            long,
            refused: 0,
        }
    }

    /// Random values for some columns, in random order.
    fn some_values(&mut self, id: u64, with_key: bool) -> Vec<(u16, Option<Vec<u8>>)> {
        let mut values = Vec::new();
        for column in 0..COLUMNS {
            if column == 1 {
                if with_key {
                    values.push((1, Some(id.to_le_bytes().to_vec())));
                }
                continue;
            }
            if self.random.below(3) == 0 {
                continue;
            }
            let null = column % 2 == 0 && column < 4 && self.random.below(4) == 0;
            let len = match column {
                0 => 4,
                3 => 5,
                2 => self.random.below(301),
                _ if self.random.below(8) == 0 => self.random.below(self.long),
                _ => self.random.below(60),
            };
            let byte = self.random.next() as u8;
            values.push((column, (!null).then(|| (0..len).map(|i| byte.wrapping_add(i as u8)).collect())));
        }
        let len = values.len() as u64;
        for i in 0..values.len() {
            values.swap(i, self.random.below(len) as usize);
        }
        values
    }

    fn encode(values: &[(u16, Option<Vec<u8>>)]) -> Vec<u8> {
        let borrowed: Vec<_> = values.iter().map(|(c, v)| (*c, v.as_deref())).collect();
        attrs(&borrowed)
    }

    fn apply(row: &mut Row, values: Vec<(u16, Option<Vec<u8>>)>) {
        for (column, value) in values {
            row[column as usize] = value;
        }
    }

    fn fresh_row(id: u64) -> Row {
        let id = id.to_le_bytes().to_vec();
        vec![None, Some(id), None, Some(b"dflt!".to_vec()), Some(b"no note".to_vec())]
    }

    fn decode(bytes: &[u8]) -> Row {
        let mut row = Row::new();
        for (i, entry) in AttrReader::new(bytes).enumerate() {
            let (column, value) = entry.unwrap();
            assert_eq!(column as usize, i);
            row.push(value.map(<[u8]>::to_vec));
        }
        row
    }

    fn insert(&mut self, id: u64) {
        let values = self.some_values(id, true);
        let key = id.to_le_bytes();
        let used = self.memory.used();
        match self.f.insert(KeyHash::of(&key), &key, &Self::encode(&values)) {
            Ok(row) => {
                let mut slot = Self::fresh_row(id);
                Self::apply(&mut slot, values);
                let seen = Some(Some(slot.clone()));
                let key = Key { row: Some(row), slot, uncommitted: true, seen, copies: vec![], epoch: 0 };
                self.keys.insert(id, key);
            }
            Err(error) => {
                assert_eq!((error, self.memory.used()), (TupError::Full(MemoryFull::DataMemory), used));
                self.refused += 1;
            }
        }
    }

    fn update(&mut self, id: u64) {
        let mut copy = self.pool.pop().unwrap_or_default();
        let deleted = matches!(self.keys[&id].seen, Some(None));
        let with_key = deleted || self.random.below(3) == 0;
        let values = self.some_values(id, with_key);
        let key = self.keys.get_mut(&id).unwrap();
        let before = match key.copies.last() {
            _ if deleted => Before::Deleted,
            Some(copy) => Before::Copy(copy),
            None => Before::Row,
        };
        let used = self.memory.used();
        match self.f.tup.prepare_update(key.row.unwrap(), before, &Self::encode(&values), &mut copy) {
            Ok(()) => {
                let mut row = match key.seen.take() {
                    Some(Some(row)) => row,
                    Some(None) => Self::fresh_row(id),
                    None => key.slot.clone(),
                };
                Self::apply(&mut row, values);
                key.seen = Some(Some(row));
                key.copies.push(copy);
            }
            Err(error) => {
                assert_eq!((error, self.memory.used()), (TupError::Full(MemoryFull::DataMemory), used));
                self.refused += 1;
                self.pool.push(copy);
            }
        }
    }

    fn end(&mut self, id: u64, commit: bool) {
        let mut key = self.keys.remove(&id).unwrap();
        let row = key.row.unwrap();
        let hash = KeyHash::of(&id.to_le_bytes());
        let seen = key.seen.take();
        if commit && matches!(seen, Some(Some(_))) {
            self.epoch += 1;
            key.epoch = self.epoch;
            if let Some(mut newest) = key.copies.pop() {
                self.f.tup.commit_update(row, &mut newest, self.epoch);
                self.pool.push(newest);
            } else {
                self.f.tup.commit_insert(row, self.epoch);
            }
        }
        for mut copy in key.copies.drain(..) {
            self.f.tup.abort_update(&mut copy);
            self.pool.push(copy);
        }
        match seen {
            Some(None) if commit => return self.f.commit_delete(hash, row),
            _ if key.uncommitted && !commit => return self.f.abort_insert(hash, row),
            Some(Some(seen)) if commit => {
                key.slot = seen;
                key.uncommitted = false;
            }
            _ => {}
        }
        self.keys.insert(id, key);
    }

    fn step(&mut self) {
        let id = self.random.below(60);
        let choice = self.random.below(10);
        let Some(key) = self.keys.get_mut(&id) else {
            return self.insert(id);
        };
        match choice {
            0..=4 => self.update(id),
            5 => {
                if !matches!(key.seen, Some(None)) {
                    key.seen = Some(None);
                }
            }
            6..=7 => self.end(id, true),
            8 => self.end(id, false),
            // Whole transactions, so that rows also go.
            _ => {
                key.seen = Some(None);
                self.end(id, true);
            }
        }
    }

    fn check(&self) {
        let mut rows = Vec::new();
        let mut promised = 0;
        for (id, key) in &self.keys {
            let bytes = id.to_le_bytes();
            let row = key.row.unwrap();
            assert_eq!(self.f.find(KeyHash::of(&bytes), &bytes), Some(row));
            assert_eq!(Self::decode(&read_all(&self.f, row)), key.slot);
            assert_eq!(self.f.tup.is_uncommitted(row), key.uncommitted);
            assert_eq!(self.f.tup.epoch(row), key.epoch);
            if let (Some(copy), Some(Some(seen))) = (key.copies.last(), &key.seen) {
                let mut out = Vec::new();
                self.f.tup.layout().read_all(copy.tuple(), &mut out);
                assert_eq!(&Self::decode(&out), seen);
            }
            promised += key.copies.iter().map(CopyTuple::promised_bytes).sum::<u64>();
            rows.push(row);
        }
        rows.sort_unstable();
        let (mut cursor, mut budget) = (self.f.tup.start_scan(), u32::MAX);
        let mut scanned = Vec::new();
        while let ScanStep::Row(row) = self.f.tup.next(&mut cursor, &mut budget) {
            scanned.push(row);
        }
        assert_eq!(scanned, rows);
        assert_eq!(self.f.tup.stats().rows, rows.len() as u64);
        self.f.tup.var.check(promised, |row| var_ref(self.f.tup.fixed.slot(row)));
        let (tup, index) = self.f.stats();
        let bytes = tup.fixed_alloc_bytes + tup.var_alloc_bytes + index;
        assert_eq!(bytes, self.memory.used() * PAGE_BYTES as u64);
    }

    fn empty(&mut self) {
        for id in self.keys.keys().copied().collect::<Vec<_>>() {
            self.keys.get_mut(&id).unwrap().seen = Some(None);
            self.end(id, true);
        }
        assert_eq!(self.memory.used(), 0, "pages leaked");
    }
}

#[test]
fn random_transactions_agree_with_the_model() {
    let mut refused = 0;
    let mut compactions = 0;
    for seed in 0..120 {
        // Little memory for most runs: down to not even a first row.
        let pages = [0, 1, 2, 3, 4, 5, 7, 1000][seed as usize % 8];
        let long = [100, 1000, 4001][seed as usize % 3];
        let mut run = Run::new(seed, pages, long);
        for step in 0..1500 {
            run.step();
            if step % 25 == 0 {
                run.check();
            }
        }
        compactions += run.f.tup.stats().var_compactions;
        run.empty();
        assert!(pages < 1000 || run.refused == 0);
        refused += run.refused;
    }
    assert!(refused > 1000 && compactions > 100, "{refused} refused, {compactions} compactions");
}
