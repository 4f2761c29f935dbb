//! Bank: transfers between accounts under locks, and readers that add all accounts up. The sum never changes.

use super::{Client, Load, Local, column};
use crate::sim::rng::Rng;
use ndbapi::{NdbError, ScanSpec, TableHandle};
use signals::table::{ColumnStorage, ColumnType};
use std::cell::Cell;

const BALANCE: i64 = 1000;

/// See the module.
pub(crate) struct Bank {
    accounts: u64,
    /// The first wrong sum seen.
    wrong: Cell<Option<(i64, &'static str)>>,
}

impl Bank {
    pub(crate) fn new(accounts: u64) -> Self {
        Self { accounts: accounts.max(2), wrong: Cell::new(None) }
    }

    fn sum(&self) -> i64 {
        self.accounts as i64 * BALANCE
    }

    async fn transfer(&self, at: &Client, rng: &mut Rng) -> Result<(), NdbError> {
        let table = at.table("bank").await?;
        let from = rng.below(self.accounts) as u32;
        let to = (from + 1 + rng.below(self.accounts - 1) as u32) % self.accounts as u32;
        let amount = rng.range(1..=100) as i64;
        let mut tx = at.connection.begin();
        let (a, b) = if rng.chance(500) {
            // Both in one round trip.
            let a = tx.read_exclusive(&table).key(&[from.into()]).finish()?;
            let b = tx.read_exclusive(&table).key(&[to.into()]).finish()?;
            let results = tx.execute().await?;
            (balance(&results, a)?, balance(&results, b)?)
        } else {
            let a = tx.read_exclusive(&table).key(&[from.into()]).finish()?;
            let a = balance(&tx.execute().await?, a)?;
            let b = tx.read_exclusive(&table).key(&[to.into()]).finish()?;
            (a, balance(&tx.execute().await?, b)?)
        };
        let (Some(a), Some(b)) = (a, b) else { return tx.abort().await };
        let id = tx.id();
        at.env.remark(|| format!("{id:?}: {amount} from account {from} ({a}) to {to} ({b})"));
        tx.update(&table).key(&[from.into()]).set("balance", a - amount).finish()?;
        if rng.chance(300) {
            tx.execute().await?;
        }
        if rng.chance(50) {
            return tx.abort().await;
        }
        tx.update(&table).key(&[to.into()]).set("balance", b + amount).finish()?;
        let done = tx.commit().await.map(drop);
        at.env.remark(|| format!("{id:?}: {done:?}"));
        done
    }

    /// Adds up under shared locks: no transfer can be half seen.
    async fn add_up(&self, at: &Client) -> Result<(), NdbError> {
        let table = at.table("bank").await?;
        let mut tx = at.connection.begin();
        let mut reads = Vec::new();
        for account in 0..self.accounts as u32 {
            reads.push(tx.read_shared(&table).key(&[account.into()]).finish()?);
        }
        let results = tx.execute().await?;
        let mut sum = 0;
        for read in reads {
            match balance(&results, read)? {
                Some(balance) => sum += balance,
                None => return tx.abort().await,
            }
        }
        if sum != self.sum() {
            at.env.remark(|| format!("{:?}: the sum is {sum}", tx.id()));
            self.wrong.set(Some((sum, "under shared locks")));
        }
        tx.commit().await.map(drop)
    }
}

fn balance(results: &ndbapi::Results, read: ndbapi::OpId) -> Result<Option<i64>, NdbError> {
    match results.row(read)? {
        Some(row) => row.get_i64("balance"),
        None => Ok(None),
    }
}

async fn scan_sum(at: &Client, table: &TableHandle) -> Result<(u64, i64), NdbError> {
    let mut scan = at.connection.begin().scan(ScanSpec::new(table)).await?;
    let (mut rows, mut sum) = (0, 0);
    while let Some(batch) = scan.next().await? {
        for row in batch.rows() {
            rows += 1;
            sum += row.get_i64("balance")?.unwrap_or_default();
        }
    }
    Ok((rows, sum))
}

impl Load for Bank {
    fn set_up<'a>(&'a self, at: &'a Client) -> Local<'a, Result<(), NdbError>> {
        Box::pin(async move {
            let columns = vec![
                column("id", ColumnType::Unsigned, ColumnStorage::Fixed { size: 4 }),
                column("balance", ColumnType::Signed, ColumnStorage::Fixed { size: 8 }),
            ];
            let table = at.create("bank", columns).await?;
            for account in 0..self.accounts as u32 {
                let mut tx = at.connection.begin();
                tx.write(&table).key(&[account.into()]).set("balance", BALANCE).finish()?;
                tx.commit().await?;
            }
            Ok(())
        })
    }

    fn act<'a>(&'a self, at: &'a Client, rng: &'a mut Rng) -> Local<'a, ()> {
        Box::pin(async move {
            // What fails here fails by right, or shows in the sum.
            let _ = if rng.chance(100) { self.add_up(at).await } else { self.transfer(at, rng).await };
        })
    }

    fn judge(&self) -> Result<(), String> {
        match self.wrong.get() {
            None => Ok(()),
            Some((sum, how)) => Err(format!("bank: the sum is {sum} {how}, not {}", self.sum())),
        }
    }

    fn look<'a>(&'a self, at: &'a Client) -> Local<'a, Result<Result<(), String>, NdbError>> {
        Box::pin(async move {
            let table = at.table("bank").await?;
            let (rows, sum) = scan_sum(at, &table).await?;
            Ok(if rows == self.accounts && sum == self.sum() {
                Ok(())
            } else {
                let (accounts, right) = (self.accounts, self.sum());
                Err(format!("bank: {rows} accounts with {sum} at the end, not {accounts} with {right}"))
            })
        })
    }

    fn forget(&self) {
        self.wrong.set(None);
    }
}
