//! After-images: what a row will be when the transaction that changes it commits.
//!
//! A [`CopyTuple`] is empty or prepared. Only `prepare_update` fills it; `commit_update` and `abort_update`
//! empty it and keep its buffers. A prepared one may hold a reservation of variable space, so it must end
//! in one of the two: if it is dropped, that space is lost until the fragment is.

use super::layout::Tuple;
use super::var::{Reservation, VarRef};
use super::{TupError, TupFragment, set_var_offset, set_var_ref, var_ref};
use crate::ldm::row_ref::RowRef;

/// The after-image of one operation.
#[derive(Debug, Default)]
pub struct CopyTuple {
    image: Vec<u8>,
    body: Vec<u8>,
    promise: Option<Reservation>,
}

impl CopyTuple {
    /// The row as it will be.
    #[inline]
    #[must_use]
    pub fn tuple(&self) -> Tuple<'_> {
        Tuple { image: &self.image, body: &self.body }
    }

    #[cfg(test)]
    pub(super) fn promised_bytes(&self) -> u64 {
        self.promise.as_ref().map_or(0, Reservation::bytes)
    }

    /// Bytes its buffers hold.
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.image.capacity() + self.body.capacity()
    }
}

/// What an after-image is built on.
#[derive(Debug, Clone, Copy)]
pub enum Before<'a> {
    /// The row as it stands in its slot (committed, or inserted by the same transaction).
    Row,
    /// The newest after-image of the same transaction.
    Copy(&'a CopyTuple),
    /// Nothing: the same transaction has deleted the row and now inserts one with the same key.
    Deleted,
}

impl TupFragment {
    /// Builds the after-image of a change of `row` in `out`, which must be empty. Commit is then certain to
    /// succeed.
    ///
    /// # Errors
    /// The row cannot be changed as asked; nothing has changed and `out` is empty.
    pub fn prepare_update(
        &mut self,
        row: RowRef,
        before: Before<'_>,
        attrs: &[u8],
        out: &mut CopyTuple,
    ) -> Result<(), TupError> {
        debug_assert!(out.promise.is_none(), "an after-image was used again unresolved");
        let slot = self.fixed.slot(row);
        let at = if self.layout.var_columns > 0 { var_ref(slot) } else { VarRef::NONE };
        let row_tuple = Tuple {
            image: &slot[self.layout.image_offset..][..self.layout.image_bytes],
            body: self.var.body(at),
        };
        let base = match before {
            Before::Row | Before::Deleted => row_tuple,
            Before::Copy(copy) => copy.tuple(),
        };
        out.image.clear();
        match before {
            Before::Row | Before::Copy(_) => {
                out.image.extend_from_slice(base.image);
                self.layout.base_sources(base.body, &mut self.sources);
            }
            Before::Deleted => {
                out.image.extend_from_slice(&self.layout.template);
                self.sources.clear();
                self.sources.extend_from_slice(&self.layout.var_template);
                self.layout.copy_key(base, &mut out.image, &mut self.sources);
            }
        }
        let seen = self.layout.apply(attrs, Some(base), &mut out.image, &mut self.sources)?;
        if matches!(before, Before::Deleted) {
            self.layout.check_complete(&seen)?;
        }
        out.body.clear();
        if self.layout.var_columns == 0 {
            return Ok(());
        }
        out.body.resize(self.layout.body_bytes(&self.sources)?, 0);
        self.layout.write_body(&self.sources, attrs, base.body, &mut out.body);
        if out.body.len() > self.var.capacity(at) {
            out.promise = Some(self.var.reserve(out.body.len())?);
        }
        Ok(())
    }

    /// Puts the after-image into the row and empties it.
    pub fn commit_update(&mut self, row: RowRef, copy: &mut CopyTuple, epoch: u64) {
        let start = self.layout.image_offset;
        self.fixed.slot_mut(row)[start..start + self.layout.image_bytes].copy_from_slice(&copy.image);
        self.fixed.commit(row, epoch);
        if self.layout.var_columns == 0 {
            return;
        }
        let old = var_ref(self.fixed.slot(row));
        let at = match copy.promise.take() {
            Some(promise) => {
                self.var.free(old);
                let fixed = &mut self.fixed;
                self.var.place(promise, row, |moved, offset| set_var_offset(fixed.slot_mut(moved), offset))
            }
            None if copy.body.is_empty() => {
                self.var.free(old);
                VarRef::NONE
            }
            None => self.var.resize(old, copy.body.len()),
        };
        self.var.body_mut(at).copy_from_slice(&copy.body);
        set_var_ref(self.fixed.slot_mut(row), at);
        copy.body.clear();
    }

    /// Empties the after-image; the row stays as it is.
    pub fn abort_update(&mut self, copy: &mut CopyTuple) {
        if let Some(promise) = copy.promise.take() {
            self.var.release(promise);
        }
        copy.image.clear();
        copy.body.clear();
    }

    /// Appends the columns of `projection` of an after-image as AttrInfo, in its order.
    ///
    /// # Errors
    /// A column that does not exist.
    pub fn read_copy(&self, copy: &CopyTuple, projection: &[u16], out: &mut Vec<u8>) -> Result<(), TupError> {
        self.layout().read(copy.tuple(), projection, out)
    }
}
