//! `pg_control` in the words of `pg_controldata`, so that the two can be compared line by line.
//!
//! Labels and order are an interface: scripts read them. Times are printed in UTC, as
//! `pg_controldata` does with `TZ=UTC LC_ALL=C` (`strftime` `%c`).
//!
//! Source: `src/bin/pg_controldata/pg_controldata.c`, PostgreSQL 15 and 18.

use super::{BuildSettings, Checkpoint, ControlFile, WalSettings};
use crate::ids::Lsn;

/// A label without its colon, and the value beside it.
type Field = (&'static str, String);

impl ControlFile {
    /// Every line of `pg_controldata`: the label without its colon, and the value.
    pub fn fields(&self) -> Vec<Field> {
        let mut fields = self.state_fields();
        fields.extend(checkpoint_fields(&self.checkpoint, self.build.wal_segment_size));
        fields.extend(self.recovery_fields());
        fields.extend(setting_fields(&self.settings));
        fields.extend(build_fields(&self.build));
        fields.extend(self.closing_fields());
        fields
    }

    /// The text of `pg_controldata`, values in the column where it puts them.
    pub fn to_text(&self) -> String {
        self.fields()
            .iter()
            .map(|(label, value)| format!("{:<38}{value}\n", format!("{label}:")))
            .collect()
    }

    fn state_fields(&self) -> Vec<Field> {
        vec![
            ("pg_control version number", self.control_version.to_string()),
            ("Catalog version number", self.catalog_version.to_string()),
            ("Database system identifier", self.system_identifier.to_string()),
            ("Database cluster state", self.state.to_string()),
            ("pg_control last modified", c_locale_time(self.time)),
            ("Latest checkpoint location", self.checkpoint_location.to_string()),
        ]
    }

    fn recovery_fields(&self) -> Vec<Field> {
        vec![
            ("Fake LSN counter for unlogged rels", self.unlogged_lsn.to_string()),
            ("Minimum recovery ending location", self.min_recovery_point.to_string()),
            ("Min recovery ending loc's timeline", self.min_recovery_point_timeline.to_string()),
            ("Backup start location", self.backup_start_point.to_string()),
            ("Backup end location", self.backup_end_point.to_string()),
            ("End-of-backup record required", either(self.backup_end_required, "yes", "no")),
        ]
    }

    fn closing_fields(&self) -> Vec<Field> {
        let mut fields =
            vec![("Data page checksum version", self.data_checksum_version.to_string())];
        if let Some(signed) = self.default_char_signedness {
            fields.push(("Default char data signedness", either(signed, "signed", "unsigned")));
        }
        let nonce = self.mock_authentication_nonce.iter().map(|byte| format!("{byte:02x}"));
        fields.push(("Mock authentication nonce", nonce.collect()));
        fields
    }
}

fn checkpoint_fields(checkpoint: &Checkpoint, wal_segment_size: u32) -> Vec<Field> {
    let c = checkpoint;
    vec![
        ("Latest checkpoint's REDO location", c.redo.to_string()),
        ("Latest checkpoint's REDO WAL file", wal_file_name(c.timeline, c.redo, wal_segment_size)),
        ("Latest checkpoint's TimeLineID", c.timeline.to_string()),
        ("Latest checkpoint's PrevTimeLineID", c.previous_timeline.to_string()),
        ("Latest checkpoint's full_page_writes", either(c.full_page_writes, "on", "off")),
        ("Latest checkpoint's NextXID", c.next_xid.to_string()),
        ("Latest checkpoint's NextOID", c.next_oid.to_string()),
        ("Latest checkpoint's NextMultiXactId", c.next_multi.to_string()),
        ("Latest checkpoint's NextMultiOffset", c.next_multi_offset.to_string()),
        ("Latest checkpoint's oldestXID", c.oldest_xid.to_string()),
        ("Latest checkpoint's oldestXID's DB", c.oldest_xid_database.to_string()),
        ("Latest checkpoint's oldestActiveXID", c.oldest_active_xid.to_string()),
        ("Latest checkpoint's oldestMultiXid", c.oldest_multi.to_string()),
        ("Latest checkpoint's oldestMulti's DB", c.oldest_multi_database.to_string()),
        ("Latest checkpoint's oldestCommitTsXid", c.oldest_commit_ts_xid.to_string()),
        ("Latest checkpoint's newestCommitTsXid", c.newest_commit_ts_xid.to_string()),
        ("Time of latest checkpoint", c_locale_time(c.time)),
    ]
}

fn setting_fields(s: &WalSettings) -> Vec<Field> {
    let level = match s.wal_level {
        0 => "minimal",
        1 => "replica",
        2 => "logical",
        _ => "unrecognized wal_level",
    };
    vec![
        ("wal_level setting", level.to_owned()),
        ("wal_log_hints setting", either(s.wal_log_hints, "on", "off")),
        ("max_connections setting", s.max_connections.to_string()),
        ("max_worker_processes setting", s.max_worker_processes.to_string()),
        ("max_wal_senders setting", s.max_wal_senders.to_string()),
        ("max_prepared_xacts setting", s.max_prepared_xacts.to_string()),
        ("max_locks_per_xact setting", s.max_locks_per_xact.to_string()),
        ("track_commit_timestamp setting", either(s.track_commit_timestamp, "on", "off")),
    ]
}

fn build_fields(b: &BuildSettings) -> Vec<Field> {
    vec![
        ("Maximum data alignment", b.max_align.to_string()),
        ("Database block size", b.block_size.to_string()),
        ("Blocks per segment of large relation", b.segment_blocks.to_string()),
        ("WAL block size", b.wal_block_size.to_string()),
        ("Bytes per WAL segment", b.wal_segment_size.to_string()),
        ("Maximum length of identifiers", b.name_data_len.to_string()),
        ("Maximum columns in an index", b.index_max_keys.to_string()),
        ("Maximum size of a TOAST chunk", b.toast_max_chunk_size.to_string()),
        ("Size of a large-object chunk", b.large_object_block_size.to_string()),
        ("Date/time type storage", "64-bit integers".to_owned()),
        ("Float8 argument passing", either(b.float8_by_value, "by value", "by reference")),
    ]
}

fn either(choice: bool, yes: &str, no: &str) -> String {
    if choice { yes } else { no }.to_owned()
}

/// Timeline, then the segment number split at 4 GiB of WAL, each as 8 hex digits.
fn wal_file_name(timeline: u32, lsn: Lsn, segment_size: u32) -> String {
    let size = u64::from(segment_size);
    let (Some(segment), Some(per_id)) = (lsn.0.checked_div(size), (1_u64 << 32).checked_div(size))
    else {
        return "???".to_owned();
    };
    format!("{timeline:08X}{:08X}{:08X}", segment / per_id, segment % per_id)
}

/// Seconds since 1970 as `strftime`'s `%c` in the C locale, in UTC.
fn c_locale_time(seconds: i64) -> String {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_date(days);
    let weekday = WEEKDAYS.get(days.rem_euclid(7) as usize).copied().unwrap_or("?");
    let month = MONTHS.get(month).copied().unwrap_or("?");
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} {year}")
}

/// Year, month (from 0) and day of the month, of days since 1970-01-01 in the Gregorian
/// calendar. Years are counted from March, so that the leap day is a year's last.
fn civil_date(days: i64) -> (i64, usize, i64) {
    const DAYS_TO_1970_FROM_MARCH_OF_YEAR_0: i64 = 719_468;
    const DAYS_IN_400_YEARS: i64 = 146_097;
    let days = days + DAYS_TO_1970_FROM_MARCH_OF_YEAR_0;
    let (era, day) = (days.div_euclid(DAYS_IN_400_YEARS), days.rem_euclid(DAYS_IN_400_YEARS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let january_or_february = i64::from(month < 2);
    (era * 400 + year + january_or_february, month as usize, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_as_strftime_prints_them() {
        let cases = [
            (0, "Thu Jan  1 00:00:00 1970"),
            (-1, "Wed Dec 31 23:59:59 1969"),
            (951_782_400, "Tue Feb 29 00:00:00 2000"),
            (1_795_162_692, "Fri Nov 20 08:18:12 2026"),
            (4_107_542_400, "Mon Mar  1 00:00:00 2100"),
        ];
        for (seconds, text) in cases {
            assert_eq!(c_locale_time(seconds), text);
        }
    }

    #[test]
    fn no_time_is_out_of_range() {
        assert!(!c_locale_time(i64::MIN).is_empty() && !c_locale_time(i64::MAX).is_empty());
    }

    #[test]
    fn wal_files_are_numbered_by_the_size_of_their_segments() {
        let name = |lsn, size| wal_file_name(1, Lsn(lsn), size);
        assert_eq!(name(0x3_C232F8, 16 << 20), "000000010000000000000003");
        assert_eq!(name(0x5_FFFF_FFFF, 64 << 20), "00000001000000050000003F");
        assert_eq!(name(0x5_FFFF_FFFF, 0), "???");
    }
}
