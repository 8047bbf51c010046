//! Which method a stream writes by: the one that was asked for, or what suits the place.
//!
//! Invariant: the choice never changes what is written; a method that was asked for is the method, or an error
//! that says why it cannot be.

use std::sync::Arc;

use pagemill_io::{Caching, MappedWrites, QueuedWrites, Result, WritableFork, WriteMethod};

use crate::write_stream::Way;

/// The way, and why it is this one.
pub(crate) fn choose(
    fork: &Arc<WritableFork>,
    asked: Option<WriteMethod>,
    depth: u32,
) -> Result<(Way, String)> {
    match asked {
        Some(method) => Ok((way(fork, method, depth)?, "asked for".to_owned())),
        None => Ok(automatic(fork, depth)),
    }
}

fn way(fork: &Arc<WritableFork>, method: WriteMethod, depth: u32) -> Result<Way> {
    Ok(match method {
        WriteMethod::Pwrite => Way::Calls { vectored: false },
        WriteMethod::Pwritev => Way::Calls { vectored: true },
        WriteMethod::Mmap => Way::Mapped(MappedWrites::new(fork.clone())?),
        WriteMethod::Worker | WriteMethod::IoUring => match method.queue() {
            Some(kind) => Way::Queued(QueuedWrites::new(fork, kind, depth)?, method),
            None => Way::Calls { vectored: false },
        },
    })
}

/// Past the page cache a writer that waits for each write leaves the device idle in between; into it, a write
/// is a copy, and another thread's hands cost more than they bring.
fn automatic(fork: &Arc<WritableFork>, depth: u32) -> (Way, String) {
    if fork.how().caching == Caching::Buffered {
        let reason = "auto: a copy to the page cache, written back steadily";
        return (Way::Calls { vectored: false }, reason.to_owned());
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
    (Way::Calls { vectored: false }, because("auto", &refusals))
}

fn because(reason: &str, refusals: &[String]) -> String {
    if refusals.is_empty() {
        reason.to_owned()
    } else {
        format!("{reason}: {}", refusals.join("; "))
    }
}
