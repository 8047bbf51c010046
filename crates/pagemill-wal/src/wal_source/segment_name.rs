//! What a segment's file is called in an archive: its name, and what the archiver added to it.
//!
//! Plain: 24 digits. pgBackRest adds `-` and 40 digits of a checksum, and a suffix when it compresses; WAL-G and
//! `pg_receivewal` add the suffix alone; Barman adds nothing, whatever it does. `.partial` comes before a suffix or
//! behind it.

use pagemill_format::wal::SegmentName;

const NAME_BYTES: usize = 24;
const CHECKSUM_DIGITS: usize = 40;
/// What is no compression: backup history files, marks of the archiver, files that are just being written.
const OTHER_SUFFIXES: [&str; 6] = ["backup", "history", "ready", "done", "tmp", "temp"];

/// A segment's name in an archive; true when it is a partial one.
pub(super) fn parse(name: &str, segment_size: u32) -> Option<(SegmentName, bool)> {
    let (digits, rest) = name.split_at_checked(NAME_BYTES)?;
    let segment = SegmentName::parse(digits, segment_size)?;
    let (is_partial, rest) = take_partial(rest);
    let rest = match rest.strip_prefix('-') {
        Some(rest) => {
            let (checksum, rest) = rest.split_at_checked(CHECKSUM_DIGITS)?;
            checksum.bytes().all(|b| b.is_ascii_hexdigit()).then_some(rest)?
        }
        None => rest,
    };
    let (is_partial_behind, rest) = match rest.strip_suffix(".partial") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    is_suffix(rest).then_some((segment, is_partial || is_partial_behind))
}

fn take_partial(rest: &str) -> (bool, &str) {
    match rest.strip_prefix(".partial") {
        Some(rest) => (true, rest),
        None => (false, rest),
    }
}

/// True for what compression or encryption adds to a name: nothing, `.zst`, `.gz.gpg`.
pub(super) fn is_suffix(rest: &str) -> bool {
    let is_one = |suffix: &str| {
        (1..=8).contains(&suffix.len())
            && suffix.bytes().all(|b| b.is_ascii_alphanumeric())
            && suffix.bytes().any(|b| b.is_ascii_alphabetic())
            && !OTHER_SUFFIXES.contains(&suffix)
    };
    match rest.strip_prefix('.') {
        Some(suffixes) => suffixes.split('.').all(is_one),
        None => rest.is_empty(),
    }
}

/// True for what follows the name of a whole segment in an archive that adds no checksum: what compression or encryption adds.
pub fn is_compression_suffix(rest: &str) -> bool {
    is_suffix(rest) && !rest.contains(".partial")
}

/// True for the directories that pgBackRest and Barman put segments into: the name's first 16 digits.
pub(super) fn is_directory(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_archivers_names_are_known() {
        let sum = "0123456789abcdef0123456789abcdef01234567";
        let base = "00000002000000010000000A";
        for (name, is_partial) in [
            (base.to_owned(), false),
            (format!("{base}-{sum}"), false),
            (format!("{base}-{sum}.zst"), false),
            (format!("{base}.partial-{sum}.lz4"), true),
            (format!("{base}.lz4"), false),
            (format!("{base}.br"), false),
            (format!("{base}.gz.partial"), true),
            (format!("{base}.partial"), true),
            (format!("{base}.zst.gpg"), false),
        ] {
            let (segment, found) = parse(&name, 1 << 24).unwrap_or_else(|| panic!("{name}"));
            assert_eq!((segment.to_string().as_str(), found), (base, is_partial), "{name}");
        }
    }

    #[test]
    fn other_files_of_an_archive_are_no_segments() {
        let base = "00000002000000010000000A";
        for name in [
            format!("{base}.00000028.backup"),
            format!("{base}.ready"),
            format!("{base}-0123"),
            format!("{base}x"),
            format!("{base}.tmp"),
            "00000002.history".into(),
            "RECOVERYXLOG".into(),
        ] {
            assert_eq!(parse(&name, 1 << 24), None, "{name}");
        }
        assert!(is_directory("0000000200000001") && !is_directory("archive_status"));
        assert!(["", ".gz", ".zst.gpg"].into_iter().all(is_compression_suffix));
        assert!(
            ![".partial", ".gz.partial", ".00000028.backup", "x"]
                .into_iter()
                .any(is_compression_suffix)
        );
    }
}
