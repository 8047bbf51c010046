//! What servers print by each style, a few values of each; the tests of `pagemill-serve` ask servers for more.
//!
//! Arbitrary bytes are a text or an error.

use proptest::prelude::*;

use super::*;
use crate::input::datetime::DateOrder;

/// 2001-02-03 04:05:06.7, and a day in 44 BC.
const MOMENT: i64 = 34_488_306_700_000;
const IDES: i64 = -64_464_508_800_000_000;

fn text(of: Oid, styles: &ValueStyles, payload: &[u8]) -> String {
    let styled = Styled::of(of, PgVersion::V18, styles, None).unwrap();
    let mut out = Vec::new();
    styled.write(payload, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn dated(style: DateStyle, order: DateOrder) -> ValueStyles {
    ValueStyles { dates: DateSetting { style, order }, ..ValueStyles::default() }
}

#[test]
fn moments_have_three_more_styles() {
    let moment = |style, order, micros: i64| {
        text(oid::TIMESTAMPTZ, &dated(style, order), &micros.to_le_bytes())
    };
    let (mdy, dmy, ymd) = (DateOrder::Mdy, DateOrder::Dmy, DateOrder::Ymd);
    assert_eq!(moment(DateStyle::Sql, mdy, MOMENT), "02/03/2001 04:05:06.7 UTC");
    assert_eq!(moment(DateStyle::Sql, dmy, MOMENT), "03/02/2001 04:05:06.7 UTC");
    assert_eq!(moment(DateStyle::German, ymd, MOMENT), "03.02.2001 04:05:06.7 UTC");
    assert_eq!(moment(DateStyle::Postgres, ymd, MOMENT), "Sat Feb 03 04:05:06.7 2001 UTC");
    assert_eq!(moment(DateStyle::Postgres, dmy, IDES), "Fri 15 Mar 00:00:00 0044 UTC BC");
    assert_eq!(moment(DateStyle::Postgres, dmy, i64::MAX), "infinity");
    let date = |style, days: i32| text(oid::DATE, &dated(style, mdy), &days.to_le_bytes());
    assert_eq!(date(DateStyle::Postgres, 399), "02-03-2001");
    assert_eq!(date(DateStyle::Sql, i32::MIN), "-infinity");
    let local = text(oid::TIMESTAMP, &dated(DateStyle::German, dmy), &IDES.to_le_bytes());
    assert_eq!(local, "15.03.0044 00:00:00 BC");
}

#[test]
fn zones_are_there_by_their_abbreviations() {
    let zone = Arc::new(Zone::from_posix(b"<LONGERTHANTEN>-1CEST,M3.5.0,M10.5.0/3").unwrap());
    let styles = dated(DateStyle::Sql, DateOrder::Dmy);
    let styled = Styled::of(oid::TIMESTAMPTZ, PgVersion::V14, &styles, Some(&zone)).unwrap();
    let local = |micros: i64| {
        let mut out = Vec::new();
        styled.write(&micros.to_le_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(local(0), "01/01/2000 01:00:00 LONGERTHAN");
    assert_eq!(local(182 * 86_400_000_000), "01/07/2000 02:00:00 CEST");
    assert!(styled.zone().is_some());
}

#[test]
fn intervals_have_three_more_styles() {
    let all = |months: i32, days: i32, micros: i64| {
        let payload =
            [&micros.to_le_bytes()[..], &days.to_le_bytes(), &months.to_le_bytes()].concat();
        let styles =
            [IntervalStyle::SqlStandard, IntervalStyle::PostgresVerbose, IntervalStyle::Iso8601];
        let one = |intervals| {
            let styles = ValueStyles { intervals, ..ValueStyles::default() };
            text(oid::INTERVAL, &styles, &payload)
        };
        styles.map(one).join(" | ")
    };
    assert_eq!(all(0, 0, 0), "0 | @ 0 | PT0S");
    assert_eq!(all(14, 0, 0), "1-2 | @ 1 year 2 mons | P1Y2M");
    assert_eq!(
        all(-14, 3, 4_500_000),
        "-1-2 +3 +0:00:04.5 | @ 1 year 2 mons -3 days -4.5 secs ago | P-1Y-2M3DT4.5S"
    );
    assert_eq!(all(0, -1, -1), "-1 0:00:00.000001 | @ 1 day 0.000001 secs ago | P-1DT-0.000001S");
    assert_eq!(all(0, 0, -61_000_000), "-0:01:01 | @ 1 min 1 sec ago | PT-1M-1S");
    assert_eq!(all(0, 1, -1_000_000), "+0-0 +1 -0:00:01 | @ 1 day -1 sec | P1DT-1S");
    assert_eq!(all(i32::MIN, i32::MIN, i64::MIN), "-infinity | -infinity | -infinity");
}

#[test]
fn floats_have_as_many_digits_as_are_wanted() {
    let float = |extra: i32, number: f64| {
        let fewer_digits = ValueStyles::fewer_digits_of(extra);
        let styles = ValueStyles { fewer_digits, ..ValueStyles::default() };
        text(oid::FLOAT8, &styles, &number.to_le_bytes())
    };
    assert_eq!(float(0, 0.1 + 0.2), "0.3");
    assert_eq!(float(0, -1e15), "-1e+15");
    assert_eq!(float(0, 123_456_789_012_345.6), "123456789012346");
    assert_eq!(float(-3, 1234.5), "1234.5");
    assert_eq!(float(-13, 0.000_099_6), "0.0001");
    assert_eq!(float(-13, 0.000_012_3), "1.2e-05");
    assert_eq!(float(-15, 2.5), "2");
    assert_eq!(float(-15, 3.5e120), "4e+120");
    assert_eq!(float(-14, 0.0), "0");
    assert_eq!(float(-14, -0.0), "-0");
    assert_eq!(float(-14, f64::NEG_INFINITY), "-Infinity");
    let styles = ValueStyles { fewer_digits: Some(0), ..ValueStyles::default() };
    assert_eq!(text(oid::FLOAT4, &styles, &0.1f32.to_le_bytes()), "0.1");
    let point = [1.0f64 / 3.0, 1e20].map(f64::to_le_bytes).concat();
    assert_eq!(text(oid::POINT, &styles, &point), "(0.333333333333333,1e+20)");
}

#[test]
fn what_is_printed_as_by_default_has_no_style() {
    let of = |of, styles: &ValueStyles| Styled::of(of, PgVersion::V18, styles, None).is_some();
    let plain = dated(DateStyle::Iso, DateOrder::Dmy);
    assert!(!of(oid::DATE, &plain) && !of(oid::INTERVAL, &plain) && !of(oid::FLOAT8, &plain));
    assert!(!of(oid::BYTEA, &plain) && !of(oid::POINT, &plain) && !of(oid::TEXT, &plain));
    let escape = ValueStyles { bytea: ByteaOutput::Escape, ..plain };
    assert!(of(oid::BYTEA, &escape) && of(oid::PG_MCV_LIST, &escape) && !of(oid::UUID, &escape));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        for (style, intervals, fewer) in [
            (DateStyle::Sql, IntervalStyle::SqlStandard, 0),
            (DateStyle::German, IntervalStyle::PostgresVerbose, 14),
            (DateStyle::Postgres, IntervalStyle::Iso8601, 15),
        ] {
            let bytea = ByteaOutput::Escape;
            let styles =
                ValueStyles { intervals, bytea, fewer_digits: Some(fewer), ..dated(style, DateOrder::Dmy) };
            for builtin in crate::builtin::BuiltinType::all() {
                for version in [PgVersion::V14, PgVersion::V18] {
                    let Some(styled) = Styled::of(builtin.oid, version, &styles, None) else { continue };
                    let _ = styled.write(&bytes, &mut Vec::new());
                    let least = usize::try_from(builtin.len).unwrap_or_default().min(bytes.len());
                    let _ = styled.write(&bytes[..least], &mut Vec::new());
                }
            }
        }
    }
}
