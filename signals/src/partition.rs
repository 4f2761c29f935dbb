//! Placement: from key hash to bucket, to partition, to the replicas that hold it.
//!
//! A table's distribution key hashes into one of [`BUCKETS`] buckets; a versioned map takes buckets to
//! partitions; a partition has one replica per node of its node group, each owned by one LDM instance of
//! its node, the first being primary when all nodes live. Everything here is a pure function of the
//! configuration, so that every node and every client that has the same inputs has the same map.

use crate::ids::{NodeId, TableId};
use crate::key::KeyHash;
use bincode::{Decode, Encode};

/// Buckets of a table's hash map, NDB's default (divisible by many partition counts).
pub const BUCKETS: usize = 3840;
/// Most partitions of a table.
pub const MAX_PARTITIONS: usize = BUCKETS;

/// How many partitions a table gets, as a rule over data nodes N, node groups G and LDMs per node L.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Encode, Decode)]
pub enum PartitionBalance {
    /// N partitions.
    ForRpByNode,
    /// G partitions.
    ForRaByNode,
    /// N * L partitions, the default.
    #[default]
    ForRpByLdm,
    /// G * L partitions.
    ForRaByLdm,
    /// 2 * G * L partitions.
    ForRaByLdmX2,
    /// 3 * G * L partitions.
    ForRaByLdmX3,
    /// 4 * G * L partitions.
    ForRaByLdmX4,
}

impl PartitionBalance {
    /// The number of partitions for a cluster of `nodes` data nodes in `groups` groups with `ldms` LDMs per
    /// node, capped at [`MAX_PARTITIONS`].
    #[must_use]
    pub fn partitions(self, nodes: usize, groups: usize, ldms: usize) -> usize {
        let count = match self {
            Self::ForRpByNode => nodes,
            Self::ForRaByNode => groups,
            Self::ForRpByLdm => nodes * ldms,
            Self::ForRaByLdm => groups * ldms,
            Self::ForRaByLdmX2 => 2 * groups * ldms,
            Self::ForRaByLdmX3 => 3 * groups * ldms,
            Self::ForRaByLdmX4 => 4 * groups * ldms,
        };
        count.clamp(1, MAX_PARTITIONS)
    }

    /// The name used in table comments (`PARTITION_BALANCE=...`).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ForRpByNode => "FOR_RP_BY_NODE",
            Self::ForRaByNode => "FOR_RA_BY_NODE",
            Self::ForRpByLdm => "FOR_RP_BY_LDM",
            Self::ForRaByLdm => "FOR_RA_BY_LDM",
            Self::ForRaByLdmX2 => "FOR_RA_BY_LDM_X_2",
            Self::ForRaByLdmX3 => "FOR_RA_BY_LDM_X_3",
            Self::ForRaByLdmX4 => "FOR_RA_BY_LDM_X_4",
        }
    }

    /// The balance called `name`, without regard to case.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let all = [
            Self::ForRpByNode,
            Self::ForRaByNode,
            Self::ForRpByLdm,
            Self::ForRaByLdm,
            Self::ForRaByLdmX2,
            Self::ForRaByLdmX3,
            Self::ForRaByLdmX4,
        ];
        all.into_iter().find(|b| b.name().eq_ignore_ascii_case(name))
    }
}

/// One replica of a partition: the node, and the LDM instance that owns it there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Replica {
    /// The data node.
    pub node: NodeId,
    /// The LDM instance on that node, from 0.
    pub ldm: u16,
}

/// Where a table's rows live.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct PartitionMap {
    /// Grows with every change; a message built on an older one is answered with the newer.
    pub version: u32,
    /// Bucket to partition, [`BUCKETS`] entries.
    pub buckets: Vec<u16>,
    /// Partition to replicas, the primary first.
    pub partitions: Vec<Vec<Replica>>,
}

impl PartitionMap {
    /// Places a table over `groups` (each a node group's members in node id order). The table's id rotates
    /// primaries and LDMs, so that many small tables do not all land on the first LDM of the first node.
    ///
    /// # Panics
    /// If `groups` is empty, a group is empty, or `ldms` is 0: the configuration refuses these.
    #[must_use]
    pub fn place(table: TableId, balance: PartitionBalance, groups: &[Vec<NodeId>], ldms: u16) -> Self {
        assert!(ldms > 0 && !groups.is_empty() && groups.iter().all(|g| !g.is_empty()));
        let nodes = groups.iter().map(Vec::len).sum();
        let count = balance.partitions(nodes, groups.len(), ldms as usize);
        let partitions = (0..count)
            .map(|p| {
                let group = &groups[p % groups.len()];
                let turn = p / groups.len() + table.0 as usize;
                let ldm = ((turn / group.len()) % ldms as usize) as u16;
                (0..group.len()).map(|r| Replica { node: group[(turn + r) % group.len()], ldm }).collect()
            })
            .collect();
        let buckets = (0..BUCKETS).map(|b| (b % count) as u16).collect();
        Self { version: 1, buckets, partitions }
    }

    /// The partition a distribution hash falls into.
    #[inline]
    #[must_use]
    pub fn partition_of(&self, hash: KeyHash) -> u16 {
        self.buckets[hash.bucket() as usize]
    }

    /// Whether the map is whole: every bucket names a partition, every partition has 1 to 4 replicas.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.buckets.len() == BUCKETS
            && self.buckets.iter().all(|p| (*p as usize) < self.partitions.len())
            && self.partitions.iter().all(|r| (1..=crate::ids::MAX_REPLICAS).contains(&r.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primaries_and_ldms_are_even() {
        let groups = [vec![NodeId(1), NodeId(2)], vec![NodeId(3), NodeId(4)]];
        for table in 0..5 {
            let map = PartitionMap::place(TableId(table), PartitionBalance::ForRpByLdm, &groups, 4);
            assert!(map.is_valid());
            assert_eq!(map.partitions.len(), 16);
            let mut primaries = std::collections::BTreeMap::new();
            for replicas in &map.partitions {
                assert_eq!(replicas.len(), 2);
                assert_ne!(replicas[0].node, replicas[1].node);
                *primaries.entry((replicas[0].node, replicas[0].ldm)).or_insert(0) += 1;
            }
            assert_eq!(primaries.len(), 16, "one primary per LDM of every node");
        }
    }

    #[test]
    fn small_tables_rotate_over_nodes_and_ldms() {
        let groups = [vec![NodeId(1), NodeId(2)]];
        let first =
            |t| PartitionMap::place(TableId(t), PartitionBalance::ForRaByNode, &groups, 2).partitions[0][0];
        let seen: Vec<_> = (0..4).map(|t| (first(t).node.0, first(t).ldm)).collect();
        assert_eq!(seen, [(1, 0), (2, 0), (1, 1), (2, 1)]);
    }

    #[test]
    fn partition_counts_follow_the_manual() {
        let counts =
            ["FOR_RP_BY_NODE", "FOR_RA_BY_NODE", "FOR_RP_BY_LDM", "FOR_RA_BY_LDM", "FOR_RA_BY_LDM_X_3"]
                .map(|n| PartitionBalance::by_name(n).unwrap().partitions(4, 2, 4));
        assert_eq!(counts, [4, 2, 16, 8, 24]);
    }
}
