//! Committed reads: a client asks the LDM of a replica for a row, and gets it or a refusal straight back.
//!
//! The hottest path of the database. It takes no lock and keeps no record: one probe of the index, one look
//! at the row, and the row's columns written into the outgoing buffer.

use super::Ldm;
use super::op::{Change, NONE};
use crate::ldm::tup::TupError;
use crate::outbox::Outbox;
use signals::frame::View;
use signals::keyop::{ReadRowRef, ReadRowReq, TransIdAi, projection};
use signals::planted::Fault;
use signals::{BlockRef, ErrorCode};

impl Ldm {
    #[inline]
    pub(super) fn on_readrowreq(&mut self, client: BlockRef, req: &View<'_, ReadRowReq>, out: &mut Outbox) {
        if let Err(code) = self.read_row(client, req, out) {
            let body = ReadRowRef { api_op: req.body.api_op, code: u32::from(code.0) };
            out.send(self.me, client, &body, &[], &[]);
        }
    }

    #[inline]
    fn read_row(
        &mut self,
        client: BlockRef,
        req: &View<'_, ReadRowReq>,
        out: &mut Outbox,
    ) -> Result<(), ErrorCode> {
        let body = &req.body;
        if let Some(code) = self.refusing {
            return Err(code);
        }
        let table = self.tables.get(body.table)?;
        table.check_version(body.version)?;
        let (fragment, hash) = table.place(body.fragment, req.first)?;
        let row = fragment.find(hash, req.first).ok_or(ErrorCode::TUPLE_NOT_FOUND)?;
        let dirty = self.planted.has(Fault::DirtyRead);
        if fragment.tup.is_uncommitted(row) && !dirty {
            return Err(ErrorCode::TUPLE_NOT_FOUND);
        }
        let holder = dirty.then(|| fragment.tup.op_head(row)).filter(|head| *head != NONE);
        let change = holder.map(|head| &self.ops[head]).filter(|op| op.change == Change::Copy);
        let scratch = &mut self.projection;
        out.send_with(self.me, client, |buffer| -> Result<TransIdAi, TupError> {
            let start = buffer.len();
            match change {
                Some(op) => fragment.tup.read_copy(&op.copy, projection(req.second, scratch), buffer)?,
                None => fragment.tup.read(row, projection(req.second, scratch), buffer)?,
            }
            Ok(TransIdAi { api_op: body.api_op, length: (buffer.len() - start) as u32 })
        })?;
        Ok(())
    }
}
