//! The tables an LDM instance holds fragments of.
//!
//! A dropped table's fragments go to a graveyard whose memory is given back in slices, so that dropping a
//! large table does not hold up the worker.

use crate::ldm::digest::FragmentDigest;
use crate::ldm::fragment::Fragment;
use crate::ldm::page::DataMemory;
use crate::ldm::tup::RowLayout;
use crate::outbox::Outbox;
use signals::control::{ControlSignal, Refusal, TableInfo};
use signals::ids::SchemaVersion;
use signals::key::{KeyHash, KeyShape};
use signals::partition::PartitionMap;
use signals::{BlockRef, ErrorCode, FragmentId, TableId};
use std::sync::Arc;

pub(super) struct Table {
    version: SchemaVersion,
    shape: KeyShape,
    map: PartitionMap,
    /// By partition; those of other LDMs are `None`.
    fragments: Vec<Option<Box<Fragment>>>,
    /// Operations not yet over.
    operations: u32,
    /// New operations are refused.
    dropping: bool,
    /// Dict waits for `operations` to become 0.
    drop_waiter: Option<BlockRef>,
}

impl Table {
    #[inline]
    pub(super) fn check_version(&self, version: SchemaVersion) -> Result<(), ErrorCode> {
        if self.version != version {
            return Err(ErrorCode::INVALID_SCHEMA_VERSION);
        }
        if self.dropping {
            return Err(ErrorCode::TABLE_DROPPING);
        }
        Ok(())
    }

    /// The fragment here that `key` belongs into, and the key's hash for its index.
    #[inline]
    pub(super) fn place(
        &mut self,
        fragment: FragmentId,
        key: &[u8],
    ) -> Result<(&mut Fragment, KeyHash), ErrorCode> {
        let hash = KeyHash::of(key);
        let distribution = if self.shape.is_whole() && self.shape.fits(key) {
            hash
        } else {
            self.shape.distribution_hash(key).ok_or(ErrorCode::MALFORMED_ATTRIBUTES)?
        };
        if self.map.partition_of(distribution) != fragment.0 {
            return Err(ErrorCode::DISTRIBUTION_CHANGED);
        }
        match self.fragments.get_mut(fragment.0 as usize) {
            Some(Some(fragment)) => Ok((fragment, hash)),
            _ => Err(ErrorCode::DISTRIBUTION_CHANGED),
        }
    }

    pub(super) fn fragment_mut(&mut self, fragment: FragmentId) -> Option<&mut Fragment> {
        self.fragments.get_mut(fragment.0 as usize)?.as_deref_mut()
    }
}

#[derive(Default)]
pub(super) struct Tables {
    by_id: Vec<Option<Box<Table>>>,
    graveyard: Vec<Fragment>,
}

impl Tables {
    #[inline]
    pub(super) fn get(&mut self, id: TableId) -> Result<&mut Table, ErrorCode> {
        match self.by_id.get_mut(id.0 as usize) {
            Some(Some(table)) => Ok(table),
            _ => Err(ErrorCode::TABLE_NOT_DEFINED),
        }
    }

    /// The fragment of an operation that exists; tables with operations are not dropped.
    #[inline]
    pub(super) fn fragment(&mut self, id: TableId, fragment: FragmentId) -> Option<&mut Fragment> {
        self.by_id.get_mut(id.0 as usize)?.as_mut()?.fragment_mut(fragment)
    }

    #[inline]
    pub(super) fn operation_begins(&mut self, id: TableId) {
        if let Ok(table) = self.get(id) {
            table.operations += 1;
        }
    }

    #[inline]
    pub(super) fn operation_over(&mut self, me: BlockRef, id: TableId, out: &mut Outbox) {
        if let Ok(table) = self.get(id) {
            table.operations -= 1;
            if table.operations == 0
                && let Some(dict) = table.drop_waiter.take()
            {
                out.control(me, dict, &ControlSignal::TableConf { table: id });
            }
        }
    }

    pub(super) fn add(
        &mut self,
        me: BlockRef,
        memory: &DataMemory,
        dict: BlockRef,
        info: &TableInfo,
        out: &mut Outbox,
    ) {
        let id = info.def.id;
        let index = id.0 as usize;
        match build(me, memory, info) {
            Ok(table) => {
                if self.by_id.len() <= index {
                    self.by_id.resize_with(index + 1, || None);
                }
                self.by_id[index] = Some(Box::new(table));
                out.control(me, dict, &ControlSignal::TableConf { table: id });
            }
            Err(refusal) => out.control(me, dict, &ControlSignal::TableRef { table: id, refusal }),
        }
    }

    pub(super) fn prepare_drop(&mut self, me: BlockRef, dict: BlockRef, id: TableId, out: &mut Outbox) {
        if let Ok(table) = self.get(id) {
            table.dropping = true;
            if table.operations > 0 {
                table.drop_waiter = Some(dict);
                return;
            }
        }
        out.control(me, dict, &ControlSignal::TableConf { table: id });
    }

    pub(super) fn cancel_drop(&mut self, me: BlockRef, id: TableId, out: &mut Outbox) {
        if let Ok(table) = self.get(id) {
            table.dropping = false;
            if let Some(dict) = table.drop_waiter.take() {
                let refusal = Refusal::new(ErrorCode::SCHEMA_TRANS_ABORTED, "the drop was cancelled");
                out.control(me, dict, &ControlSignal::TableRef { table: id, refusal });
            }
        }
    }

    pub(super) fn drop(&mut self, me: BlockRef, dict: BlockRef, id: TableId, out: &mut Outbox) {
        if let Some(slot) = self.by_id.get_mut(id.0 as usize)
            && let Some(table) = slot.take()
        {
            self.graveyard.extend(table.fragments.into_iter().flatten().map(|f| *f));
        }
        out.control(me, dict, &ControlSignal::TableConf { table: id });
    }

    /// What every fragment here holds.
    pub(super) fn digests(&self) -> impl Iterator<Item = FragmentDigest> {
        self.by_id.iter().enumerate().flat_map(|(id, table)| {
            let fragments = table.iter().flat_map(|t| t.fragments.iter().enumerate());
            fragments.filter_map(move |(number, fragment)| {
                let (id, number) = (TableId(id as u32), FragmentId(number as u16));
                fragment.as_deref().map(|f| FragmentDigest::of(id, number, f))
            })
        })
    }

    /// Whether dropped tables still hold memory.
    pub(super) fn is_burying(&self) -> bool {
        !self.graveyard.is_empty()
    }

    /// Gives some memory of dropped tables back.
    pub(super) fn bury(&mut self, pages: usize, forget: bool) {
        if forget {
            self.graveyard.drain(..).for_each(std::mem::forget);
        }
        if let Some(fragment) = self.graveyard.last_mut()
            && fragment.free_some(pages)
        {
            self.graveyard.pop();
        }
    }
}

fn build(me: BlockRef, memory: &DataMemory, info: &TableInfo) -> Result<Table, Refusal> {
    let layout = Arc::new(RowLayout::new(&info.def).map_err(|(code, detail)| Refusal::new(code, detail))?);
    let mut fragments = Vec::with_capacity(info.map.partitions.len());
    for replicas in &info.map.partitions {
        let ours = replicas.iter().any(|r| r.node == me.node() && r.ldm == me.instance());
        if !ours {
            fragments.push(None);
            continue;
        }
        fragments.push(Some(Box::new(Fragment::new(layout.clone(), memory))));
    }
    Ok(Table {
        version: info.def.version,
        shape: KeyShape::of(&info.def),
        map: info.map.clone(),
        fragments,
        operations: 0,
        dropping: false,
        drop_waiter: None,
    })
}
