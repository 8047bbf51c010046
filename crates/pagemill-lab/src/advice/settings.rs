//! The settings that are advised on: which version has them, with what default, and what makes a change take effect.
//!
//! Each entry names its source. Names, defaults, contexts and ranges were read from
//! `src/backend/utils/misc/guc.c` (14, 15) and `guc_tables.c` (16 to 18), and a test holds them against `pg_settings` of
//! every server that is installed. Of PostgreSQL's contexts, `postmaster` needs a restart; for `sighup`, `superuser` and
//! `user` a reload is enough. Invariant: `rule` says nothing of versions that do not have the setting.

use crate::advice::run_figures::RunFigures;
use crate::advice::setting_values::SettingValues::{self, Blocks, Bool, Integer, Real, Words};
use crate::advice::version::Version;
use crate::advice::{Ruling, Scope, TakesEffect, concurrency, files, reads, wal};

/// A setting.
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) scope: Scope,
    pub(super) takes_effect: TakesEffect,
    /// The first major version that has it.
    since: u32,
    /// Minor versions with which it came to older major ones: (major, minor).
    since_minor: &'static [(u32, u32)],
    /// Defaults on Linux with 8 kB blocks, as `SHOW` prints them: from which major version on, and what.
    defaults: &'static [(u32, &'static str)],
    /// The values it takes: from which major version on, and what.
    takes: &'static [(u32, SettingValues)],
    pub(super) rule: fn(&RunFigures<'_>, Version) -> Ruling,
}

/// Whether a version has a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Absent,
    Present,
    /// From this minor version on, and none was named.
    Since(u32),
}

impl Known {
    const fn server(
        name: &'static str,
        takes: &'static [(u32, SettingValues)],
        rule: fn(&RunFigures<'_>, Version) -> Ruling,
    ) -> Self {
        Self {
            name,
            scope: Scope::Server,
            takes_effect: TakesEffect::Reload,
            since: Version::OLDEST,
            since_minor: &[],
            defaults: &[],
            takes,
            rule,
        }
    }

    const fn since(self, since: u32) -> Self {
        Self { since, ..self }
    }

    const fn restart(self) -> Self {
        Self { takes_effect: TakesEffect::Restart, ..self }
    }

    const fn defaults(self, defaults: &'static [(u32, &'static str)]) -> Self {
        Self { defaults, ..self }
    }

    /// Whether servers of that version have it.
    pub(super) fn presence(&self, version: Version) -> Presence {
        if version.major() < self.since {
            return Presence::Absent;
        }
        let came = self.since_minor.iter().find(|(major, _)| *major == version.major());
        match (came, version.minor()) {
            (None, _) => Presence::Present,
            (Some((_, came)), None) => Presence::Since(*came),
            (Some((_, came)), Some(minor)) if minor >= *came => Presence::Present,
            (Some(_), Some(_)) => Presence::Absent,
        }
    }

    /// Its default in that version; of the device, what the run found.
    pub(super) fn default(&self, version: Version, run_figures: &RunFigures<'_>) -> String {
        if self.scope == Scope::Device {
            return reads::read_ahead_now(run_figures)
                .map_or("unknown".into(), |found| found.to_string());
        }
        of_version(self.defaults, version).map_or_else(String::new, |default| (*default).to_owned())
    }

    /// The values it takes in that version.
    pub(super) fn takes(&self, version: Version) -> Option<SettingValues> {
        of_version(self.takes, version).copied()
    }
}

/// What holds from the latest of these versions on.
fn of_version<T>(known: &[(u32, T)], version: Version) -> Option<&T> {
    let found = known.iter().rev().find(|(from, _)| *from <= version.major());
    found.map(|(_, value)| value)
}

/// Numbers of reads in flight (`MAX_IO_CONCURRENCY`, src/include/storage/bufmgr.h).
const CONCURRENCY: &[(u32, SettingValues)] = &[(14, Integer(0, 1000))];
/// Bytes to be sent to the device (`WRITEBACK_MAX_PENDING_FLUSHES`, src/include/pg_config_manual.h).
const FLUSH: &[(u32, SettingValues)] = &[(14, Blocks(0, 256))];
const METHODS: &[&str] = &["sync", "worker", "io_uring"];
const SYNCS: &[&str] = &["fsync", "fdatasync", "open_sync", "open_datasync"];

/// All of them, in the order in which they are told.
pub(super) const SETTINGS: &[Known] = &[
    // 18: postmaster; io_uring where built with liburing.
    Known::server("io_method", &[(18, Words(METHODS))], concurrency::io_method)
        .since(18)
        .restart()
        .defaults(&[(18, "worker")]),
    // 18: sighup.
    Known::server("io_workers", &[(18, Integer(1, 32))], concurrency::io_workers)
        .since(18)
        .defaults(&[(18, "3")]),
    // 14 to 18: user. 16 since 18 (release notes of 18), 1 before.
    Known::server("effective_io_concurrency", CONCURRENCY, concurrency::effective_io_concurrency)
        .defaults(&[(14, "1"), (18, "16")]),
    // 14 to 18: user. 16 since 18, 10 before.
    Known::server(
        "maintenance_io_concurrency",
        CONCURRENCY,
        concurrency::maintenance_io_concurrency,
    )
    .defaults(&[(14, "10"), (18, "16")]),
    // 17, 18: user; in 18 no more than io_max_combine_limit.
    Known::server(
        "io_combine_limit",
        &[(17, Blocks(1, 32)), (18, Blocks(1, 128))],
        reads::io_combine_limit,
    )
    .since(17)
    .defaults(&[(17, "128kB")]),
    // 18: postmaster.
    Known::server("io_max_combine_limit", &[(18, Blocks(1, 128))], reads::io_max_combine_limit)
        .since(18)
        .restart()
        .defaults(&[(18, "128kB")]),
    // 14 to 18: user.
    Known::server("random_page_cost", &[(14, Real)], reads::random_page_cost)
        .defaults(&[(14, "4")]),
    // 14 to 18: user.
    Known::server("seq_page_cost", &[(14, Real)], reads::seq_page_cost).defaults(&[(14, "1")]),
    // 14 to 18: sighup; fdatasync on Linux (src/include/port/linux.h).
    Known::server("wal_sync_method", &[(14, Words(SYNCS))], wal::wal_sync_method)
        .defaults(&[(14, "fdatasync")]),
    // 14 to 18: superuser.
    Known::server("wal_init_zero", &[(14, Bool)], wal::wal_init_zero).defaults(&[(14, "on")]),
    // 14 to 18: superuser.
    Known::server("wal_recycle", &[(14, Bool)], wal::wal_recycle).defaults(&[(14, "on")]),
    // 18.2, 17.8 and 16.12 (release notes of 2026-02-12): sighup. 16.0 to 16.11 and so on extend by posix_fallocate and cannot
    // be told otherwise; 14 and 15 write zeros.
    Known {
        since_minor: &[(16, 12), (17, 8), (18, 2)],
        ..Known::server(
            "file_extend_method",
            &[(16, Words(&["posix_fallocate", "write_zeros"]))],
            files::file_extend_method,
        )
        .since(16)
        .defaults(&[(16, "posix_fallocate")])
    },
    // 18: user.
    Known::server("file_copy_method", &[(18, Words(&["copy", "clone"]))], files::file_copy_method)
        .since(18)
        .defaults(&[(18, "copy")]),
    // 14 to 18: sighup; 32 blocks on Linux (DEFAULT_CHECKPOINT_FLUSH_AFTER, src/include/storage/bufmgr.h).
    Known::server("checkpoint_flush_after", FLUSH, files::checkpoint_flush_after)
        .defaults(&[(14, "256kB")]),
    // 14 to 18: user.
    Known::server("backend_flush_after", FLUSH, files::backend_flush_after).defaults(&[(14, "0")]),
    // A file of sysfs, in kB: /sys/class/block/DEVICE/queue/read_ahead_kb.
    Known {
        scope: Scope::Device,
        takes_effect: TakesEffect::AtOnce,
        ..Known::server("read_ahead_kb", &[], reads::read_ahead_kb)
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn names(version: &str) -> Vec<&'static str> {
        let version = version.parse().unwrap();
        let has = |known: &&Known| known.presence(version) != Presence::Absent;
        SETTINGS.iter().filter(has).map(|known| known.name).collect()
    }

    #[test]
    fn versions_have_the_settings_that_came_with_them() {
        let has = |version, name: &str| names(version).contains(&name);
        assert!(!has("16", "io_combine_limit") && has("17", "io_combine_limit"));
        assert!(!has("17", "io_method") && has("18", "io_method"));
        assert!(!has("17", "file_copy_method") && has("18", "file_copy_method"));
        assert!(!has("15", "file_extend_method") && has("16", "file_extend_method"));
        assert!(!has("17.7", "file_extend_method") && has("17.8", "file_extend_method"));
        assert!(!has("18.1", "file_extend_method") && has("18.4", "file_extend_method"));
        assert_eq!((names("14").len(), names("18").len()), (10, 16));
    }

    #[test]
    fn every_setting_of_the_server_has_a_default_that_it_takes_in_each_version_that_has_it() {
        let results = crate::results::Results::default();
        for known in SETTINGS.iter().filter(|known| known.scope == Scope::Server) {
            for major in known.since..=Version::NEWEST {
                let version = major.to_string().parse().unwrap();
                let default = known.default(version, &RunFigures::new(&results));
                let takes = known.takes(version).unwrap();
                assert!(takes.accepts(&default), "{} = {default:?}: {takes:?}", known.name);
            }
        }
    }
}
