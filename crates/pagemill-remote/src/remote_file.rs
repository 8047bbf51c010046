//! An object as a file behind the seam: [`RemoteFile`].
//!
//! Reads that follow each other fetch more and more beyond what they ask for, up to [`MOST_AHEAD`], as a kernel does: an archive
//! or a WAL file that is read from its beginning to its end takes few requests.
//!
//! Invariant: its length is what it was when its directory was listed; nothing can be written.

use std::any::Any;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_io::File;

use crate::object::Object;
use crate::pieces::{PIECE, Pieces, copy_part};
use crate::runtime;

/// The most bytes that are fetched beyond a read.
const MOST_AHEAD: u64 = 8 << 20;

/// An open object.
#[derive(Debug)]
pub(crate) struct RemoteFile {
    pub(crate) object: Arc<Object>,
    pieces: Arc<Pieces>,
    order: Mutex<Order>,
}

/// In which order it is read.
#[derive(Debug, Default)]
struct Order {
    /// Where the last read ended.
    end: u64,
    /// How much is fetched beyond a read that goes on there.
    ahead: u64,
}

impl RemoteFile {
    pub(crate) fn new(object: Arc<Object>, pieces: Arc<Pieces>) -> Self {
        Self { object, pieces, order: Mutex::default() }
    }

    /// How many bytes there are for a buffer at `offset`.
    pub(crate) fn held(&self, wanted: usize, offset: u64) -> usize {
        let rest = self.object.len.saturating_sub(offset);
        wanted.min(usize::try_from(rest).unwrap_or(usize::MAX))
    }

    /// How far beyond its end a read fetches.
    fn ahead_of(&self, offset: u64, len: u64) -> u64 {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let follows = offset > 0 && offset == order.end;
        if follows {
            // Bytes that were read in order, as many again: who stops has fetched at most as much in vain.
            order.ahead = (order.ahead + len).min(MOST_AHEAD);
        } else {
            order.ahead = 0;
        }
        order.end = offset + len;
        order.ahead
    }
}

impl File for RemoteFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let len = self.held(buf.len(), offset);
        let buf = &mut buf[..len];
        if len == 0 {
            return Ok(0);
        }
        let ahead = self.ahead_of(offset, len as u64);
        if self.pieces.copy(&self.object, buf, offset) {
            return Ok(len);
        }
        let end = offset + len as u64;
        let beyond = (end + ahead) / PIECE * PIECE;
        let range = offset..end.max(beyond).min(self.object.len);
        let (object, pieces) = (self.object.clone(), self.pieces.clone());
        let found = runtime::wait(async move { pieces.fetch(&object, range).await })??;
        for piece in found {
            copy_part(buf, offset, piece.at, &piece.bytes);
        }
        Ok(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.object.len)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}
