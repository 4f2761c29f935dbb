//! Ring: rows that point at each other in one great circle, changed three at a time. A ring stays a ring.
//!
//! A transaction takes three successive rows `a -> b -> c -> d` under exclusive locks and makes them
//! `a -> c -> b -> d`. Whoever sees half of such a change, or loses one of two that overlap, finds a shorter
//! circle or a row that leads nowhere. Each change also counts in its first row, so that the sum of the
//! counts says how many changes the rows hold: those that were acknowledged, and of those nobody knows the
//! end of, some.

use super::{Client, Load, Local, column};
use crate::sim::rng::Rng;
use ndbapi::{NdbError, OpId, Results, ScanSpec, TableHandle};
use signals::table::{ColumnStorage, ColumnType};
use std::cell::{Cell, RefCell};

/// See the module.
pub(crate) struct Ring {
    rows: u32,
    /// Changes that were acknowledged.
    acknowledged: Cell<u64>,
    /// Changes whose commit was asked for and that did not fail for sure; the acknowledged ones among them.
    possible: Cell<u64>,
    /// The first wrong thing seen.
    wrong: RefCell<Option<String>>,
}

/// A row's contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Link {
    next: u32,
    changes: u64,
}

impl Ring {
    pub(crate) fn new(rows: u64) -> Self {
        Self {
            rows: rows.max(4) as u32,
            acknowledged: Cell::new(0),
            possible: Cell::new(0),
            wrong: RefCell::default(),
        }
    }

    fn note(&self, text: String) {
        self.wrong.borrow_mut().get_or_insert(text);
    }

    async fn swap(&self, at: &Client, rng: &mut Rng) -> Result<(), NdbError> {
        let table = at.table("ring").await?;
        let mut tx = at.connection.begin();
        let a = rng.below(u64::from(self.rows)) as u32;
        let mut links = Vec::new();
        let mut id = a;
        for _ in 0..3 {
            let read = tx.read_exclusive(&table).key(&[id.into()]).finish()?;
            let Some(link) = link(&tx.execute().await?, read)? else {
                self.note(format!("row {id} is not there"));
                return tx.abort().await;
            };
            links.push(link);
            id = link.next;
        }
        let (first, second, third) = (links[0], links[1], links[2]);
        let (b, c, d) = (first.next, second.next, third.next);
        if a == b || b == c || a == c {
            self.note(format!("under exclusive locks {a} leads to {b} and that to {c}"));
            return tx.abort().await;
        }
        let mut set = [(a, c, first.changes + 1), (c, b, third.changes), (b, d, second.changes)];
        // Any order will do; locks are held.
        let turn = rng.index(set.len());
        set.rotate_left(turn);
        let early = rng.index(6);
        for (number, (id, next, changes)) in set.into_iter().enumerate() {
            tx.update(&table).key(&[id.into()]).set("next", next).set("changes", changes).finish()?;
            if number == early {
                tx.execute().await?;
            }
        }
        if rng.chance(50) {
            tx.execute().await?;
            return tx.abort().await;
        }
        self.possible.set(self.possible.get() + 1);
        let committed = tx.commit().await;
        match &committed {
            Ok(_) => self.acknowledged.set(self.acknowledged.get() + 1),
            Err(error) if error.unknown_outcome() => {}
            Err(_) => self.possible.set(self.possible.get() - 1),
        }
        committed.map(drop)
    }

    /// Walks the ring under shared locks, row by row or with all rows locked at once.
    async fn walk(&self, at: &Client, rng: &mut Rng) -> Result<(), NdbError> {
        let table = at.table("ring").await?;
        let mut tx = at.connection.begin();
        let mut links: Vec<Option<Link>> = vec![None; self.rows as usize];
        if rng.chance(600) {
            let mut reads = Vec::new();
            for id in 0..self.rows {
                reads.push(tx.read_shared(&table).key(&[id.into()]).finish()?);
            }
            let results = tx.execute().await?;
            for (place, read) in links.iter_mut().zip(reads) {
                *place = link(&results, read)?;
            }
        } else {
            let mut id = rng.below(u64::from(self.rows)) as u32;
            while links.get(id as usize) == Some(&None) {
                let read = tx.read_shared(&table).key(&[id.into()]).finish()?;
                let found = link(&tx.execute().await?, read)?;
                let Some(found) = found else { break };
                links[id as usize] = Some(found);
                id = found.next;
            }
        }
        if let Err(text) = one_ring(&links) {
            self.note(format!("{text}, under shared locks"));
        }
        tx.commit().await.map(drop)
    }

    /// What is wrong with all rows as a scan shows them at the end.
    fn verdict(&self, links: &[Option<Link>]) -> Result<(), String> {
        one_ring(links)?;
        let changes: u64 = links.iter().flatten().map(|l| l.changes).sum();
        let (least, most) = (self.acknowledged.get(), self.possible.get());
        if (least..=most).contains(&changes) {
            Ok(())
        } else {
            Err(format!("the rows hold {changes} changes, acknowledged were {least}, possible {most}"))
        }
    }
}

fn link(results: &Results, read: OpId) -> Result<Option<Link>, NdbError> {
    let Some(row) = results.row(read)? else { return Ok(None) };
    Ok(Some(Link {
        next: row.get_u32("next")?.unwrap_or(u32::MAX),
        changes: row.get_u64("changes")?.unwrap_or_default(),
    }))
}

/// Whether row by row one comes round to the first row, by way of all others.
fn one_ring(links: &[Option<Link>]) -> Result<(), String> {
    let (mut id, mut steps) = (0, 0);
    loop {
        let Some(Some(link)) = links.get(id as usize) else {
            return Err(format!("after {steps} steps row {id} is not there"));
        };
        (id, steps) = (link.next, steps + 1);
        if id == 0 && steps == links.len() {
            return Ok(());
        }
        if id == 0 || steps == links.len() {
            return Err(format!("the ring of {} rows is at row {id} after {steps} steps", links.len()));
        }
    }
}

async fn scan(at: &Client, table: &TableHandle, rows: u32) -> Result<Vec<Option<Link>>, NdbError> {
    let mut scan = at.connection.begin().scan(ScanSpec::new(table)).await?;
    let mut links = vec![None; rows as usize];
    while let Some(batch) = scan.next().await? {
        for row in batch.rows() {
            let id = row.get_u32("id")?.unwrap_or(u32::MAX);
            let link = Link {
                next: row.get_u32("next")?.unwrap_or(u32::MAX),
                changes: row.get_u64("changes")?.unwrap_or_default(),
            };
            if let Some(place) = links.get_mut(id as usize) {
                *place = Some(link);
            }
        }
    }
    Ok(links)
}

impl Load for Ring {
    fn set_up<'a>(&'a self, at: &'a Client) -> Local<'a, Result<(), NdbError>> {
        Box::pin(async move {
            let columns = vec![
                column("id", ColumnType::Unsigned, ColumnStorage::Fixed { size: 4 }),
                column("next", ColumnType::Unsigned, ColumnStorage::Fixed { size: 4 }),
                column("changes", ColumnType::Unsigned, ColumnStorage::Fixed { size: 8 }),
            ];
            let table = at.create("ring", columns).await?;
            for id in 0..self.rows {
                let next = (id + 1) % self.rows;
                let mut tx = at.connection.begin();
                tx.write(&table).key(&[id.into()]).set("next", next).set("changes", 0u64).finish()?;
                tx.commit().await?;
            }
            Ok(())
        })
    }

    fn act<'a>(&'a self, at: &'a Client, rng: &'a mut Rng) -> Local<'a, ()> {
        Box::pin(async move {
            // What fails here fails by right, or shows in the ring.
            let _ = if rng.chance(150) { self.walk(at, rng).await } else { self.swap(at, rng).await };
        })
    }

    fn judge(&self) -> Result<(), String> {
        self.wrong.borrow().as_ref().map_or(Ok(()), |text| Err(format!("ring: {text}")))
    }

    fn look<'a>(&'a self, at: &'a Client) -> Local<'a, Result<Result<(), String>, NdbError>> {
        Box::pin(async move {
            let table = at.table("ring").await?;
            let links = scan(at, &table, self.rows).await?;
            Ok(self.verdict(&links).map_err(|text| format!("ring: {text}, at the end")))
        })
    }

    fn forget(&self) {
        self.acknowledged.set(0);
        self.possible.set(0);
        self.wrong.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(next: &[u32]) -> Vec<Option<Link>> {
        next.iter().map(|next| Some(Link { next: *next, changes: 1 })).collect()
    }

    #[test]
    fn only_one_ring_over_all_rows_is_one() {
        assert_eq!(one_ring(&ring(&[1, 2, 3, 0])), Ok(()));
        assert_eq!(one_ring(&ring(&[2, 3, 1, 0])), Ok(()));
        assert!(one_ring(&ring(&[1, 0, 3, 2])).is_err(), "two rings");
        assert!(one_ring(&ring(&[1, 2, 1, 0])).is_err(), "a ring that does not come back");
        assert!(one_ring(&ring(&[1, 2, 9, 0])).is_err(), "a row that leads nowhere");
        assert!(one_ring(&[Some(Link { next: 1, changes: 0 }), None]).is_err(), "a row missing");
    }

    #[test]
    fn changes_lost_or_from_nowhere_are_noticed() {
        let load = Ring::new(4);
        load.acknowledged.set(3);
        load.possible.set(4);
        assert!(load.verdict(&ring(&[1, 2, 3, 0])).is_ok());
        load.possible.set(3);
        assert!(load.verdict(&ring(&[1, 2, 3, 0])).is_err(), "one more than possible");
        load.acknowledged.set(5);
        load.possible.set(9);
        assert!(load.verdict(&ring(&[1, 2, 3, 0])).is_err(), "one acknowledged lost");
    }
}
