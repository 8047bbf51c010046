//! A list of names separated by commas, as `search_path` is written.
//!
//! A name is bare (ASCII letters become lower case) or in double quotes, where `""` is one quote.
//! Both are cut to 63 bytes, at the start of a UTF-8 character where the bytes are UTF-8.
//!
//! One liberty: in a single-byte encoding the server folds bare non-ASCII letters too, by the
//! rules of its LC_CTYPE locale, which is not to be had here. Such names are left as they are.
//! The vertical tab is a blank, as it is to the server from 16 on.
//!
//! Source: `SplitIdentifierString` in `src/backend/utils/adt/varlena.c`, `downcase_identifier`
//! and `scanner_isspace` in `src/backend/parser/scansup.c`, PostgreSQL 14 to 18.

/// Bytes that a name may have (`NAMEDATALEN` less its terminating zero).
const LONGEST_NAME: usize = 63;

/// The names in `value`, unquoted; `None` when the server would refuse the list.
pub fn parse_search_path(value: &[u8]) -> Option<Vec<Box<[u8]>>> {
    let names = parse_setting_list(value)?;
    let as_name = |(name, is_bare): (Vec<u8>, bool)| {
        let name = if is_bare { name.to_ascii_lowercase() } else { name };
        clipped(&name).into()
    };
    Some(names.into_iter().map(as_name).collect())
}

/// The items of a setting that is a list of any texts, as the server keeps it, each with whether it is bare: none is changed.
///
/// Source: `SplitGUCList` in `src/backend/utils/adt/varlena.c`, PostgreSQL 18.
pub fn parse_setting_list(value: &[u8]) -> Option<Vec<(Vec<u8>, bool)>> {
    let mut rest = after_spaces(value);
    let mut names = Vec::new();
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        let is_bare = rest.first() != Some(&b'"');
        let (name, after) = next_name(rest)?;
        names.push((name, is_bare));
        rest = after_spaces(after);
        match rest {
            [] => return Some(names),
            [b',', after @ ..] => rest = after_spaces(after),
            _ => return None,
        }
    }
}

fn next_name(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    if let [b'"', quoted @ ..] = text {
        return quoted_name(quoted);
    }
    let length = text.iter().take_while(|&&byte| byte != b',' && !is_space(byte)).count();
    let (name, after) = text.split_at_checked(length)?;
    (length > 0).then(|| (name.to_owned(), after))
}

fn quoted_name(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut name = Vec::new();
    loop {
        match rest {
            [b'"', b'"', after @ ..] => {
                name.push(b'"');
                rest = after;
            }
            [b'"', after @ ..] => return Some((name, after)),
            [byte, after @ ..] => {
                name.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

fn clipped(name: &[u8]) -> &[u8] {
    let Some(cut) = name.get(..LONGEST_NAME) else { return name };
    if name.len() == LONGEST_NAME || std::str::from_utf8(name).is_err() {
        return cut;
    }
    let is_inside = |at: usize| name.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    let end = (0..=LONGEST_NAME).rev().find(|&at| !is_inside(at)).unwrap_or(0);
    cut.get(..end).unwrap_or(cut)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
}

fn after_spaces(text: &[u8]) -> &[u8] {
    let blank = text.iter().take_while(|&&byte| is_space(byte)).count();
    text.get(blank..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(value: &str) -> Option<Vec<String>> {
        let names = parse_search_path(value.as_bytes())?;
        Some(names.into_iter().map(|name| String::from_utf8(name.into()).unwrap()).collect())
    }

    #[test]
    fn bare_names_are_folded_and_quoted_ones_are_not() {
        assert_eq!(names(r#""$user", public"#).unwrap(), ["$user", "public"]);
        assert_eq!(names("\t App ,\"App\",\"a\"\"b, c\" ").unwrap(), ["app", "App", "a\"b, c"]);
        assert_eq!(names("ÄB").unwrap(), ["Äb"]);
        assert_eq!(names("\"\"").unwrap(), [""]);
        assert_eq!(names("  ").unwrap(), [""; 0]);
    }

    #[test]
    fn a_list_the_server_refuses_is_none() {
        for value in ["a,", ",a", "a b", "a,,b", "\"a", "\"a\"b", "\"\"\""] {
            assert_eq!(names(value), None, "{value}");
        }
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let long = "x".repeat(62) + "é";
        assert_eq!(names(&long).unwrap(), ["x".repeat(62)]);
        assert_eq!(names(&"y".repeat(70)).unwrap(), ["y".repeat(63)]);
        let latin1 = [b"z".repeat(62), vec![0xE9, 0xE9]].concat();
        assert_eq!(*parse_search_path(&latin1).unwrap()[0], latin1[..63]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_list_or_not(value: Vec<u8>) {
            for name in parse_search_path(&value).unwrap_or_default() {
                prop_assert!(name.len() <= LONGEST_NAME);
            }
        }

        #[test]
        fn anything_like_a_list_is_a_list_or_not(value in r#"[ ab",$é]{0,12}"#) {
            let _ = parse_search_path(value.as_bytes());
        }
    }
}
