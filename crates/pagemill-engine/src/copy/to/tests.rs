//! Tests of the COPY formats, text and CSV.
//!
//! Expected rows and refusals were taken from PostgreSQL 14, 15, 17 and 18.

use proptest::prelude::*;

use super::*;
use crate::copy::single_byte;

const COLUMNS: [&[u8]; 2] = [b"id", b"a,\"\t\\"];

fn csv() -> CopyOptions {
    CopyOptions { format: Format::Csv, ..CopyOptions::default() }
}

fn rows(options: &CopyOptions, rows: &[[Option<&str>; 2]]) -> String {
    let format = CopyFormat::new(options, &COLUMNS, 15).expect("valid options");
    let mut out = Vec::new();
    format.write_header(&mut out);
    for row in rows {
        for (column, value) in row.iter().enumerate() {
            if column > 0 {
                format.separate(&mut out);
            }
            match value {
                Some(value) => format.write_field(column, value.as_bytes(), &mut out),
                None => format.write_null(&mut out),
            }
        }
        format.end_row(&mut out);
    }
    String::from_utf8(out).expect("text")
}

fn refusal(options: &CopyOptions) -> CopyOptionError {
    CopyFormat::new(options, &COLUMNS, 15).expect_err("COPY refuses these options")
}

#[test]
fn text_rows_look_as_copy_writes_them() {
    let options = CopyOptions { header: true, ..CopyOptions::default() };
    let written = rows(&options, &[[Some("1"), None], [Some(""), Some("a\tb\\\n")]]);
    assert_eq!(written, "id\ta,\"\\t\\\\\n1\t\\N\n\ta\\tb\\\\\\n\n");
}

#[test]
fn csv_rows_look_as_copy_writes_them() {
    let options = CopyOptions { header: true, ..csv() };
    let written = rows(&options, &[[Some("1"), None], [Some(""), Some("say \"hi\", x")]]);
    assert_eq!(written, "id,\"a,\"\"\t\\\"\n1,\n\"\",\"say \"\"hi\"\", x\"\n");
}

#[test]
fn a_value_that_equals_the_null_string_is_quoted_in_csv_and_unmarked_in_text() {
    let null = Some(b"NULL".to_vec());
    let row = [[Some("NULL"), None], [Some(""), Some("null")]];
    let options = CopyOptions { null: null.clone(), ..csv() };
    assert_eq!(rows(&options, &row), "\"NULL\",NULL\n,null\n");
    let options = CopyOptions { null, ..CopyOptions::default() };
    assert_eq!(rows(&options, &row), "NULL\tNULL\n\tnull\n");
}

#[test]
fn force_quote_quotes_values_but_neither_nulls_nor_names() {
    let all = CopyOptions { force_quote: ForcedColumns::All, header: true, ..csv() };
    assert_eq!(rows(&all, &[[Some("1"), None]]), "id,\"a,\"\"\t\\\"\n\"1\",\n");
    let one = ForcedColumns::Columns(vec![b"id".to_vec()]);
    let one = CopyOptions { force_quote: one, ..csv() };
    assert_eq!(rows(&one, &[[Some("1"), Some("2")]]), "\"1\",2\n");
}

#[test]
fn a_name_that_is_the_end_of_data_mark_is_quoted_in_a_header_of_one_column() {
    let options = CopyOptions { header: true, ..csv() };
    let format = CopyFormat::new(&options, &[br"\."], 18).expect("valid options");
    let mut out = Vec::new();
    format.write_header(&mut out);
    assert_eq!(out, b"\"\\.\"\n");
}

#[test]
fn delimiters_that_copy_refuses_are_refused() {
    for given in b"az09.\\" {
        let options = CopyOptions { delimiter: Some(*given), ..CopyOptions::default() };
        let given = char::from(*given);
        assert_eq!(refusal(&options), CopyOptionError::AmbiguousDelimiter { given });
        // CSV has no backslash escapes, so nothing is ambiguous there.
        assert!(
            CopyFormat::new(&CopyOptions { format: Format::Csv, ..options }, &COLUMNS, 15).is_ok()
        );
    }
    for given in b"\n\r" {
        let options = CopyOptions { delimiter: Some(*given), ..csv() };
        assert_eq!(refusal(&options), CopyOptionError::EndOfLine { option: "delimiter" });
    }
    let options = CopyOptions { delimiter: Some(b'"'), ..csv() };
    assert_eq!(refusal(&options), CopyOptionError::DelimiterIsQuote { given: '"' });
    let options = CopyOptions { delimiter: Some(0), ..csv() };
    assert_eq!(refusal(&options), CopyOptionError::ZeroByte { option: "delimiter" });
}

#[test]
fn null_strings_that_copy_refuses_are_refused() {
    let with = |null: &[u8]| refusal(&CopyOptions { null: Some(null.to_vec()), ..csv() });
    assert_eq!(with(b"a\n"), CopyOptionError::EndOfLine { option: "null" });
    assert_eq!(with(b"a,b"), CopyOptionError::SpecialInNull { character: "delimiter" });
    assert_eq!(with(b"a\"b"), CopyOptionError::SpecialInNull { character: "quote" });
    assert_eq!(with(b"\0"), CopyOptionError::ZeroByte { option: "null" });
}

/// `encoding` of a LATIN1 database.
const LATIN1: i32 = 8;

#[test]
fn texts_typed_in_utf8_are_taken_as_the_database_stores_them() {
    let columns = ForcedColumns::Columns(vec!["größe".into(), b"id".to_vec()]);
    let typed = CopyOptions { null: Some("Ø".into()), force_quote: columns, ..csv() };
    let stored = typed.stored(LATIN1, &[b"id", b"gr\xf6\xdfe"]).unwrap();
    assert_eq!(stored.null.as_deref(), Some(&b"\xd8"[..]));
    let names = vec![b"gr\xf6\xdfe".to_vec(), b"id".to_vec()];
    assert_eq!(stored.force_quote, ForcedColumns::Columns(names));
}

#[test]
fn a_null_string_that_the_database_cannot_store_is_refused() {
    let typed = CopyOptions { null: Some("\u{20ac}".into()), ..csv() };
    let refused = typed.stored(LATIN1, &COLUMNS).unwrap_err();
    assert_eq!(refused, CopyOptionError::NullNotStored { null: "\u{20ac}".into() });
}

#[test]
fn csv_options_are_refused_in_text_format() {
    let text = CopyOptions::default;
    let quote = CopyOptions { quote: Some(b'"'), ..text() };
    assert_eq!(refusal(&quote), CopyOptionError::CsvOnly { option: "quote" });
    let escape = CopyOptions { escape: Some(b'"'), ..text() };
    assert_eq!(refusal(&escape), CopyOptionError::CsvOnly { option: "escape" });
    let force = CopyOptions { force_quote: ForcedColumns::All, ..text() };
    assert_eq!(refusal(&force), CopyOptionError::CsvOnly { option: "force_quote" });
}

#[test]
fn a_header_in_text_format_came_with_version_15() {
    let options = CopyOptions { header: true, ..CopyOptions::default() };
    let refused = CopyFormat::new(&options, &COLUMNS, 14).expect_err("14 has none");
    assert_eq!(refused, CopyOptionError::TextHeader { server_major: 14 });
    assert!(CopyFormat::new(&options, &COLUMNS, 15).is_ok());
    let csv = CopyOptions { header: true, ..csv() };
    assert!(CopyFormat::new(&csv, &COLUMNS, 14).is_ok());
}

#[test]
fn force_quote_takes_exported_columns_once() {
    let columns = |names: &[&[u8]]| {
        let names = names.iter().map(|name| name.to_vec()).collect();
        refusal(&CopyOptions { force_quote: ForcedColumns::Columns(names), ..csv() })
    };
    let (option, column) = ("force_quote", || "id".to_owned());
    assert_eq!(
        columns(&[b"id", b"id"]),
        CopyOptionError::RepeatedColumn { option, column: column() }
    );
    let column = "zz".to_owned();
    assert_eq!(columns(&[b"zz"]), CopyOptionError::UnknownColumn { option, column });
}

#[test]
fn an_option_of_more_than_one_byte_is_refused() {
    assert_eq!(single_byte("delimiter", b"|"), Ok(b'|'));
    assert!(single_byte("delimiter", b"").is_err());
    assert!(single_byte("quote", "é".as_bytes()).is_err());
}

#[test]
fn plain_text_needs_no_finishing_unless_an_option_says_so() {
    let safe = |options: &CopyOptions| {
        CopyFormat::new(options, &COLUMNS, 15).expect("valid options").plain_is_safe(0)
    };
    assert!(safe(&CopyOptions::default()));
    assert!(safe(&csv()));
    assert!(safe(&CopyOptions { null: Some(b"0".to_vec()), ..CopyOptions::default() }));
    assert!(!safe(&CopyOptions { null: Some(b"0".to_vec()), ..csv() }));
    assert!(!safe(&CopyOptions { delimiter: Some(b'-'), ..CopyOptions::default() }));
    assert!(!safe(&CopyOptions { quote: Some(b'1'), ..csv() }));
    assert!(!safe(&CopyOptions { force_quote: ForcedColumns::All, ..csv() }));
    let one = ForcedColumns::Columns(vec![COLUMNS[1].to_vec()]);
    assert!(safe(&CopyOptions { force_quote: one, ..csv() }));
}

prop_compose! {
    fn any_options()(
        csv: bool,
        delimiter in prop::option::of(any::<u8>()),
        null in prop::option::of(prop::collection::vec(0x2cu8..0x32, 0..3)),
        header: bool,
        quote in prop::option::of(0x20u8..0x40),
        escape in prop::option::of(0x20u8..0x60),
        force: bool,
    ) -> CopyOptions {
        CopyOptions {
            format: if csv { Format::Csv } else { Format::Text },
            delimiter,
            null,
            header,
            quote: quote.filter(|_| csv),
            escape: escape.filter(|_| csv),
            force_quote: if force && csv { ForcedColumns::All } else { ForcedColumns::None },
        }
    }
}

proptest! {
    #[test]
    fn every_way_into_the_buffer_gives_the_same_bytes(
        options in any_options(),
        value in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            prop::collection::vec(0x20u8..0x60, 0..40),
            prop::collection::vec(0x30u8..0x33, 1..3),
        ],
    ) {
        let Ok(format) = CopyFormat::new(&options, &[b"only"], 15) else { return Ok(()) };
        let mut written = b"x".to_vec();
        format.write_field(0, &value, &mut written);
        let mut finished = b"x".to_vec();
        finished.extend_from_slice(&value);
        let raw = finished.clone();
        format.finish_field(0, 1, &mut finished);
        prop_assert_eq!(&written, &finished);
        if !value.is_empty() && value.iter().all(|&b| is_plain(b)) && format.plain_is_safe(0) {
            prop_assert_eq!(raw, finished);
        }
    }
}
