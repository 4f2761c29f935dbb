//! The row layout: where a table's columns lie in a row, computed once from the table's definition.
//!
//! A row slot is `header | variable reference (only if the table has variable columns) | image`. The image is
//! the null bits, then the fixed key columns in key order, then the other fixed columns in definition
//! order, without padding. The header is 16 bytes: epoch (8), head of the operation queue (4), flags (1), 3
//! spare. Variable columns share one body per row: a table of 16-bit ends, one per variable column, and the
//! bytes. A body of only empty values is no body.
//!
//! When every key column is fixed and compares as bytes, the key is one run of row bytes and a key compare is
//! one memcmp.

use std::cell::RefCell;

use signals::collation::Collation;
use signals::key;
use signals::table::{ColumnDef, ColumnStorage, MAX_COLUMNS, MAX_ROW_BYTES, TableDef};
use signals::{ErrorCode, attr};

use super::TupError;
use crate::ldm::page::PAGE_BYTES;
use crate::ldm::row_ref::SLOTS_PER_PAGE_MAX;

/// Bytes of the row header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of the variable reference that follows it in tables with variable columns.
pub const VAR_REF_BYTES: usize = 8;
/// The longest body with its entry's head fits a page, and its ends fit 16 bits.
const _: () = assert!(MAX_ROW_BYTES + 2 * MAX_COLUMNS + super::var::ENTRY_HEAD_BYTES <= PAGE_BYTES);
/// Not a null bit: the column cannot be NULL.
const NOT_NULLABLE: u16 = u16::MAX;

/// Where a column's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the image.
    Fixed { offset: u16, size: u16 },
    /// The `number`-th value of the body.
    Var { number: u16, max_len: u16 },
}

/// One column as the storage sees it.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) place: Place,
    /// The AttrInfo header of a value of full length, as it stands in memory.
    header: [u8; 4],
    /// Its bit in the null bits, or [`NOT_NULLABLE`].
    null_bit: u16,
    /// It is part of the primary key.
    pub(super) in_key: bool,
    /// The collation to compare key values with, if not as bytes.
    weighted: Option<Collation>,
}

/// What a row holds: its image and the body of its variable columns, wherever they are.
#[derive(Debug, Clone, Copy)]
pub struct Tuple<'a> {
    /// Null bits and fixed columns.
    pub image: &'a [u8],
    /// Variable columns; empty when all of them are.
    pub body: &'a [u8],
}

/// Where the new value of a variable column comes from while a body is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VarSource {
    Empty,
    /// The default of the column with that id.
    Default {
        column: u16,
    },
    /// Bytes of the AttrInfo.
    Attr {
        start: u32,
        len: u16,
    },
    /// Bytes of the body the new one is derived from.
    Base {
        start: u16,
        len: u16,
    },
}

/// The columns a write named, one bit each.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ColumnSet([u64; 8]);

impl ColumnSet {
    fn add(&mut self, column: u16) {
        self.0[column as usize / 64 % 8] |= 1 << (column % 64);
    }

    /// The lowest column that is in `self` and not in `other`.
    fn first_not_in(&self, other: &ColumnSet) -> Option<u16> {
        let (i, bits) = self
            .0
            .iter()
            .zip(&other.0)
            .map(|(mine, other)| mine & !other)
            .enumerate()
            .find(|(_, bits)| *bits != 0)?;
        Some((i as u32 * 64 + bits.trailing_zeros()) as u16)
    }
}

/// The layout of a table's rows.
#[derive(Debug)]
pub struct RowLayout {
    columns: Vec<Column>,
    /// Definitions of the key columns in key order.
    key: Vec<(u16, ColumnDef)>,
    defaults: Vec<Option<Vec<u8>>>,
    /// The key as a run of image bytes, if it is one.
    key_run: Option<(usize, usize)>,
    pub(super) image_offset: usize,
    pub(super) image_bytes: usize,
    /// Bytes of the fixed columns alone.
    fixed_bytes: usize,
    pub(super) slot_bytes: usize,
    pub(super) slots_per_page: usize,
    pub(super) var_columns: usize,
    /// Image of a row for which no column was named.
    pub(super) template: Vec<u8>,
    pub(super) var_template: Vec<VarSource>,
    /// Columns that must be named because they have neither default nor NULL.
    required: ColumnSet,
    /// All columns are fixed and none can be NULL: the bytes of a full read are the same for every row.
    plain_read_bytes: Option<usize>,
}

impl RowLayout {
    /// The layout of `table`.
    ///
    /// # Errors
    /// What [`TableDef::validate`] says against the definition.
    pub fn new(table: &TableDef) -> Result<Self, (ErrorCode, String)> {
        table.validate()?;
        let nullable = table.columns.iter().filter(|c| c.nullable).count();
        let null_bytes = nullable.div_ceil(8);
        let var_columns =
            table.columns.iter().filter(|c| matches!(c.storage, ColumnStorage::Var { .. })).count();
        let mut layout = RowLayout {
            columns: Vec::with_capacity(table.columns.len()),
            key: table.primary_key.iter().map(|&id| (id, table.columns[id as usize].clone())).collect(),
            defaults: table.columns.iter().map(|c| c.default.clone()).collect(),
            key_run: None,
            image_offset: HEADER_BYTES + if var_columns > 0 { VAR_REF_BYTES } else { 0 },
            image_bytes: null_bytes,
            fixed_bytes: 0,
            slot_bytes: 0,
            slots_per_page: 0,
            var_columns,
            template: Vec::new(),
            var_template: Vec::new(),
            required: ColumnSet::default(),
            plain_read_bytes: None,
        };
        layout.place_columns(table);
        layout.fixed_bytes = layout.image_bytes - null_bytes;
        layout.slot_bytes = (layout.image_offset + layout.image_bytes).next_multiple_of(8);
        layout.slots_per_page = (PAGE_BYTES / layout.slot_bytes).min(SLOTS_PER_PAGE_MAX);
        assert!(layout.slots_per_page > 0, "a valid row is larger than a page");
        if layout.key.iter().all(|(_, column)| !key::is_prefixed(column)) {
            let bytes = layout.key.iter().map(|(_, column)| column.storage.max_bytes()).sum();
            layout.key_run = Some((null_bytes, bytes));
        }
        if var_columns == 0 && nullable == 0 {
            let bytes = table.columns.iter().map(|c| 4 + c.storage.max_bytes().next_multiple_of(4)).sum();
            layout.plain_read_bytes = Some(bytes);
        }
        layout.make_template();
        Ok(layout)
    }

    fn place_columns(&mut self, table: &TableDef) {
        let (mut nulls, mut vars) = (0, 0);
        for (id, def) in table.columns.iter().enumerate() {
            let null_bit = if def.nullable {
                nulls += 1;
                nulls - 1
            } else {
                NOT_NULLABLE
            };
            let place = match def.storage {
                ColumnStorage::Fixed { size } => Place::Fixed { offset: 0, size },
                ColumnStorage::Var { max_len } => {
                    vars += 1;
                    Place::Var { number: vars - 1, max_len }
                }
            };
            let [id_low, id_high] = (id as u16).to_le_bytes();
            let [len_low, len_high] = (def.storage.max_bytes() as u16).to_le_bytes();
            self.columns.push(Column {
                place,
                header: [id_low, id_high, len_low, len_high],
                null_bit,
                in_key: table.primary_key.contains(&(id as u16)),
                weighted: key::is_weighted(def).then_some(Collation(def.collation)),
            });
        }
        let others = (0..table.columns.len() as u16).filter(|id| !table.primary_key.contains(id));
        for id in table.primary_key.iter().copied().chain(others) {
            if let Place::Fixed { offset, size } = &mut self.columns[id as usize].place {
                *offset = self.image_bytes as u16;
                self.image_bytes += *size as usize;
            }
        }
    }

    fn make_template(&mut self) {
        let mut image = vec![0; self.image_bytes];
        let mut vars = vec![VarSource::Empty; self.var_columns];
        for (id, column) in self.columns.iter().enumerate() {
            match (&self.defaults[id], column.place) {
                (Some(value), Place::Fixed { offset, size }) => {
                    image[offset as usize..][..size as usize].copy_from_slice(value);
                }
                (Some(_), Place::Var { number, .. }) => {
                    vars[number as usize] = VarSource::Default { column: id as u16 };
                }
                (None, _) if column.null_bit == NOT_NULLABLE => self.required.add(id as u16),
                (None, _) => set_bit(&mut image, column.null_bit),
            }
        }
        self.template = image;
        self.var_template = vars;
    }

    /// Bytes a row takes in the fixed part, header included.
    #[must_use]
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// The value of a column: `None` if there is no such column, `Some(None)` if it is NULL.
    #[inline]
    #[must_use]
    pub fn value<'a>(&self, tuple: Tuple<'a>, column: u16) -> Option<Option<&'a [u8]>> {
        self.columns.get(column as usize).map(|column| self.value_of(tuple, column))
    }

    #[inline]
    fn value_of<'a>(&self, tuple: Tuple<'a>, column: &Column) -> Option<&'a [u8]> {
        if column.null_bit != NOT_NULLABLE && bit(tuple.image, column.null_bit) {
            return None;
        }
        Some(match column.place {
            Place::Fixed { offset, size } => &tuple.image[offset as usize..][..size as usize],
            Place::Var { number, .. } => {
                let (start, len) = self.var_range(tuple.body, number);
                &tuple.body[start as usize..][..len as usize]
            }
        })
    }

    /// Start and length of a variable value in its body.
    #[inline]
    fn var_range(&self, body: &[u8], number: u16) -> (u16, u16) {
        if body.is_empty() {
            return (0, 0);
        }
        let end_at = |i: usize| u16::from_le_bytes([body[2 * i], body[2 * i + 1]]);
        let number = number as usize;
        let start = if number == 0 { 2 * self.var_columns as u16 } else { end_at(number - 1) };
        (start, end_at(number) - start)
    }

    /// Appends the columns of `projection` as AttrInfo, in its order.
    ///
    /// # Errors
    /// A column that does not exist; `out` then ends with the columns before it.
    #[inline]
    pub fn read(&self, tuple: Tuple<'_>, projection: &[u16], out: &mut Vec<u8>) -> Result<(), TupError> {
        if projection.len() == self.columns.len()
            && projection.iter().enumerate().all(|(i, &id)| id as usize == i)
        {
            self.read_all(tuple, out);
            return Ok(());
        }
        for &id in projection {
            let Some(column) = self.columns.get(id as usize) else {
                return Err(TupError::UnknownColumn { column: id });
            };
            self.push_column(tuple, id, column, out);
        }
        Ok(())
    }

    /// Appends all columns as AttrInfo, in definition order.
    #[inline]
    pub fn read_all(&self, tuple: Tuple<'_>, out: &mut Vec<u8>) {
        if let Some(bytes) = self.plain_read_bytes {
            let at = out.len();
            out.resize(at + bytes, 0);
            return self.read_plain(tuple, &mut out[at..]);
        }
        for (id, column) in self.columns.iter().enumerate() {
            self.push_column(tuple, id as u16, column, out);
        }
    }

    /// The full read when its length is known beforehand. `out` is zeroed, so padding needs no writing.
    fn read_plain(&self, tuple: Tuple<'_>, mut out: &mut [u8]) {
        for column in &self.columns {
            let Place::Fixed { offset, size } = column.place else { continue };
            let value = &tuple.image[offset as usize..][..size as usize];
            let (entry, rest) = out.split_at_mut(4 + value.len().next_multiple_of(4));
            entry[..4].copy_from_slice(&column.header);
            copy_value(&mut entry[4..], value);
            out = rest;
        }
    }

    #[inline]
    fn push_column(&self, tuple: Tuple<'_>, id: u16, column: &Column, out: &mut Vec<u8>) {
        let [id_low, id_high] = id.to_le_bytes();
        let Some(value) = self.value_of(tuple, column) else {
            let [len_low, len_high] = attr::NULL_LENGTH.to_le_bytes();
            return out.extend_from_slice(&[id_low, id_high, len_low, len_high]);
        };
        let [len_low, len_high] = (value.len() as u16).to_le_bytes();
        let padded = value.len().next_multiple_of(4);
        // One reservation, so that the appends below do not grow the buffer.
        out.reserve(4 + padded);
        out.extend_from_slice(&[id_low, id_high, len_low, len_high]);
        match value.len() {
            4 => out.extend_from_slice(&value[..4]),
            8 => out.extend_from_slice(&value[..8]),
            len => {
                out.extend_from_slice(value);
                out.extend_from_slice(&[0; 3][..padded - len]);
            }
        }
    }

    /// Whether the tuple has this key (in normal form). `scratch` is for keys that must be built first.
    #[inline]
    pub(super) fn key_equals(&self, tuple: Tuple<'_>, key: &[u8], scratch: &RefCell<Vec<u8>>) -> bool {
        match self.key_run {
            Some((start, len)) => short_equal(&tuple.image[start..start + len], key),
            None => self.key_equals_slow(tuple, key, &mut scratch.borrow_mut()),
        }
    }

    fn key_equals_slow(&self, tuple: Tuple<'_>, key: &[u8], scratch: &mut Vec<u8>) -> bool {
        scratch.clear();
        self.append_key(tuple, scratch);
        scratch == key
    }

    /// Appends the tuple's key in normal form.
    pub fn append_key(&self, tuple: Tuple<'_>, out: &mut Vec<u8>) {
        if let Some((start, len)) = self.key_run {
            return out.extend_from_slice(&tuple.image[start..start + len]);
        }
        for (id, def) in &self.key {
            // Key columns are never NULL, which the definition's check and every write see to.
            let value = self.value_of(tuple, &self.columns[*id as usize]).unwrap_or_default();
            key::push_normal(out, def, value);
        }
    }

    /// The key bytes, if they lie in the image as they are.
    #[inline]
    pub(super) fn key_bytes<'a>(&self, tuple: Tuple<'a>) -> Option<&'a [u8]> {
        self.key_run.map(|(start, len)| &tuple.image[start..start + len])
    }

    /// Gives `image` the key columns of `from`.
    pub(super) fn copy_key(&self, from: Tuple<'_>, image: &mut [u8], vars: &mut [VarSource]) {
        for (id, _) in &self.key {
            match self.columns[*id as usize].place {
                Place::Fixed { offset, size } => {
                    let range = offset as usize..offset as usize + size as usize;
                    image[range.clone()].copy_from_slice(&from.image[range]);
                }
                Place::Var { number, .. } => {
                    let (start, len) = self.var_range(from.body, number);
                    vars[number as usize] = VarSource::Base { start, len };
                }
            }
        }
    }

    /// Fills `vars` with the values of `body` as they are.
    pub(super) fn base_sources(&self, body: &[u8], vars: &mut Vec<VarSource>) {
        vars.clear();
        vars.extend((0..self.var_columns as u16).map(|number| {
            let (start, len) = self.var_range(body, number);
            VarSource::Base { start, len }
        }));
    }

    /// Applies a write to an image and to the list of sources its body will be built from. With `old_key`,
    /// key columns may only get values that compare equal to those of that tuple. Gives the columns named.
    pub(super) fn apply(
        &self,
        attrs: &[u8],
        old_key: Option<Tuple<'_>>,
        image: &mut [u8],
        vars: &mut [VarSource],
    ) -> Result<ColumnSet, TupError> {
        let mut seen = ColumnSet::default();
        for entry in attr::AttrReader::new(attrs) {
            let (id, value) = entry.map_err(|_| TupError::MalformedAttrInfo)?;
            let Some(column) = self.columns.get(id as usize) else {
                return Err(TupError::UnknownColumn { column: id });
            };
            seen.add(id);
            let Some(value) = value else {
                if column.null_bit == NOT_NULLABLE {
                    return Err(TupError::NullNotAllowed { column: id });
                }
                set_bit(image, column.null_bit);
                match column.place {
                    Place::Fixed { offset, size } => image[offset as usize..][..size as usize].fill(0),
                    Place::Var { number, .. } => vars[number as usize] = VarSource::Empty,
                }
                continue;
            };
            if column.in_key
                && let Some(old) = old_key
                && !self.key_value_equal(old, column, value)
            {
                return Err(TupError::KeyChanged { column: id });
            }
            let len = value.len();
            match column.place {
                Place::Fixed { offset, size } => {
                    if len != size as usize {
                        return Err(TupError::WrongLength { column: id, len });
                    }
                    copy_value(&mut image[offset as usize..], value);
                }
                Place::Var { number, max_len } => {
                    if len > max_len as usize {
                        return Err(TupError::WrongLength { column: id, len });
                    }
                    let start = value.as_ptr().addr() - attrs.as_ptr().addr();
                    vars[number as usize] = VarSource::Attr { start: start as u32, len: len as u16 };
                }
            }
            if column.null_bit != NOT_NULLABLE {
                clear_bit(image, column.null_bit);
            }
        }
        Ok(seen)
    }

    fn key_value_equal(&self, old: Tuple<'_>, column: &Column, value: &[u8]) -> bool {
        let old = self.value_of(old, column).unwrap_or_default();
        match column.weighted {
            Some(collation) => collation.equal(old, value),
            None => old == value,
        }
    }

    /// Refuses a new row for which a needed column was not named.
    pub(super) fn check_complete(&self, seen: &ColumnSet) -> Result<(), TupError> {
        match self.required.first_not_in(seen) {
            Some(column) => Err(TupError::NullNotAllowed { column }),
            None => Ok(()),
        }
    }

    /// Bytes of the body that `vars` will make.
    ///
    /// # Errors
    /// The row would be longer than a row may be: the variable columns' own limits may add up to more.
    pub(super) fn body_bytes(&self, vars: &[VarSource]) -> Result<usize, TupError> {
        let data: usize = vars.iter().map(|source| self.source_len(source)).sum();
        let bytes = self.fixed_bytes + data;
        if bytes > MAX_ROW_BYTES {
            return Err(TupError::RowTooBig { bytes });
        }
        Ok(if data == 0 { 0 } else { 2 * self.var_columns + data })
    }

    fn source_len(&self, source: &VarSource) -> usize {
        match *source {
            VarSource::Empty => 0,
            VarSource::Default { column } => self.default_of(column).len(),
            VarSource::Attr { len, .. } | VarSource::Base { len, .. } => len as usize,
        }
    }

    fn default_of(&self, column: u16) -> &[u8] {
        self.defaults[column as usize].as_deref().unwrap_or_default()
    }

    /// Writes the body into `out`, which has [`Self::body_bytes`] bytes.
    pub(super) fn write_body(&self, vars: &[VarSource], attrs: &[u8], base: &[u8], out: &mut [u8]) {
        if out.is_empty() {
            return;
        }
        let mut end = 2 * self.var_columns;
        for (number, source) in vars.iter().enumerate() {
            let value = match *source {
                VarSource::Empty => &[][..],
                VarSource::Default { column } => self.default_of(column),
                VarSource::Attr { start, len } => &attrs[start as usize..][..len as usize],
                VarSource::Base { start, len } => &base[start as usize..][..len as usize],
            };
            out[end..end + value.len()].copy_from_slice(value);
            end += value.len();
            out[2 * number..2 * number + 2].copy_from_slice(&(end as u16).to_le_bytes());
        }
    }
}

/// Compares bytes; the lengths of most keys without a call.
#[inline]
fn short_equal(a: &[u8], b: &[u8]) -> bool {
    match (<&[u8; 8]>::try_from(a), <&[u8; 8]>::try_from(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => match (<&[u8; 4]>::try_from(a), <&[u8; 4]>::try_from(b)) {
            (Ok(a), Ok(b)) => a == b,
            _ => a == b,
        },
    }
}

/// Copies a value to the front of `target`; the usual lengths without a call.
#[inline]
fn copy_value(target: &mut [u8], value: &[u8]) {
    match value.len() {
        4 => target[..4].copy_from_slice(&value[..4]),
        8 => target[..8].copy_from_slice(&value[..8]),
        // Two copies that overlap.
        len @ 9..=16 => {
            target[..8].copy_from_slice(&value[..8]);
            target[len - 8..len].copy_from_slice(&value[len - 8..]);
        }
        len => target[..len].copy_from_slice(value),
    }
}

#[inline]
fn bit(image: &[u8], bit: u16) -> bool {
    image[bit as usize / 8] & 1 << (bit % 8) != 0
}

fn set_bit(image: &mut [u8], bit: u16) {
    image[bit as usize / 8] |= 1 << (bit % 8);
}

fn clear_bit(image: &mut [u8], bit: u16) {
    image[bit as usize / 8] &= !(1 << (bit % 8));
}
