//! Tests of the conversions. Expected characters and refusals were taken from PostgreSQL 15; the
//! digests pin tables that agreed with PostgreSQL 14, 15, 17 and 18 on every byte sequence.

use proptest::prelude::*;

use super::*;

/// Digests of each encoding's conversion to UTF8, see [`digest`].
const DIGESTS: &[(&str, u64)] = &[
    ("EUC_JP", 0x9948_b227_71f3_cb4c),
    ("EUC_CN", 0x97db_9632_ecd4_4754),
    ("EUC_KR", 0x2784_bacf_137a_27a9),
    ("LATIN1", 0x4ef3_152d_319d_1add),
    ("LATIN2", 0x0b51_28b6_a980_59bd),
    ("LATIN3", 0x2f2a_d376_c005_7d53),
    ("LATIN4", 0x3b43_c586_214d_7415),
    ("LATIN5", 0xbc80_49f5_a663_97a5),
    ("LATIN6", 0xf6d2_072e_990b_715d),
    ("LATIN7", 0x42c4_b943_3ceb_963f),
    ("LATIN8", 0x2f4b_4217_4589_f46d),
    ("LATIN9", 0x5239_5613_faec_41a9),
    ("LATIN10", 0x4786_f01b_f769_34a7),
    ("WIN1256", 0x816f_be79_33cd_a00f),
    ("WIN1258", 0x9655_e72e_e6f4_c8c1),
    ("WIN866", 0x53e1_b2f3_a97e_9d7d),
    ("WIN874", 0x031f_9c4c_f036_1871),
    ("KOI8R", 0xbbf9_3489_f3ec_8169),
    ("WIN1251", 0xce48_62aa_4058_e803),
    ("WIN1252", 0xeaf6_cfca_f020_c8d5),
    ("ISO_8859_5", 0x74ae_fc95_9c55_ebc3),
    ("ISO_8859_6", 0x846e_56cb_17ea_ef81),
    ("ISO_8859_7", 0x3ac8_f487_fcad_0003),
    ("ISO_8859_8", 0xb096_0933_63cf_abc9),
    ("WIN1250", 0x6939_e7f1_cfc0_4778),
    ("WIN1253", 0xbacb_e575_a1ad_2fef),
    ("WIN1254", 0x5ad1_b4f5_5e80_9c2d),
    ("WIN1255", 0xe564_f5ca_57d5_dddb),
    ("WIN1257", 0x43b4_7178_80b6_7531),
    ("KOI8U", 0x24ee_0447_e23f_397d),
];

fn transcoder(from: &str, to: &str) -> Transcoder {
    let from = encoding_id(from).expect("an encoding");
    Transcoder::new(from, to).expect("a conversion").expect("different encodings")
}

fn converted(from: &str, to: &str, bytes: &[u8]) -> Result<Vec<u8>, EncodingError> {
    let mut out = Vec::new();
    transcoder(from, to).convert(bytes, &mut out).map(|()| out)
}

fn refusal(from: &str, to: &str, bytes: &[u8]) -> String {
    converted(from, to, bytes).expect_err("not convertible").to_string()
}

/// FNV-1a over every sequence of up to two bytes (and three behind 0x8f) that can be converted,
/// and what it becomes.
fn digest(encoding: &str) -> u64 {
    let transcoder = transcoder(encoding, "UTF8");
    let single = (1..=u8::MAX).map(|byte| vec![byte]);
    let upper = || 0x80..=u8::MAX;
    let double = upper().flat_map(|a| (1..=u8::MAX).map(move |b| vec![a, b]));
    let triple = upper().flat_map(|a| upper().map(move |b| vec![0x8f, a, b]));
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    let mut out = Vec::new();
    for sequence in single.chain(double).chain(triple) {
        out.clear();
        if transcoder.convert(&sequence, &mut out).is_ok() {
            for byte in sequence.iter().chain(&out) {
                digest = (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }
    digest
}

#[test]
fn the_tables_are_those_compared_with_a_server() {
    for &(name, expected) in DIGESTS {
        let found = digest(name);
        assert_eq!(found, expected, "{name}: {found:#x}");
    }
}

#[test]
fn names_are_found_as_postgresql_finds_them() {
    for (name, id) in [
        ("UTF8", 6),
        ("utf-8", 6),
        ("Unicode", 6),
        ("ISO_8859-1", 8),
        ("latin10", 17),
        ("iso-8859-16", 17),
        ("ISO 8859 5", 25),
        ("windows-1252", 24),
        ("win", 23),
        ("koi8", 22),
        ("ABC", 19),
        ("Windows949", 38),
        ("mskanji", 35),
        ("sql_ascii", 0),
    ] {
        assert_eq!(encoding_id(name), Some(id), "{name}");
    }
    for name in ["", "windows", "utf16", "latin11", "iso88595x"] {
        assert_eq!(encoding_id(name), None, "{name}");
    }
    for (id, name) in (0..).zip(ENCODING_NAMES) {
        assert_eq!((encoding_name(id), encoding_id(name)), (Some(name), Some(id)));
    }
    assert_eq!((encoding_name(-1), encoding_name(42)), (None, None));
}

#[test]
fn equal_encodings_and_sql_ascii_targets_need_no_conversion() {
    assert!(Transcoder::new(6, "utf8").expect("known").is_none());
    assert!(Transcoder::new(8, "iso88591").expect("known").is_none());
    assert!(Transcoder::new(6, "sql_ascii").expect("known").is_none());
}

#[test]
fn what_cannot_be_converted_is_refused_before_any_text_is_read() {
    let refused = |from, to| Transcoder::new(from, to).expect_err("refused");
    assert_eq!(refused(35, "utf8"), EncodingError::UnknownNumber { id: 35 });
    assert_eq!(refused(-1, "utf8"), EncodingError::UnknownNumber { id: -1 });
    assert_eq!(refused(6, "nope"), EncodingError::UnknownName { name: "nope".to_owned() });
    for (from, to) in [(4, "utf8"), (5, "utf8"), (7, "utf8"), (6, "sjis"), (22, "win1251")] {
        assert!(matches!(refused(from, to), EncodingError::Unsupported { .. }), "{from} {to}");
    }
}

#[test]
fn characters_become_those_the_server_makes_of_them() {
    assert_eq!(converted("LATIN1", "UTF8", b"caf\xe9 \x80"), Ok("café \u{80}".into()));
    assert_eq!(converted("LATIN5", "UTF8", b"\xfd\x85"), Ok("ı\u{85}".into()));
    assert_eq!(converted("WIN1252", "UTF8", b"\x80"), Ok("€".into()));
    assert_eq!(converted("KOI8U", "UTF8", b"\xae\xbe"), Ok("╝╬".into()));
    let euc_jp = b"\xc6\xfc\xcb\xdc \x8e\xb1 \x8f\xa2\xc3\x8f\xf3\xf3\x8f\xf4\xfe";
    assert_eq!(converted("EUC_JP", "UTF8", euc_jp), Ok("日本 ｱ ￤ⅰ黑".into()));
    assert_eq!(converted("EUC_CN", "UTF8", b"\xd6\xd0\xa1\xa4\xa1\xaa"), Ok("中・―".into()));
    assert_eq!(converted("EUC_KR", "UTF8", b"\xc7\xd1\xa2\xe8"), Ok("한㉾".into()));
    assert_eq!(converted("UTF8", "LATIN9", "5 €".as_bytes()), Ok(b"5 \xa4".to_vec()));
}

#[test]
fn an_error_shows_the_bytes_and_leaves_the_output_alone() {
    assert_eq!(
        refusal("UTF8", "LATIN1", "a€".as_bytes()),
        "the character 0xe2 0x82 0xac of encoding UTF8 does not exist in encoding LATIN1"
    );
    assert_eq!(
        refusal("WIN1252", "UTF8", b"\x81"),
        "the character 0x81 of encoding WIN1252 does not exist in encoding UTF8"
    );
    assert_eq!(
        refusal("EUC_CN", "UTF8", b"\xfe\xfe"),
        "the character 0xfe 0xfe of encoding EUC_CN does not exist in encoding UTF8"
    );
    let invalid =
        |encoding, bytes| format!("invalid byte sequence for encoding {encoding}: {bytes}");
    assert_eq!(refusal("EUC_JP", "UTF8", b"\x8f\xa1"), invalid("EUC_JP", "0x8f 0xa1"));
    assert_eq!(refusal("EUC_KR", "UTF8", b"\xb0a"), invalid("EUC_KR", "0xb0 0x61"));
    assert_eq!(refusal("UTF8", "LATIN1", b"x\xc3"), invalid("UTF8", "0xc3"));
    assert_eq!(refusal("LATIN1", "UTF8", b"x\0"), invalid("LATIN1", "0x00"));
    let mut out = b"kept".to_vec();
    assert!(transcoder("WIN1252", "UTF8").convert(b"ab\xe9\x81", &mut out).is_err());
    assert_eq!(out, b"kept");
}

#[test]
fn sql_ascii_is_checked_but_not_changed() {
    let text = "né".as_bytes();
    assert_eq!(converted("SQL_ASCII", "UTF8", text), Ok(text.to_vec()));
    assert_eq!(converted("SQL_ASCII", "LATIN1", b"\xff\x80"), Ok(b"\xff\x80".to_vec()));
    let invalid = "invalid byte sequence for encoding UTF8: 0xe4 0xbd";
    assert_eq!(refusal("SQL_ASCII", "UTF8", b"a\xe4\xbd"), invalid);
    let zero = "invalid byte sequence for encoding LATIN1: 0x00";
    assert_eq!(refusal("SQL_ASCII", "LATIN1", b"a\0"), zero);
}

#[test]
fn a_typed_text_is_stored_as_the_database_would_and_reads_back() {
    let stored = |name, text: &str| stored_text(encoding_id(name).unwrap(), text.as_bytes());
    assert_eq!(stored("LATIN9", "5 \u{20ac}").unwrap(), b"5 \xa4");
    assert_eq!(stored("EUC_JP", "\u{ffe5}\u{ff71}").unwrap(), b"\xa1\xef\x8e\xb1");
    assert_eq!(stored("UTF8", "\u{20ac}").unwrap(), "\u{20ac}".as_bytes());
    assert_eq!(stored("SQL_ASCII", "\u{20ac}").unwrap(), "\u{20ac}".as_bytes());
    assert_eq!(stored("LATIN1", "\u{20ac}"), None);
    assert_eq!(stored("EUC_KR", "\u{20ac}\u{1f600}"), None);
    assert_eq!(stored("EUC_TW", "\u{e9}"), None);
    for (name, text) in
        [("EUC_JP", "\u{65e5}\u{672c} x"), ("EUC_CN", "\u{4e2d}"), ("KOI8R", "\u{444}")]
    {
        let id = encoding_id(name).unwrap();
        let stored = stored(name, text).unwrap();
        assert_eq!(utf8_name(id, &stored), text.as_bytes(), "{name}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_converted_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        from in -2i32..45,
        to in 0usize..42,
    ) {
        if let Ok(Some(transcoder)) = Transcoder::new(from, ENCODING_NAMES[to]) {
            let mut out = b"x".to_vec();
            if transcoder.convert(&bytes, &mut out).is_err() {
                prop_assert_eq!(out, b"x");
            }
        }
    }

    #[test]
    fn what_becomes_utf8_is_valid_and_comes_back(
        bytes in prop::collection::vec(prop_oneof![1u8..0x80, any::<u8>()], 0..100),
        encoding in 8usize..35,
    ) {
        if let Ok(text) = converted(ENCODING_NAMES[encoding], "UTF8", &bytes) {
            prop_assert!(std::str::from_utf8(&text).is_ok());
            prop_assert_eq!(converted("UTF8", ENCODING_NAMES[encoding], &text), Ok(bytes));
        }
    }
}
