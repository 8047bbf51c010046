//! [`FullPageWrites`]: whether `full_page_writes` was on all the time, as far as WAL tells.
//!
//! A running server logs it when the setting changes. One that starts does not: its recovery is not over yet when it looks
//! at its settings. So what a shutdown checkpoint or the end of a recovery says holds no longer behind it. From there on it
//! is known from the next checkpoint, which says what the running server does, or from an image that no server writes
//! otherwise.
//!
//! Invariant: "on" is only said when it was on throughout.
//!
//! Source: `UpdateFullPageWrites` and `StartupXLOG` in `src/backend/access/transam/xlog.c`, PostgreSQL 14 to 18.

use pagemill_format::wal::{BlockTouch, RecordHeader, ResourceManager};

/// What is known of the setting so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FullPageWrites {
    /// No server of which it is known had it off.
    was_on: bool,
    /// It is known of the server that wrote the last record.
    is_known: bool,
}

impl FullPageWrites {
    /// What the checkpoint says that recovery begins from. `is_shutdown`: a server was started behind it.
    pub(super) fn from_checkpoint(is_on: bool, is_shutdown: bool) -> Self {
        Self { was_on: is_on || is_shutdown, is_known: !is_shutdown }
    }

    /// A checkpoint, of a server that ends with it or goes on.
    pub(super) fn checkpoint(&mut self, is_on: bool, is_shutdown: bool) {
        self.was_on &= is_on;
        self.is_known = true;
        if is_shutdown {
            self.restart();
        }
    }

    /// The setting was changed: for a part of the WAL it was off.
    pub(super) fn change(&mut self) {
        self.was_on = false;
    }

    /// Another server goes on.
    pub(super) fn restart(&mut self) {
        self.was_on &= self.is_known;
        self.is_known = false;
    }

    /// A block of a table or a B-tree came with [an image](is_table_image).
    pub(super) fn saw_image(&mut self) {
        self.is_known = true;
    }

    /// True when it was on from the first record to the last.
    pub(super) fn was_on(self) -> bool {
        self.was_on && self.is_known
    }
}

/// True for a block with an image that its record has only because of the setting.
#[inline]
pub(crate) fn is_table_image(header: &RecordHeader, block: &BlockTouch) -> bool {
    let managers = [ResourceManager::HEAP, ResourceManager::HEAP2, ResourceManager::BTREE];
    block.brings_image && managers.contains(&header.resource_manager)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_that_ends_does_not_hold_for_the_next_one() {
        let mut setting = FullPageWrites::from_checkpoint(true, true);
        assert!(!setting.was_on());
        setting.checkpoint(true, false);
        assert!(setting.was_on());
        setting.checkpoint(true, true);
        assert!(!setting.was_on());
        setting.checkpoint(false, false);
        setting.checkpoint(true, false);
        assert!(!setting.was_on());
    }

    #[test]
    fn a_server_of_which_nothing_is_known_counts_as_one_that_had_it_off() {
        let mut setting = FullPageWrites::from_checkpoint(false, true);
        setting.restart();
        setting.checkpoint(true, false);
        assert!(!setting.was_on());
        let mut setting = FullPageWrites::from_checkpoint(true, false);
        setting.restart();
        setting.checkpoint(true, false);
        assert!(setting.was_on());
        setting.change();
        assert!(!setting.was_on());
    }
}
