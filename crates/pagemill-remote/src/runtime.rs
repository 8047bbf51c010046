//! The threads that wait for the network, in a runtime of their own, and how a thread that may wait asks them.
//!
//! One for the process, whose threads end with it: whoever asks may itself be a thread of another runtime, which could neither
//! run this one nor end it.
//!
//! Invariant: nothing that runs there waits by holding a thread up, but for [`blocking`] work.

use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that wait for the network. Two, so that one may take bytes apart while the other hands them on.
const THREADS: usize = 2;

/// The runtime.
///
/// # Errors
/// When no thread can be started.
pub(crate) fn handle() -> io::Result<Handle> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime.handle().clone());
    }
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(THREADS).thread_name("pagemill-remote").enable_all();
    // Another that was made meanwhile is as good; this one then ends without having begun.
    let made = builder.build()?;
    Ok(RUNTIME.get_or_init(|| made).handle().clone())
}

/// Runs work there and waits for what comes of it.
///
/// # Errors
/// When no thread can be started, or the work panicked.
pub(crate) fn wait<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    handle()?.spawn(async move {
        // Whoever asked waits for it.
        let _ = tell.send(work.await);
    });
    told.recv().map_err(|_| io::Error::other("a request was dropped"))
}

/// Work that waits for a disk, from within the runtime; `None` when it panicked.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
