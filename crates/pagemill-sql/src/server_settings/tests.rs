//! Values as servers of PostgreSQL 14 to 18 read and show them.
//!
//! Invariant: what is expected was asked of a server.

use super::*;
use crate::session::SettingValues;

fn shown(name: &str, value: &str) -> Option<(String, String)> {
    let fact = fact(18, name).unwrap();
    let plain = fact.plain(value)?;
    let shown = fact.shown(&plain);
    Some((plain, shown))
}

#[test]
fn the_table_has_all_settings_of_each_version() {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(FACTS.len(), lines.count());
    let counts = [14, 15, 16, 17, 18].map(|major| listed(major).count());
    assert_eq!(counts, [346, 356, 361, 377, 398]);
    for fact in FACTS.iter().filter(|fact| fact.kind == Kind::Enum) {
        let boot = fact.boot.unwrap();
        let plain = fact.plain(boot).unwrap();
        assert!(plain == boot || plain == "pglz", "{}", fact.name);
    }
    for major in 14..=18 {
        let names: Vec<String> = listed(major).map(|fact| fact.name.to_lowercase()).collect();
        assert!(names.is_sorted(), "in the server's order");
    }
}

#[test]
fn values_are_read_and_shown_with_units() {
    for (name, value, plain, expected) in [
        ("work_mem", "4MB", "4096", "4MB"),
        ("work_mem", "8192", "8192", "8MB"),
        ("work_mem", "1.5 MB", "1536", "1536kB"),
        ("work_mem", "0x1000", "4096", "4MB"),
        ("work_mem", "010000", "4096", "4MB"),
        ("work_mem", "65536B", "64", "64kB"),
        ("work_mem", "1e3", "1000", "1000kB"),
        ("shared_buffers", "128MB", "16384", "128MB"),
        ("shared_buffers", "17", "17", "136kB"),
        ("wal_segment_size", "16777216", "16777216", "16MB"),
        ("max_wal_size", "1GB", "1024", "1GB"),
        ("max_wal_size", "1.0001GB", "1024", "1GB"),
        ("statement_timeout", "90s", "90000", "90s"),
        ("statement_timeout", "0", "0", "0"),
        ("statement_timeout", "1500us", "2", "2ms"),
        ("log_rotation_age", "1d", "1440", "1d"),
        ("checkpoint_timeout", "300", "300", "5min"),
        ("autovacuum_work_mem", "-1", "-1", "-1"),
        ("vacuum_cost_delay", "2", "2", "2ms"),
        ("vacuum_cost_delay", "0.5ms", "0.5", "500us"),
        ("vacuum_cost_delay", "0", "0", "0"),
        ("random_page_cost", "1.10", "1.1", "1.1"),
        ("cursor_tuple_fraction", "0.1", "0.1", "0.1"),
        ("log_file_mode", "0640", "416", "0640"),
        ("unix_socket_permissions", "511", "511", "0777"),
        ("max_connections", "100", "100", "100"),
    ] {
        let expected = Some((plain.to_owned(), expected.to_owned()));
        assert_eq!(shown(name, value), expected, "{name} = {value}");
    }
    for (name, value) in [
        ("work_mem", "4 mb"),
        ("work_mem", ""),
        ("work_mem", "MB"),
        ("work_mem", "1s"),
        ("work_mem", "1TB TB"),
        ("work_mem", "--1"),
        ("max_connections", "1kB"),
        ("statement_timeout", "1e30"),
        ("fsync", "o"),
        ("wal_level", "much"),
    ] {
        assert_eq!(shown(name, value), None, "{name} = {value}");
    }
}

#[test]
fn words_are_spelled_as_the_server_spells_them() {
    for (name, value, expected) in [
        ("fsync", "TRUE", "on"),
        ("fsync", "of", "off"),
        ("fsync", "n", "off"),
        ("Synchronous_Commit", "yes", "on"),
        ("synchronous_commit", "Remote_Apply", "remote_apply"),
        ("wal_level", "hot_standby", "replica"),
        ("wal_compression", "on", "pglz"),
        ("wal_compression", "false", "off"),
        ("client_min_messages", "debug", "debug2"),
        ("default_transaction_isolation", "repeatable read", "repeatable read"),
        ("ssl_max_protocol_version", "", ""),
        ("datestyle", "iso, mdy", "ISO, MDY"),
        ("datestyle", "german", "German, DMY"),
        ("datestyle", "euro,sql", "SQL, DMY"),
        ("sort_mem", "4096", "4MB"),
    ] {
        assert_eq!(shown(name, value).unwrap().1, expected, "{name} = {value}");
    }
    assert!(fact(14, "transaction_timeout").is_none() && fact(18, "no_such").is_none());
}

#[test]
fn settings_of_a_client_go_as_one_text() {
    let settings: SettingValues = [("a.b", "x\\n=\n\\"), ("work_mem", ""), ("z", "\r")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    assert_eq!(decoded(&encoded(&settings)), settings);
}
