//! Which method a stream writes by, and whether past the page cache: as was asked for, or what suits the place.
//!
//! Why past it: a large new file is not read again soon, and writing it through the page cache costs a copy, the
//! memory of others, and on virtual machines the first touch of every page, which can be several times the
//! device's own time. Extended beforehand and with several writes in flight the device is as busy without.
//! Small files are not worth it, and neither are file systems that write to a new place each time: they
//! compute checksums or compress, and do that better for what they have cached.
//!
//! Invariant: the choice never changes what is written; a method that was asked for is the method, or an error
//! that says why it cannot be.

use std::path::Path;
use std::sync::Arc;

use pagemill_format::Fork;
use pagemill_io::{
    Caching, Create, ErrorKind, MappedWrites, OpenForWrite, QueuedWrites, Result, Storage,
    WritableFork, WriteMethod,
};

use crate::write_stream::WriteBackend;

/// Fewer blocks than this are written through the page cache (32 MiB).
const SMALL: u32 = 4096;

/// Makes a fork to write about so many blocks to, past the page cache where `auto` is for that. Goes with `io_method`
/// `auto` or one of the queues.
///
/// # Errors
/// As [`WritableFork::open`].
pub fn create_fork(
    storage: &Storage,
    base: &Path,
    fork: Fork,
    blocks: u32,
) -> Result<WritableFork> {
    let new = |caching| OpenForWrite { create: Create::New, caching };
    let open = |caching| WritableFork::open(storage, base, fork, new(caching));
    if blocks < SMALL || storage.place_of(base).copies_on_write {
        return open(Caching::Buffered);
    }
    match open(Caching::Direct) {
        Err(error) if matches!(error.kind(), ErrorKind::Refused(_)) => open(Caching::Buffered),
        opened => opened,
    }
}

/// The way, and why it is this one.
pub(crate) fn choose(
    fork: &Arc<WritableFork>,
    asked: Option<WriteMethod>,
    depth: u32,
) -> Result<(WriteBackend, String)> {
    let (backend, reason) = match asked {
        Some(method) => (way(fork, method, depth)?, "asked for".to_owned()),
        None => automatic(fork, depth),
    };
    tracing::debug!(path = %fork.path().display(), %reason, "method to write");
    Ok((backend, reason))
}

fn way(fork: &Arc<WritableFork>, method: WriteMethod, depth: u32) -> Result<WriteBackend> {
    Ok(match method {
        WriteMethod::Pwrite => WriteBackend::Calls { vectored: false },
        WriteMethod::Pwritev => WriteBackend::Calls { vectored: true },
        WriteMethod::Mmap => WriteBackend::Mapped(MappedWrites::new(fork.clone())?),
        WriteMethod::Worker | WriteMethod::IoUring => match method.queue() {
            Some(kind) => WriteBackend::Queued(QueuedWrites::new(fork, kind, depth)?, method),
            None => WriteBackend::Calls { vectored: false },
        },
    })
}

/// Past the page cache a writer that waits for each write leaves the device idle in between; into it, a write
/// is a copy, and another thread's hands cost more than they bring.
fn automatic(fork: &Arc<WritableFork>, depth: u32) -> (WriteBackend, String) {
    if fork.how().caching == Caching::Buffered {
        let reason = "auto: a copy to the page cache, written back steadily";
        return (WriteBackend::Calls { vectored: false }, reason.to_owned());
    }
    let mut refusals = Vec::new();
    for method in [WriteMethod::IoUring, WriteMethod::Worker] {
        match way(fork, method, depth) {
            Ok(way) => {
                return (way, because("auto: past the page cache, several at once", &refusals));
            }
            Err(error) => refusals.push(error.kind().to_string()),
        }
    }
    (WriteBackend::Calls { vectored: false }, because("auto", &refusals))
}

fn because(reason: &str, refusals: &[String]) -> String {
    if refusals.is_empty() {
        reason.to_owned()
    } else {
        format!("{reason}: {}", refusals.join("; "))
    }
}
