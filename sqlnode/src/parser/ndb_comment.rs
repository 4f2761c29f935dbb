//! What NDB hides in comments: `COMMENT 'NDB_TABLE=READ_BACKUP=1,PARTITION_BALANCE=FOR_RA_BY_NODE'` on a
//! table, `COMMENT 'NDB_COLUMN=MAX_BLOB_PART_SIZE'` on a column.
//!
//! The marker may stand anywhere in the comment; the options follow it up to the next blank, separated by
//! commas. A flag without a value means 1. An option that is not known, or has a bad value, is an error
//! with its text: the caller decides whether that is a warning or refuses the statement.

/// Options of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NdbTableOptions {
    /// READ_BACKUP: committed reads may use any replica.
    pub read_backup: Option<bool>,
    /// FULLY_REPLICATED: a copy of every partition in every node group.
    pub fully_replicated: Option<bool>,
    /// NOLOGGING: neither redo log nor checkpoints.
    pub nologging: Option<bool>,
    /// PARTITION_BALANCE: its value in capitals, one of NDB's names.
    pub partition_balance: Option<&'static str>,
}

/// Options of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NdbColumnOptions {
    /// BLOB_INLINE_SIZE in bytes.
    pub blob_inline_size: Option<u32>,
    /// MAX_BLOB_PART_SIZE.
    pub max_blob_part_size: Option<bool>,
}

const BALANCES: &[&str] = &[
    "FOR_RP_BY_NODE",
    "FOR_RA_BY_NODE",
    "FOR_RP_BY_LDM",
    "FOR_RA_BY_LDM",
    "FOR_RA_BY_LDM_X_2",
    "FOR_RA_BY_LDM_X_3",
    "FOR_RA_BY_LDM_X_4",
];

/// Reads the options after `NDB_TABLE=` in a table's comment; none if there is no marker.
pub fn ndb_table_options(comment: &str) -> Result<NdbTableOptions, String> {
    let mut options = NdbTableOptions::default();
    for (name, value) in items(comment, "NDB_TABLE=") {
        match name.to_ascii_uppercase().as_str() {
            "READ_BACKUP" => options.read_backup = Some(flag(name, value)?),
            "FULLY_REPLICATED" => options.fully_replicated = Some(flag(name, value)?),
            "NOLOGGING" => options.nologging = Some(flag(name, value)?),
            "PARTITION_BALANCE" => {
                let value = value.unwrap_or("");
                let known = BALANCES.iter().find(|balance| balance.eq_ignore_ascii_case(value));
                options.partition_balance = Some(*known.ok_or_else(|| {
                    format!("PARTITION_BALANCE={value} is not one of {}", BALANCES.join(", "))
                })?);
            }
            _ => return Err(format!("unknown NDB_TABLE option {name}")),
        }
    }
    Ok(options)
}

/// Reads the options after `NDB_COLUMN=` in a column's comment; none if there is no marker.
pub fn ndb_column_options(comment: &str) -> Result<NdbColumnOptions, String> {
    let mut options = NdbColumnOptions::default();
    for (name, value) in items(comment, "NDB_COLUMN=") {
        match name.to_ascii_uppercase().as_str() {
            "BLOB_INLINE_SIZE" => {
                let value = value.unwrap_or("");
                let size = value
                    .parse()
                    .map_err(|_| format!("BLOB_INLINE_SIZE={value} is not a number of bytes"))?;
                options.blob_inline_size = Some(size);
            }
            "MAX_BLOB_PART_SIZE" => options.max_blob_part_size = Some(flag(name, value)?),
            _ => return Err(format!("unknown NDB_COLUMN option {name}")),
        }
    }
    Ok(options)
}

/// The `name[=value]` items after the marker.
fn items<'a>(comment: &'a str, marker: &str) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
    let start = comment.find(marker).map_or(comment.len(), |at| at + marker.len());
    let list = comment[start..].split_whitespace().next().unwrap_or("");
    // A blank right after the marker means an empty list, not the next word.
    let list = if comment[start..].starts_with(char::is_whitespace) { "" } else { list };
    list.split(',').filter(|item| !item.is_empty()).map(|item| match item.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (item, None),
    })
}

fn flag(name: &str, value: Option<&str>) -> Result<bool, String> {
    match value {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(value) => Err(format!("{name}={value} is neither 0 nor 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_options() {
        assert_eq!(ndb_table_options("just words"), Ok(NdbTableOptions::default()));
        assert_eq!(
            ndb_table_options("x NDB_TABLE=READ_BACKUP=0,NOLOGGING,PARTITION_BALANCE=for_ra_by_node y"),
            Ok(NdbTableOptions {
                read_backup: Some(false),
                fully_replicated: None,
                nologging: Some(true),
                partition_balance: Some("FOR_RA_BY_NODE"),
            })
        );
        assert_eq!(
            ndb_table_options("NDB_TABLE=READ_BACKUP=2"),
            Err("READ_BACKUP=2 is neither 0 nor 1".into())
        );
        assert_eq!(ndb_table_options("NDB_TABLE=X=1"), Err("unknown NDB_TABLE option X".into()));
        assert_eq!(ndb_table_options("NDB_TABLE= é READ"), Ok(NdbTableOptions::default()));
    }

    #[test]
    fn column_options() {
        let options = ndb_column_options("NDB_COLUMN=BLOB_INLINE_SIZE=4096,MAX_BLOB_PART_SIZE").unwrap();
        assert_eq!(
            options,
            NdbColumnOptions { blob_inline_size: Some(4096), max_blob_part_size: Some(true) }
        );
        assert!(ndb_column_options("NDB_COLUMN=BLOB_INLINE_SIZE=x").is_err());
    }
}
