//! Zones known by heart, and any bytes. Zones of real files are held against servers by the tests of
//! `pagemill-cluster`.

use proptest::prelude::*;

use super::*;

const HOUR: i64 = 3600;
/// 2024-01-01 00:00:00.
const NEW_YEAR_2024: i64 = 1_704_067_200;

#[test]
fn a_rule_tells_standard_from_daylight_saving_time() {
    let zone = Zone::from_posix(b"EST5EDT,M3.2.0,M11.1.0").unwrap();
    assert_eq!(zone.at(NEW_YEAR_2024).east, -5 * 3600);
    // 10 March 2024, 02:00 in the morning does not exist: 07:00 UTC.
    let change = NEW_YEAR_2024 + 69 * SECONDS_PER_DAY + 7 * HOUR;
    assert_eq!(zone.at(change - 1).east, -5 * 3600);
    assert_eq!(zone.at(change), LocalTimeKind { east: -4 * 3600, is_daylight: true, name: 4 });
}

#[test]
fn a_skipped_time_is_read_by_the_offset_before_and_a_repeated_one_by_that_after() {
    let zone = Zone::from_posix(b"EST5EDT,M3.2.0,M11.1.0").unwrap();
    let skipped = NEW_YEAR_2024 + 69 * SECONDS_PER_DAY + 2 * HOUR + 1800;
    assert_eq!(zone.resolve(skipped).east, -5 * 3600);
    // 3 November 2024, 01:30.
    let twice = NEW_YEAR_2024 + 307 * SECONDS_PER_DAY + HOUR + 1800;
    assert_eq!(zone.resolve(twice).east, -5 * 3600);
    assert_eq!(zone.resolve(twice - 3600).east, -4 * 3600);
}

#[test]
fn a_rule_holds_for_ever() {
    let zone = Zone::from_posix(b"EST5EDT").unwrap();
    for years in [-100_000, -400, 400, 4000, 100_000] {
        let july = NEW_YEAR_2024 + 182 * SECONDS_PER_DAY + years / 400 * REPEAT;
        assert_eq!(zone.at(july).east, -4 * 3600, "{years} years on");
        assert_eq!(zone.resolve(july).east, -4 * 3600, "{years} years on");
    }
}

#[test]
fn offsets_alone_are_zones() {
    assert_eq!(Zone::from_posix(b"<+0530>-5:30").unwrap().only_offset(), Some(19_800));
    assert_eq!(Zone::from_posix(b"FOO5").unwrap().only_offset(), Some(-18_000));
    assert_eq!(Zone::from_posix(b"5").unwrap().only_offset(), Some(-18_000));
    assert_eq!(Zone::from_posix(b"EST5EDT").unwrap().only_offset(), None);
    for text in ["", "EST", "EST5EDT,M3.2.0", "<EST5", "EST168", "EST5:60", "EST5EDT,M13.1.0,J1"] {
        assert!(Zone::from_posix(text.as_bytes()).is_none(), "{text}");
    }
}

#[test]
fn abbreviations_belong_to_a_zone() {
    let zone = Zone::from_posix(b"EST5EDT").unwrap();
    assert_eq!(zone.abbreviation_at(b"EDT", NEW_YEAR_2024).unwrap().east, -4 * 3600);
    assert!(matches!(zone.abbreviation(b"EST"), Some(AbbreviationMeaning::Fixed(_))));
    assert_eq!(zone.abbreviation(b"CET"), None);
    assert_eq!(zone.abbreviation(b""), None);
    assert_eq!(Zone::gmt().abbreviation_at(b"GMT", 0), None);
}

/// Two transitions, two kinds, and the rule of Berlin.
fn small_file() -> Vec<u8> {
    let mut file = Vec::new();
    for _ in 0..2 {
        file.extend_from_slice(b"TZif2");
        file.extend_from_slice(&[0; 15]);
        let empty = file.len() < 44;
        for count in if empty { [0u32; 6] } else { [0, 0, 0, 2, 2, 9] } {
            file.extend_from_slice(&count.to_be_bytes());
        }
    }
    file.extend_from_slice(&0i64.to_be_bytes());
    file.extend_from_slice(&1_000_000i64.to_be_bytes());
    file.extend_from_slice(&[1, 0]);
    file.extend_from_slice(&3600i32.to_be_bytes());
    file.extend_from_slice(&[0, 0]);
    file.extend_from_slice(&7200i32.to_be_bytes());
    file.extend_from_slice(&[1, 4]);
    file.extend_from_slice(b"CET\0CEST\0\nCET-1CEST,M3.5.0,M10.5.0/3\n");
    file
}

#[test]
fn a_file_is_followed_by_its_rule() {
    let zone = Zone::from_tzif(&small_file()).unwrap();
    assert_eq!(zone.at(-1).east, 3600);
    assert_eq!(zone.at(999_999).east, 7200);
    assert_eq!(zone.at(1_000_000).east, 3600);
    assert_eq!(zone.at(NEW_YEAR_2024).east, 3600);
    assert_eq!(zone.at(NEW_YEAR_2024 + 182 * SECONDS_PER_DAY).east, 7200);
    assert_eq!(zone.at(NEW_YEAR_2024 + 182 * SECONDS_PER_DAY + 10 * REPEAT).east, 7200);
    assert_eq!(zone.at(NEW_YEAR_2024 - 182 * SECONDS_PER_DAY - 10 * REPEAT).east, 3600);
}

#[test]
fn a_zone_that_counts_leap_seconds_is_none_to_choose() {
    let mut zone = Zone::gmt();
    assert!(zone.is_acceptable());
    zone.leap_seconds = 22;
    assert!(!zone.is_acceptable());
}

fn use_zone(zone: &Zone, moment: i64) {
    zone.at(moment);
    zone.resolve(moment);
    zone.only_offset();
    zone.abbreviation(b"CET");
    zone.abbreviation_at(b"CET", moment);
}

proptest! {
    #[test]
    fn any_bytes_are_a_zone_or_an_error(
        bytes: Vec<u8>,
        at in 0usize..200,
        byte: u8,
        moment in -300_000_000_000_000i64..300_000_000_000_000,
    ) {
        if let Ok(zone) = Zone::from_tzif(&bytes) {
            use_zone(&zone, moment);
        }
        let mut file = small_file();
        if let Some(place) = file.get_mut(at) {
            *place = byte;
        }
        if let Ok(zone) = Zone::from_tzif(&file) {
            use_zone(&zone, moment);
        }
        let _ = Zone::from_tzif(&file[..at.min(file.len())]);
    }

    #[test]
    fn any_text_is_a_rule_or_none(text in "[A-Z<>+,;./:JM0-9-]{0,24}", moment: i32) {
        if let Some(zone) = Zone::from_posix(text.as_bytes()) {
            use_zone(&zone, moment.into());
        }
    }
}
