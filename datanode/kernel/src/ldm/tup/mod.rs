//! The rows of one fragment (NDB calls it TUP): their storage, their changes, and reading them.
//!
//! A row is a slot of the fixed part (`fixed`) and, if the table has variable columns and not all of the
//! row's are empty, an entry of the variable part (`var`). Where columns lie in it says the [`RowLayout`].
//!
//! States of a row and who moves it on. The lqh part makes every move and keeps the locks; the storage only
//! checks what would corrupt it.
//!
//! ```text
//!   free ──insert──► uncommitted ──commit_insert / commit_update──► committed ──commit_delete──► free
//!                        └──────────abort_insert──────────► free
//! ```
//!
//! Changes of a committed row are made beside it. `prepare_update` builds the whole after-image in a
//! [`CopyTuple`], whose buffers the caller keeps and uses again, and reserves the variable space the commit
//! will need. `commit_update` copies it over the row; `abort_update` gives the reservation back. A
//! transaction that changes a row several times builds each after-image on the previous one, commits the
//! newest and aborts the others. A delete has no after-image: nothing but `commit_delete` changes the row.
//!
//! Facts: a commit never needs memory and cannot fail; an abort undoes exactly; readers without locks see
//! the slot, which holds the last committed version (or an uncommitted insert, marked as such).
//! After-images derive from what the operation's own transaction sees, so the committed version stays
//! readable until commit.
//!
//! What it never does: it looks up no keys, keeps no locks, and allocates nothing per operation once the
//! buffers have grown to their size.

mod copy;
mod fixed;
mod layout;
mod scan;
mod var;

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use signals::ErrorCode;
use signals::key::KeyHash;

pub use self::copy::{Before, CopyTuple};
pub use self::fixed::NO_OPERATION;
pub use self::layout::{HEADER_BYTES, RowLayout, Tuple, VAR_REF_BYTES};
pub use self::scan::{Cursor, ScanStep};

use self::fixed::FixedPart;
use self::layout::VarSource;
use self::var::{VarPart, VarRef};
use super::page::{DataMemory, MemoryFull, PAGE_BYTES};
use super::prefetch::prefetch_bytes;
use super::row_ref::RowRef;

/// Why a row operation was refused. Nothing has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TupError {
    /// A resource has run out.
    Full(MemoryFull),
    /// The AttrInfo does not parse.
    MalformedAttrInfo,
    /// The table has no such column.
    UnknownColumn {
        /// The id that was named.
        column: u16,
    },
    /// The value does not have the length of a fixed column, or is longer than a variable one.
    WrongLength {
        /// The column.
        column: u16,
        /// Bytes of the value.
        len: usize,
    },
    /// NULL, or no value at all, for a column that can neither be NULL nor has a default.
    NullNotAllowed {
        /// The column.
        column: u16,
    },
    /// An update would change the key.
    KeyChanged {
        /// The key column.
        column: u16,
    },
    /// The row to be inserted does not have the key it is inserted under.
    KeyMismatch,
    /// The row would be longer than [`signals::table::MAX_ROW_BYTES`].
    RowTooBig {
        /// Bytes of its values.
        bytes: usize,
    },
}

impl TupError {
    /// NDB's error code.
    #[must_use]
    pub fn code(self) -> ErrorCode {
        match self {
            TupError::Full(full) => full.code(),
            TupError::MalformedAttrInfo | TupError::WrongLength { .. } | TupError::KeyMismatch => {
                ErrorCode::MALFORMED_ATTRIBUTES
            }
            TupError::UnknownColumn { .. } => ErrorCode::UNKNOWN_COLUMN,
            TupError::NullNotAllowed { .. } => ErrorCode::NULL_IN_NOT_NULL,
            TupError::KeyChanged { .. } => ErrorCode::KEY_NOT_UPDATABLE,
            TupError::RowTooBig { .. } => ErrorCode::RECORD_TOO_BIG,
        }
    }
}

impl From<MemoryFull> for TupError {
    fn from(full: MemoryFull) -> Self {
        TupError::Full(full)
    }
}

impl fmt::Display for TupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TupError::Full(full) => full.fmt(f),
            TupError::MalformedAttrInfo => f.write_str("the column values do not parse"),
            TupError::UnknownColumn { column } => write!(f, "the table has no column {column}"),
            TupError::WrongLength { column, len } => write!(f, "{len} bytes do not fit column {column}"),
            TupError::NullNotAllowed { column } => {
                write!(f, "column {column} cannot be NULL and has no default")
            }
            TupError::KeyChanged { column } => {
                write!(
                    f,
                    "column {column} is part of the primary key and cannot change (delete and insert instead)"
                )
            }
            TupError::RowTooBig { bytes } => {
                write!(f, "a row of {bytes} bytes; {} are allowed", signals::table::MAX_ROW_BYTES)
            }
            TupError::KeyMismatch => f.write_str("the key columns differ from the key of the operation"),
        }
    }
}

impl std::error::Error for TupError {}

/// Rows and bytes of a fragment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TupStats {
    /// Rows, uncommitted inserts included.
    pub rows: u64,
    /// Bytes of a row in the fixed part.
    pub fixed_row_bytes: u64,
    /// Bytes of data memory the fixed part holds.
    pub fixed_alloc_bytes: u64,
    /// Bytes of it in free slots.
    pub fixed_free_bytes: u64,
    /// Free slots.
    pub fixed_free_rows: u64,
    /// Bytes of data memory the variable part holds.
    pub var_alloc_bytes: u64,
    /// Bytes of it that are free.
    pub var_free_bytes: u64,
    /// Rows that have a variable part.
    pub var_rows: u64,
    /// Variable pages compacted so far.
    pub var_compactions: u64,
}

/// The rows of one fragment.
#[derive(Debug)]
pub struct TupFragment {
    layout: Arc<RowLayout>,
    fixed: FixedPart,
    var: VarPart,
    sources: Vec<VarSource>,
    /// For keys that must be built before they are compared or hashed.
    scratch: RefCell<Vec<u8>>,
}

impl TupFragment {
    /// A fragment without rows; it holds no page.
    #[must_use]
    pub fn new(layout: Arc<RowLayout>, memory: &DataMemory) -> Self {
        TupFragment {
            fixed: FixedPart::new(memory, layout.slot_bytes, layout.slots_per_page),
            var: VarPart::new(memory),
            sources: layout.var_template.clone(),
            scratch: RefCell::default(),
            layout,
        }
    }

    /// The layout of its rows.
    #[must_use]
    pub fn layout(&self) -> &Arc<RowLayout> {
        &self.layout
    }

    /// Writes a new row, uncommitted. Columns that are not named get their default or NULL.
    ///
    /// # Errors
    /// The row cannot be stored as asked; nothing has changed.
    pub fn insert(&mut self, attrs: &[u8]) -> Result<RowRef, TupError> {
        let row = self.fixed.alloc()?;
        let written = self.write_new(row, attrs);
        if let Err(error) = written {
            self.fixed.free(row);
            return Err(error);
        }
        Ok(row)
    }

    fn write_new(&mut self, row: RowRef, attrs: &[u8]) -> Result<(), TupError> {
        let layout = &*self.layout;
        self.sources.clear();
        self.sources.extend_from_slice(&layout.var_template);
        let image = &mut self.fixed.slot_mut(row)[layout.image_offset..][..layout.image_bytes];
        image.copy_from_slice(&layout.template);
        let seen = layout.apply(attrs, None, image, &mut self.sources)?;
        layout.check_complete(&seen)?;
        if layout.var_columns == 0 {
            return Ok(());
        }
        let bytes = layout.body_bytes(&self.sources)?;
        let mut at = VarRef::NONE;
        if bytes > 0 {
            let promise = self.var.reserve(bytes)?;
            let fixed = &mut self.fixed;
            at = self.var.place(promise, row, |moved, offset| set_var_offset(fixed.slot_mut(moved), offset));
            layout.write_body(&self.sources, attrs, &[], self.var.body_mut(at));
        }
        set_var_ref(self.fixed.slot_mut(row), at);
        Ok(())
    }

    /// Makes an inserted row a committed one.
    pub fn commit_insert(&mut self, row: RowRef, epoch: u64) {
        self.fixed.commit(row, epoch);
    }

    /// Takes an inserted row away again.
    pub fn abort_insert(&mut self, row: RowRef) {
        debug_assert!(self.fixed.is_uncommitted(row), "a committed row was to be aborted");
        self.free_row(row);
    }

    /// Takes a row away.
    pub fn commit_delete(&mut self, row: RowRef) {
        self.free_row(row);
    }

    fn free_row(&mut self, row: RowRef) {
        if self.layout.var_columns > 0 {
            self.var.free(var_ref(self.fixed.slot(row)));
        }
        self.fixed.free(row);
    }

    /// The row as it stands in its slot.
    #[inline]
    #[must_use]
    pub fn tuple(&self, row: RowRef) -> Tuple<'_> {
        let slot = self.fixed.slot(row);
        let body = if self.layout.var_columns > 0 { self.var.body(var_ref(slot)) } else { &[] };
        let start = self.layout.image_offset;
        Tuple { image: &slot[start..start + self.layout.image_bytes], body }
    }

    /// Appends the columns of `projection` as AttrInfo, in its order.
    ///
    /// # Errors
    /// A column that does not exist.
    #[inline]
    pub fn read(&self, row: RowRef, projection: &[u16], out: &mut Vec<u8>) -> Result<(), TupError> {
        self.layout.read(self.tuple(row), projection, out)
    }

    /// Appends all columns as AttrInfo, in definition order.
    #[inline]
    pub fn read_all(&self, row: RowRef, out: &mut Vec<u8>) {
        self.layout.read_all(self.tuple(row), out);
    }

    /// Whether the row has this key (in normal form).
    #[inline]
    #[must_use]
    pub fn key_equals(&self, row: RowRef, key: &[u8]) -> bool {
        self.layout.key_equals(self.tuple(row), key, &self.scratch)
    }

    /// Appends the row's key in normal form.
    pub fn append_key(&self, row: RowRef, out: &mut Vec<u8>) {
        self.layout.append_key(self.tuple(row), out);
    }

    /// The hash of the row's key.
    #[must_use]
    pub fn key_hash(&self, row: RowRef) -> KeyHash {
        let tuple = self.tuple(row);
        if let Some(key) = self.layout.key_bytes(tuple) {
            return KeyHash::of(key);
        }
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        self.layout.append_key(tuple, &mut scratch);
        KeyHash::of(&scratch)
    }

    /// The epoch the row was last changed in, 0 for an uncommitted insert.
    #[inline]
    #[must_use]
    pub fn epoch(&self, row: RowRef) -> u64 {
        self.fixed.epoch(row)
    }

    /// The newest operation on the row, or [`NO_OPERATION`].
    #[inline]
    #[must_use]
    pub fn op_head(&self, row: RowRef) -> u32 {
        self.fixed.op_head(row)
    }

    /// Sets the newest operation on the row.
    #[inline]
    pub fn set_op_head(&mut self, row: RowRef, head: u32) {
        self.fixed.set_op_head(row, head);
    }

    /// Whether the row was inserted by a transaction that has not committed.
    #[inline]
    #[must_use]
    pub fn is_uncommitted(&self, row: RowRef) -> bool {
        self.fixed.is_uncommitted(row)
    }

    /// Whether a reference from outside names a row.
    #[must_use]
    pub fn is_row(&self, row: RowRef) -> bool {
        self.fixed.is_row(row)
    }

    /// Starts loading the row's fixed part.
    #[inline]
    pub fn prefetch(&self, row: RowRef) {
        self.fixed.prefetch(row);
    }

    /// Starts loading the row's variable part; the fixed part should be loaded by now.
    #[inline]
    pub fn prefetch_body(&self, row: RowRef) {
        if self.layout.var_columns > 0 {
            prefetch_bytes(self.var.body(var_ref(self.fixed.slot(row))));
        }
    }

    /// Rows and bytes.
    #[must_use]
    pub fn stats(&self) -> TupStats {
        let rows = self.fixed.rows();
        let slots = u64::from(self.fixed.pages()) * u64::from(self.fixed.slots_per_page());
        let row_bytes = self.layout.slot_bytes as u64;
        let var = self.var.totals();
        let var_alloc_bytes = u64::from(self.var.pages()) * PAGE_BYTES as u64;
        TupStats {
            rows,
            fixed_row_bytes: row_bytes,
            fixed_alloc_bytes: u64::from(self.fixed.pages()) * PAGE_BYTES as u64,
            fixed_free_bytes: (slots - rows) * row_bytes,
            fixed_free_rows: slots - rows,
            var_alloc_bytes,
            var_free_bytes: var_alloc_bytes - var.used_bytes,
            var_rows: var.entries,
            var_compactions: var.compactions,
        }
    }

    /// Forgets all rows and gives up to `max_pages` (at least one) pages back; true when none is left.
    pub fn free_some(&mut self, max_pages: usize) -> bool {
        let freed = self.fixed.free_some(max_pages);
        freed + self.var.free_some(max_pages - freed) < max_pages
    }
}

/// The variable reference in a slot of a table with variable columns.
#[inline]
fn var_ref(slot: &[u8]) -> VarRef {
    slot[HEADER_BYTES..].first_chunk().map_or(VarRef::NONE, |bytes| VarRef::from_bytes(*bytes))
}

fn set_var_ref(slot: &mut [u8], at: VarRef) {
    slot[HEADER_BYTES..HEADER_BYTES + VAR_REF_BYTES].copy_from_slice(&at.to_bytes());
}

fn set_var_offset(slot: &mut [u8], offset: u16) {
    slot[HEADER_BYTES + 4..HEADER_BYTES + 6].copy_from_slice(&offset.to_le_bytes());
}

#[cfg(test)]
mod tests;
