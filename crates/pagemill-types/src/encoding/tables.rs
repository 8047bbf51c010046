//! Which character each byte sequence of a server encoding is.
//!
//! The tables are those of the WHATWG Encoding Standard (crate `encoding_rs`), corrected where
//! PostgreSQL's (`src/backend/utils/mb/Unicode/*.map`) differ. The corrections are complete: every
//! sequence was compared with `convert_from` and `convert_to` of a server.
//!
//! - Windows code pages: PostgreSQL leaves unassigned what WHATWG makes a control character.
//! - LATIN5 is ISO 8859-9; WHATWG reads that name as windows-1254.
//! - EUC_CN is GB 2312 alone, not its superset GBK; EUC_KR is KS X 1001 alone, not its superset UHC.
//! - EUC_JP keeps the IBM extensions in JIS X 0212's rows, not in rows 89 to 92 of JIS X 0208.
//!
//! Invariants: 0 in a table means "no such character"; every character is in the Basic
//! Multilingual Plane; single-byte tables have no character twice.

use encoding_rs::Encoding as Whatwg;

/// The lowest and highest byte of a multi-byte character.
pub(crate) const EUC_BYTES: std::ops::RangeInclusive<u8> = 0xa1..=0xfe;
/// Columns and rows of an EUC plane.
const PLANE_SIDE: usize = 94;

/// Rows of GB 2312 with gaps, as (row, ranges of assigned second bytes).
const GB2312_PARTIAL_ROWS: &[(u8, &[(u8, u8)])] = &[
    (0xa2, &[(0xb1, 0xe2), (0xe5, 0xee), (0xf1, 0xfc)]),
    (0xa4, &[(0xa1, 0xf3)]),
    (0xa5, &[(0xa1, 0xf6)]),
    (0xa6, &[(0xa1, 0xb8), (0xc1, 0xd8)]),
    (0xa7, &[(0xa1, 0xc1), (0xd1, 0xf1)]),
    (0xa8, &[(0xa1, 0xba), (0xc5, 0xe9)]),
    (0xa9, &[(0xa4, 0xef)]),
    (0xd7, &[(0xa1, 0xf9)]),
];

/// What EUC_JP has from 0x8ff3f3 to 0x8ff3fe and from 0x8ff4a1 to 0x8ff4fe.
const IBM_EXTENSIONS: &str = "\
    ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ＇＂㈱№℡炻仼僴凬匇匤﨎咊坙﨏塚\
    增寬峵嵓﨑德悅愠敎昻晥晴朗栁﨓﨔橫櫢淸淲瀨凞猪甁皂皞益礰礼神祥福竧靖精綠\
    緖羽荢﨟薰蘒﨡蠇諸譿賴赶﨣﨤逸郞都鄕﨧﨨閒隆﨩霻靍靑飯飼館馞髙魲鶴黑";

/// Characters of the upper half of a single-byte encoding.
pub(crate) type UpperHalf = [u16; 128];

/// Characters of two-byte sequences, row by row.
pub(crate) type Plane = Vec<u16>;

/// The upper half of a single-byte encoding, by PostgreSQL's name of it.
pub(crate) fn upper_half(name: &str) -> Option<UpperHalf> {
    let whatwg = match name {
        "LATIN1" => None,
        "LATIN2" => Some(encoding_rs::ISO_8859_2),
        "LATIN3" => Some(encoding_rs::ISO_8859_3),
        "LATIN4" => Some(encoding_rs::ISO_8859_4),
        "LATIN5" | "WIN1254" => Some(encoding_rs::WINDOWS_1254),
        "LATIN6" => Some(encoding_rs::ISO_8859_10),
        "LATIN7" => Some(encoding_rs::ISO_8859_13),
        "LATIN8" => Some(encoding_rs::ISO_8859_14),
        "LATIN9" => Some(encoding_rs::ISO_8859_15),
        "LATIN10" => Some(encoding_rs::ISO_8859_16),
        "WIN1250" => Some(encoding_rs::WINDOWS_1250),
        "WIN1251" => Some(encoding_rs::WINDOWS_1251),
        "WIN1252" => Some(encoding_rs::WINDOWS_1252),
        "WIN1253" => Some(encoding_rs::WINDOWS_1253),
        "WIN1255" => Some(encoding_rs::WINDOWS_1255),
        "WIN1256" => Some(encoding_rs::WINDOWS_1256),
        "WIN1257" => Some(encoding_rs::WINDOWS_1257),
        "WIN1258" => Some(encoding_rs::WINDOWS_1258),
        "WIN866" => Some(encoding_rs::IBM866),
        "WIN874" => Some(encoding_rs::WINDOWS_874),
        "KOI8R" => Some(encoding_rs::KOI8_R),
        "KOI8U" => Some(encoding_rs::KOI8_U),
        "ISO_8859_5" => Some(encoding_rs::ISO_8859_5),
        "ISO_8859_6" => Some(encoding_rs::ISO_8859_6),
        "ISO_8859_7" => Some(encoding_rs::ISO_8859_7),
        "ISO_8859_8" => Some(encoding_rs::ISO_8859_8),
        _ => return None,
    };
    let mut table = [0; 128];
    for (byte, slot) in (0x80..=u8::MAX).zip(&mut table) {
        let listed = whatwg.map_or(u16::from(byte), |whatwg| character(whatwg, &[byte]));
        *slot = corrected_single(name, byte, listed);
    }
    Some(table)
}

fn corrected_single(name: &str, byte: u8, listed: u16) -> u16 {
    match (name, byte) {
        ("LATIN5", 0x80..=0x9f) => u16::from(byte),
        ("KOI8U", 0xae) => 0x255d,
        ("KOI8U", 0xbe) => 0x256c,
        ("WIN1255", 0xca) => 0,
        _ if name.starts_with("WIN") && (0x80..0xa0).contains(&listed) => 0,
        _ => listed,
    }
}

/// The characters of EUC_CN.
pub(crate) fn euc_cn_plane() -> Plane {
    plane(|row, column| match (row, column) {
        (0xa1, 0xa4) => 0x30fb,
        (0xa1, 0xaa) => 0x2015,
        _ if in_gb2312(row, column) => character(encoding_rs::GBK, &[row, column]),
        _ => 0,
    })
}

fn in_gb2312(row: u8, column: u8) -> bool {
    match GB2312_PARTIAL_ROWS.iter().find(|(partial, _)| *partial == row) {
        Some((_, ranges)) => ranges.iter().any(|&(low, high)| (low..=high).contains(&column)),
        None => matches!(row, 0xa1..=0xa9 | 0xb0..=0xf7),
    }
}

/// The characters of EUC_KR.
pub(crate) fn euc_kr_plane() -> Plane {
    plane(|row, column| match (row, column) {
        (0xa2, 0xe8) => 0x327e,
        _ => character(encoding_rs::EUC_KR, &[row, column]),
    })
}

/// The two-byte characters of EUC_JP (JIS X 0208).
pub(crate) fn euc_jp_plane() -> Plane {
    plane(|row, column| match row {
        0xf9..=0xfc => 0,
        _ => character(encoding_rs::EUC_JP, &[row, column]),
    })
}

/// The three-byte characters of EUC_JP (JIS X 0212 and the IBM extensions), without 0x8f.
pub(crate) fn euc_jp_plane_3() -> Plane {
    let mut extensions = IBM_EXTENSIONS.encode_utf16();
    plane(|row, column| match (row, column) {
        (0xa2, 0xb7) => 0,
        (0xa2, 0xc3) => 0xffe4,
        (0xf3, 0xf3..) | (0xf4, _) => extensions.next().unwrap_or(0),
        _ => character(encoding_rs::EUC_JP, &[0x8f, row, column]),
    })
}

/// The character of a two-byte sequence, 0 for none.
pub(crate) fn in_plane(plane: &Plane, row: u8, column: u8) -> u16 {
    let place = |byte: u8| byte.checked_sub(*EUC_BYTES.start()).map(usize::from);
    match (place(row), place(column)) {
        (Some(row), Some(column)) if column < PLANE_SIDE => {
            plane.get(row * PLANE_SIDE + column).copied().unwrap_or(0)
        }
        _ => 0,
    }
}

/// Fills a plane in the order of its byte sequences.
fn plane(mut character: impl FnMut(u8, u8) -> u16) -> Plane {
    let mut plane = Vec::with_capacity(PLANE_SIDE * PLANE_SIDE);
    for row in EUC_BYTES {
        plane.extend(EUC_BYTES.map(|column| character(row, column)));
    }
    plane
}

/// The one character WHATWG reads from these bytes, 0 if it reads none or several.
fn character(whatwg: &'static Whatwg, bytes: &[u8]) -> u16 {
    let text = whatwg.decode_without_bom_handling_and_without_replacement(bytes);
    let mut units = text.iter().flat_map(|text| text.encode_utf16());
    match (units.next(), units.next()) {
        (Some(unit), None) => unit,
        _ => 0,
    }
}
