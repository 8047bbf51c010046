//! The progress bar: pages done of all pages, with rate and remaining time, on standard error.
//!
//! A thread of its own asks the operation how far it is, so the operation never waits for a
//! terminal. Invariant: whatever else goes to the terminal is written while the bar is not there:
//! through [`ProgressDisplay::aside`], or after it was dropped.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use pagemill_engine::Progress;
use pagemill_format::BLOCK_SIZE;

use crate::arguments::ProgressMode;
use crate::failure::is_quiet;

const ASK_EVERY: Duration = Duration::from_millis(100);
const TEMPLATE: &str = "{bar:30} {percent:>3}% {human_pos}/{human_len} pages, \
                        {rate} pages/s, {elapsed} elapsed, {eta} left";

const BYTES_TEMPLATE: &str =
    "{bar:30} {percent:>3}% {bytes}/{total_bytes}, {bytes_per_sec}, {elapsed} elapsed, {eta} left";

/// A progress bar that is shown, or none.
pub(crate) struct ProgressDisplay {
    shown: Option<Shown>,
}

struct Shown {
    bar: ProgressBar,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// True when a bar is to be shown.
pub(crate) fn is_wanted(mode: ProgressMode) -> bool {
    mode == ProgressMode::Auto && !is_quiet() && std::io::stderr().is_terminal()
}

impl ProgressDisplay {
    /// Shows a bar for so many pages; for `None`, nothing.
    pub(crate) fn start(pages: Option<u64>, progress: &Arc<Progress>) -> Self {
        Self::start_with(pages, progress, TEMPLATE, 1)
    }

    /// As [`start`](Self::start), told in bytes.
    pub(crate) fn start_bytes(pages: Option<u64>, progress: &Arc<Progress>) -> Self {
        Self::start_with(pages, progress, BYTES_TEMPLATE, BLOCK_SIZE as u64)
    }

    fn start_with(pages: Option<u64>, progress: &Arc<Progress>, template: &str, unit: u64) -> Self {
        let Some(pages) = pages else { return Self { shown: None } };
        let bar = ProgressBar::with_draw_target(Some(pages * unit), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("rate", write_rate));
        }
        let (stop, stopped) = channel::<()>();
        let (watched, moved) = (progress.clone(), bar.clone());
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(ASK_EVERY) == Err(RecvTimeoutError::Timeout) {
                moved.set_position(watched.pages() * unit);
            }
        });
        Self { shown: Some(Shown { bar, stop: Some(stop), thread: Some(thread) }) }
    }

    /// Does something that writes to the terminal while the bar is not there.
    pub(crate) fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        match &self.shown {
            Some(shown) => shown.bar.suspend(work),
            None => work(),
        }
    }
}

fn write_rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // There is nowhere to report a failure to draw.
    let _ = write!(out, "{:.0}", state.per_sec());
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // The thread only draws; should it have panicked, the work is none the worse.
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}
