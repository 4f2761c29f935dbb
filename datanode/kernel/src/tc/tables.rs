//! The tables a TC instance knows: versions, placement, and how many operations are on their way.
//!
//! Dict tells TC of a table before any client can see it, and of its end in two steps: first new operations
//! are refused and dict learns when the last one is over, then the table is forgotten.

use crate::outbox::Outbox;
use signals::control::{ControlSignal, Refusal, TableInfo};
use signals::ids::{MAX_REPLICAS, SchemaVersion};
use signals::key::KeyShape;
use signals::partition::PartitionMap;
use signals::{BlockNumber, BlockRef, ErrorCode, FragmentId, TableId};

/// Where an operation goes.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) fragment: FragmentId,
    /// The chain, primary first.
    pub(super) replicas: [BlockRef; MAX_REPLICAS],
    pub(super) count: u8,
}

struct Table {
    version: SchemaVersion,
    shape: KeyShape,
    map: PartitionMap,
    /// Chain per partition, from `map`.
    places: Vec<Place>,
    /// Operations not yet over.
    operations: u32,
    /// New operations are refused.
    dropping: bool,
    /// Dict waits for `operations` to become 0.
    drop_waiter: Option<BlockRef>,
}

#[derive(Default)]
pub(super) struct Tables {
    by_id: Vec<Option<Box<Table>>>,
}

impl Tables {
    /// Finds the place of a key and counts an operation on the table.
    #[inline]
    pub(super) fn enter(
        &mut self,
        id: TableId,
        version: SchemaVersion,
        key: &[u8],
    ) -> Result<Place, ErrorCode> {
        let Some(Some(table)) = self.by_id.get_mut(id.0 as usize) else {
            return Err(ErrorCode::TABLE_NOT_DEFINED);
        };
        if table.version != version {
            return Err(ErrorCode::INVALID_SCHEMA_VERSION);
        }
        if table.dropping {
            return Err(ErrorCode::TABLE_BEING_DROPPED);
        }
        let hash = table.shape.distribution_hash(key).ok_or(ErrorCode::MALFORMED_ATTRIBUTES)?;
        table.operations += 1;
        Ok(table.places[table.map.partition_of(hash) as usize])
    }

    /// One operation that [`Self::enter`] counted is over.
    #[inline]
    pub(super) fn operation_over(&mut self, me: BlockRef, id: TableId, out: &mut Outbox) {
        if let Some(Some(table)) = self.by_id.get_mut(id.0 as usize) {
            table.operations -= 1;
            if table.operations == 0
                && let Some(dict) = table.drop_waiter.take()
            {
                out.control(me, dict, &ControlSignal::TableConf { table: id });
            }
        }
    }

    pub(super) fn add(&mut self, me: BlockRef, dict: BlockRef, info: &TableInfo, out: &mut Outbox) {
        let index = info.def.id.0 as usize;
        if self.by_id.len() <= index {
            self.by_id.resize_with(index + 1, || None);
        }
        let places = info
            .map
            .partitions
            .iter()
            .enumerate()
            .map(|(partition, replicas)| {
                let mut chain = [BlockRef::NONE; MAX_REPLICAS];
                for (slot, replica) in chain.iter_mut().zip(replicas) {
                    *slot = BlockRef::new(replica.node, BlockNumber::Dblqh, replica.ldm);
                }
                Place { fragment: FragmentId(partition as u16), replicas: chain, count: replicas.len() as u8 }
            })
            .collect();
        self.by_id[index] = Some(Box::new(Table {
            version: info.def.version,
            shape: KeyShape::of(&info.def),
            map: info.map.clone(),
            places,
            operations: 0,
            dropping: false,
            drop_waiter: None,
        }));
        out.control(me, dict, &ControlSignal::TableConf { table: info.def.id });
    }

    pub(super) fn prepare_drop(&mut self, me: BlockRef, dict: BlockRef, id: TableId, out: &mut Outbox) {
        if let Some(Some(table)) = self.by_id.get_mut(id.0 as usize) {
            table.dropping = true;
            if table.operations > 0 {
                table.drop_waiter = Some(dict);
                return;
            }
        }
        out.control(me, dict, &ControlSignal::TableConf { table: id });
    }

    pub(super) fn cancel_drop(&mut self, me: BlockRef, id: TableId, out: &mut Outbox) {
        if let Some(Some(table)) = self.by_id.get_mut(id.0 as usize) {
            table.dropping = false;
            if let Some(dict) = table.drop_waiter.take() {
                let refusal = Refusal::new(ErrorCode::SCHEMA_TRANS_ABORTED, "the drop was cancelled");
                out.control(me, dict, &ControlSignal::TableRef { table: id, refusal });
            }
        }
    }

    pub(super) fn drop(&mut self, me: BlockRef, dict: BlockRef, id: TableId, out: &mut Outbox) {
        if let Some(slot) = self.by_id.get_mut(id.0 as usize) {
            *slot = None;
        }
        out.control(me, dict, &ControlSignal::TableConf { table: id });
    }
}
