//! Scan: the asynchronous side of a table scan, batch by batch.

use crate::NdbError;
use crate::cluster::ClusterConnection;
use crate::core::{RowBatch, ScanRef, ScanSpec, ScanTake, TransRef};
use std::sync::Arc;
use tokio::sync::Notify;

/// A scan under way. Dropped, it is closed.
pub struct Scan {
    connection: ClusterConnection,
    scan: Option<ScanRef>,
    tag: u64,
    news: Arc<Notify>,
}

impl Scan {
    pub(crate) fn start(
        connection: ClusterConnection,
        trans: Option<TransRef>,
        spec: ScanSpec,
    ) -> Result<Self, NdbError> {
        let news = Arc::new(Notify::new());
        let tag = connection.subscribe(Arc::clone(&news));
        let mut started = None;
        connection.tell(|core, now| started = Some(core.scan(now, trans, spec, tag)));
        match started {
            Some(Ok(scan)) => Ok(Self { connection, scan: Some(scan), tag, news }),
            Some(Err(error)) => {
                connection.unsubscribe(tag);
                Err(error)
            }
            None => Err(signals::ErrorCode::STATUS_ERROR.into()),
        }
    }

    /// The next rows, `None` at the end.
    ///
    /// # Errors
    /// The scan is over for this reason; rows may have been missed, so start over.
    pub async fn next(&mut self) -> Result<Option<RowBatch>, NdbError> {
        loop {
            let Some(scan) = self.scan else { return Ok(None) };
            let mut taken = ScanTake::End;
            self.connection.tell(|core, now| taken = core.scan_take(now, scan));
            match taken {
                ScanTake::Rows(rows) => return Ok(Some(rows)),
                ScanTake::End => {
                    self.scan = None;
                    return Ok(None);
                }
                ScanTake::Failed(error) => {
                    self.scan = None;
                    return Err(error);
                }
                // News that came between looking and waiting are kept.
                ScanTake::Pending => self.news.notified().await,
            }
        }
    }

    /// Ends the scan early.
    pub fn close(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(scan) = self.scan.take() {
            self.connection.tell(|core, now| core.scan_close(now, scan));
        }
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        self.end();
        self.connection.unsubscribe(self.tag);
    }
}
