//! Tables as a client sees them: definition, key shape and placement, prepared once for use on the hot path.
//!
//! A [`TableHandle`] is immutable and shared. When the schema or the placement changes, the dictionary
//! cache gets a new one; operations built with an old handle are refused by the data nodes (241), never
//! misread.

use crate::NdbError;
use signals::control::TableInfo;
use signals::ids::{MAX_REPLICAS, SchemaVersion};
use signals::key::{KeyHash, KeyShape};
use signals::table::{ColumnDef, TableDef};
use signals::{ErrorCode, NodeId, TableId};
use std::sync::Arc;

/// A table, shared.
pub type TableHandle = Arc<Table>;

/// The replicas of one partition, the primary first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    count: u8,
    nodes: [NodeId; MAX_REPLICAS],
    ldms: [u16; MAX_REPLICAS],
}

impl Placement {
    /// Node and LDM instance of every replica.
    #[inline]
    pub fn replicas(&self) -> impl Iterator<Item = (NodeId, u16)> + '_ {
        self.nodes.iter().copied().zip(self.ldms).take(self.count as usize)
    }
}

/// See the module.
#[derive(Debug)]
pub struct Table {
    info: TableInfo,
    shape: KeyShape,
    placements: Vec<Placement>,
    all_columns: Vec<u8>,
    in_key: Vec<bool>,
}

/// A way to name a column: by its number (fast) or its name.
pub trait Column: Copy {
    /// The column's number in `table`.
    ///
    /// # Errors
    /// 4004: the table has no such column.
    fn resolve(&self, table: &Table) -> Result<u16, NdbError>;
}

impl Column for u16 {
    #[inline]
    fn resolve(&self, table: &Table) -> Result<u16, NdbError> {
        if (*self as usize) < table.info.def.columns.len() { Ok(*self) } else { Err(table.no_column(self)) }
    }
}

impl Column for &str {
    fn resolve(&self, table: &Table) -> Result<u16, NdbError> {
        table.info.def.column_id(self).ok_or_else(|| table.no_column(self))
    }
}

impl Table {
    /// Checks and prepares what a data node said about a table.
    ///
    /// # Errors
    /// The definition or the map is not one: the node that sent it is broken.
    pub fn new(info: TableInfo) -> Result<Self, NdbError> {
        info.def.validate().map_err(|(code, text)| NdbError::with(code, text))?;
        if !info.map.is_valid() {
            let text = format!("table {}: the partition map is not whole", info.def.full_name());
            return Err(NdbError::with(ErrorCode::MALFORMED_MESSAGE, text));
        }
        let placements = info.map.partitions.iter().map(|replicas| {
            let mut placement = Placement {
                count: replicas.len() as u8,
                nodes: Default::default(),
                ldms: Default::default(),
            };
            for (i, replica) in replicas.iter().enumerate() {
                placement.nodes[i] = replica.node;
                placement.ldms[i] = replica.ldm;
            }
            placement
        });
        let columns = info.def.columns.len() as u16;
        Ok(Self {
            shape: KeyShape::of(&info.def),
            placements: placements.collect(),
            all_columns: (0..columns).flat_map(u16::to_le_bytes).collect(),
            in_key: (0..columns).map(|c| info.def.primary_key.contains(&c)).collect(),
            info,
        })
    }

    /// The definition.
    #[must_use]
    pub fn def(&self) -> &TableDef {
        &self.info.def
    }
    /// The definition and the placement as the data nodes gave them.
    #[must_use]
    pub fn info(&self) -> &TableInfo {
        &self.info
    }
    /// The table's id.
    #[inline]
    #[must_use]
    pub fn id(&self) -> TableId {
        self.info.def.id
    }
    /// The schema version of this handle.
    #[inline]
    #[must_use]
    pub fn version(&self) -> SchemaVersion {
        self.info.def.version
    }
    /// The columns; a column's number is its index.
    #[must_use]
    pub fn columns(&self) -> &[ColumnDef] {
        &self.info.def.columns
    }
    /// The number of a column.
    ///
    /// # Errors
    /// 4004: there is no such column.
    pub fn column(&self, column: impl Column) -> Result<u16, NdbError> {
        column.resolve(self)
    }
    /// Whether a column belongs to the primary key.
    #[must_use]
    pub fn is_key(&self, column: u16) -> bool {
        self.in_key.get(column as usize).copied().unwrap_or(false)
    }
    /// How many partitions the table has.
    #[must_use]
    pub fn partitions(&self) -> u16 {
        self.placements.len() as u16
    }
    /// The distribution hash of a key in normal form; `None` if the bytes do not have the key's shape.
    #[inline]
    #[must_use]
    pub fn distribution_hash(&self, normal_key: &[u8]) -> Option<KeyHash> {
        self.shape.distribution_hash(normal_key)
    }
    /// The partition a distribution hash falls into.
    #[inline]
    #[must_use]
    pub fn partition_of(&self, hash: KeyHash) -> u16 {
        self.info.map.partition_of(hash)
    }
    /// The replicas of a partition; an unknown partition gets the first one's.
    #[inline]
    #[must_use]
    pub fn placement(&self, partition: u16) -> &Placement {
        self.placements.get(partition as usize).unwrap_or(&self.placements[0])
    }
    /// The projection of all columns in order.
    #[inline]
    pub(crate) fn all_columns(&self) -> &[u8] {
        &self.all_columns
    }

    #[cold]
    fn no_column(&self, name: &dyn std::fmt::Display) -> NdbError {
        NdbError::with(
            ErrorCode::UNKNOWN_COLUMN,
            format!("table {} has no column {name}", self.info.def.full_name()),
        )
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use signals::partition::{PartitionBalance, PartitionMap};
    use signals::table::{ColumnStorage, ColumnType};

    pub(crate) fn column(name: &str, kind: ColumnType, storage: ColumnStorage) -> ColumnDef {
        ColumnDef {
            name: name.into(),
            kind,
            storage,
            nullable: false,
            collation: 63,
            default: None,
            sql: vec![],
        }
    }

    /// `test/t (id u32 primary key, v u64, s varchar(20) null)` with id 7, version 3 on the groups given, 1
    /// LDM.
    pub(crate) fn table_on(groups: &[Vec<NodeId>], ldms: u16) -> TableInfo {
        let mut text = column("s", ColumnType::Char, ColumnStorage::Var { max_len: 20 });
        text.nullable = true;
        let def = TableDef {
            id: TableId(7),
            version: SchemaVersion(3),
            database: "test".into(),
            name: "t".into(),
            columns: vec![
                column("id", ColumnType::Unsigned, ColumnStorage::Fixed { size: 4 }),
                column("v", ColumnType::Unsigned, ColumnStorage::Fixed { size: 8 }),
                text,
            ],
            primary_key: vec![0],
            distribution_key: vec![0],
            partition_balance: PartitionBalance::ForRpByLdm,
            nologging: false,
            read_backup: true,
            fully_replicated: false,
            sql: vec![],
        };
        let map = PartitionMap::place(def.id, def.partition_balance, groups, ldms);
        TableInfo { def, map }
    }

    #[test]
    fn a_broken_map_is_refused_and_columns_are_found_by_name() {
        let mut info = table_on(&[vec![NodeId(1), NodeId(2)]], 1);
        let table = Table::new(info.clone()).unwrap();
        assert_eq!((table.column("S"), table.column(1u16)), (Ok(2), Ok(1)));
        assert_eq!(table.column("x").unwrap_err().code(), ErrorCode::UNKNOWN_COLUMN);
        assert_eq!(table.column(3u16).unwrap_err().code(), ErrorCode::UNKNOWN_COLUMN);
        let replicas: Vec<_> = table.placement(0).replicas().collect();
        assert_eq!(replicas.len(), 2);
        info.map.buckets[9] = 99;
        assert_eq!(Table::new(info).unwrap_err().code(), ErrorCode::MALFORMED_MESSAGE);
    }
}
