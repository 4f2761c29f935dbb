//! Reads and scans of the mixed load, outside of transactions and in them.
//!
//! A scan that comes to its end has shown every row that was there all along, once; a row that was taken away
//! and put back meanwhile may be shown twice or not at all. What a transaction has changed, and what it has
//! locked, it sees as it left it.

use super::trans::Known;
use super::{Client, Content, Done, Mixed, rows};
use crate::sim::rng::Rng;
use ndbapi::{ScanSpec, TableHandle, Transaction};
use std::collections::BTreeMap;

/// Reads a few rows as they were committed last, without a lock.
pub(super) async fn read_some(load: &Mixed, at: &Client, table: &TableHandle, rng: &mut Rng) -> Done<()> {
    let mut tx = at.connection.begin();
    let mut reads = Vec::new();
    for _ in 0..rng.log_range(1..=8) {
        let id = load.draw_row(rng);
        reads.push((id, tx.read(table).key(&[id.into()]).finish()?));
    }
    let from = load.moment();
    let results = tx.execute().await?;
    for (id, read) in reads {
        let row = match results.row(read) {
            Ok(row) => row.map(|row| rows::decode(&row)).transpose()?,
            Err(error) => {
                load.refused(at, id, error.code(), from)?;
                continue;
            }
        };
        if let Some((other, _)) = row.filter(|(found, _)| *found != id) {
            return Err(format!("row {other} is read where row {id} was asked for").into());
        }
        load.see(id, row.map(|(_, content)| content).as_ref(), from)?;
    }
    Ok(())
}

/// Scans the table, to the end or not, and judges what is shown.
pub(super) async fn scan(
    load: &Mixed,
    at: &Client,
    tx: &mut Transaction,
    table: &TableHandle,
    known: Option<&Known>,
    rng: &mut Rng,
) -> Done<()> {
    let mut spec = ScanSpec::new(table);
    if rng.chance(700) {
        spec = spec.batch(rng.log_range(1..=50) as u32, rng.log_range(1..=30_000) as u32);
    }
    if rng.chance(500) {
        spec = spec.parallelism(rng.range(1..=4) as u16);
    }
    let batches = if rng.chance(300) { rng.below(4) } else { u64::MAX };
    let from = load.moment();
    let mut seen: BTreeMap<u32, Content> = BTreeMap::new();
    let mut scan = tx.scan(spec).await?;
    let mut count = 0;
    loop {
        if count == batches {
            if rng.chance(500) {
                scan.close();
            }
            return Ok(());
        }
        count += 1;
        let Some(batch) = scan.next().await? else { break };
        for row in batch.rows() {
            let (id, content) = rows::decode(&row)?;
            let own = known.and_then(|known| known.get(&id));
            match own {
                Some(own) if own.content == Some(content) => {}
                Some(own) => return Err(format!("row {id} is scanned as {content:?}, not {own:?}").into()),
                None => load.see(id, Some(&content), from)?,
            }
            if seen.insert(id, content).is_some() {
                if own.is_some() {
                    return Err(format!("row {id}, which nobody else can change, is scanned twice").into());
                }
                load.see(id, None, from)
                    .map_err(|_| format!("row {id}, there all along, is scanned twice"))?;
            }
        }
        if rng.chance(100) {
            at.env.sleep(rng.log_range(1..=50) * 1_000_000).await;
        }
    }
    for id in 0..load.rows {
        if seen.contains_key(&id) {
            continue;
        }
        match known.and_then(|known| known.get(&id)) {
            Some(own) if own.content.is_some() => {
                return Err(format!("row {id} is not scanned and must be {own:?}").into());
            }
            Some(_) => {}
            None => load.see(id, None, from)?,
        }
    }
    Ok(())
}
