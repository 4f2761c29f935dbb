//! Query: answers to clients' questions, from this node's catalog alone.
//!
//! Lists come in pages because an answer has to fit a frame; a page ends where the next entry could make it
//! too large.

use super::catalog::Catalog;
use super::plan::no_database;
use signals::ErrorCode;
use signals::control::{DictAnswer, DictQuery, Refusal};
use std::ops::Bound;

/// Bytes after which a page takes no further entry; an entry is at most a few KiB.
const PAGE_BYTES: usize = 64 << 10;
/// Bytes of an entry beyond its name and description, generously.
const ENTRY_BYTES: usize = 32;

/// Answers a question.
///
/// # Errors
/// What was asked for is not there.
pub(super) fn answer(catalog: &Catalog, query: &DictQuery) -> Result<DictAnswer, Refusal> {
    match query {
        DictQuery::TableByName { database, name } => {
            let found = catalog.database(database).ok_or_else(|| no_database(database))?;
            let info = found.tables.get(name).and_then(|id| catalog.table(*id)).ok_or_else(|| {
                let text = format!("table {:?}", format!("{database}/{name}"));
                Refusal::new(ErrorCode::TABLE_NOT_FOUND, text)
            })?;
            Ok(DictAnswer::Table(Box::new(info.clone())))
        }
        DictQuery::TableById(id) => {
            let no_table = || Refusal::new(ErrorCode::NO_SUCH_TABLE, format!("table id {id}"));
            let info = catalog.table(*id).ok_or_else(no_table)?;
            Ok(DictAnswer::Table(Box::new(info.clone())))
        }
        DictQuery::Databases { after } => {
            let entries =
                catalog.databases().range::<str, _>((Bound::Excluded(after.as_str()), Bound::Unbounded));
            let entries = entries.map(|(name, d)| (name.len() + d.info.sql.len(), d.info.clone()));
            let (databases, more) = page(entries);
            Ok(DictAnswer::Databases { databases, more })
        }
        DictQuery::Tables { database, after } => {
            let found = catalog.database(database).ok_or_else(|| no_database(database))?;
            let entries = found.tables.range::<str, _>((Bound::Excluded(after.as_str()), Bound::Unbounded));
            let entries = entries.filter_map(|(name, id)| {
                let version = catalog.table(*id)?.def.version;
                Some((name.len(), (name.clone(), *id, version)))
            });
            let (tables, more) = page(entries);
            Ok(DictAnswer::Tables { tables, more })
        }
    }
}

/// The first entries, each given with its size, that fit a page, and whether there are more.
fn page<T>(entries: impl Iterator<Item = (usize, T)>) -> (Vec<T>, bool) {
    let (mut taken, mut bytes) = (Vec::new(), 0);
    for (size, entry) in entries {
        if bytes >= PAGE_BYTES {
            return (taken, true);
        }
        bytes += size + ENTRY_BYTES;
        taken.push(entry);
    }
    (taken, false)
}
