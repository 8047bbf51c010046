//! Texts put together at random from pieces that mean something to a type, the same ones every time.
//! Most are no values; what the server says of them is as good a test as what it stores.

use pagemill_format::PgVersion;

use super::cases::Case;

/// Texts of each type.
const TEXTS: usize = 60;

/// Numbers that look random (a linear congruential generator of Knuth's).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Types, and pieces of their texts.
const TYPES: [(&str, &[&str]); 13] = [
    (
        "int[]",
        &[
            "{", "}", "{", "}", ",", ",", "1", "-2", "NULL", "\"3\"", " ", "[1:2]=", "[2]=",
            "[0:0]", "=", "\\4", "\"", "x",
        ],
    ),
    (
        "text[]",
        &[
            "{",
            "}",
            "{",
            "}",
            ",",
            ",",
            "a",
            "b c",
            "\"d\"",
            "\"",
            "\\",
            " ",
            "\"e,{f}\"",
            "null",
            "\n",
            "[1:1]=",
        ],
    ),
    ("pair", &["(", ")", ",", ",", ",", "1", "2", "x", "\"", "\\", " ", "\"a\"\"b\"", "(", "\"\""]),
    (
        "numrange",
        &["[", "]", "(", ")", ",", ",", "1", "2.5", "-3", "\"4\"", " ", "empty", "\\", "\"", "1"],
    ),
    (
        "int4multirange",
        &[
            "{", "}", "[", "]", "(", ")", ",", ",", "1", "2", "5", "9", "-3", "[1,3)", "(4,6]",
            "{[2,5),", "empty", " ", "}", "\"",
        ],
    ),
    (
        "jsonb",
        &[
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            ",",
            "\"a\"",
            "\"b\"",
            "\"a\":",
            "\"bb\":",
            "1",
            "-2.50",
            "1e3",
            "true",
            "null",
            " ",
            "{\"a\":1}",
            "[1,2]",
            "\"\\u0041\"",
            "\"\\n\"",
            "\"\\ud83d\\ude00\"",
            "0",
        ],
    ),
    (
        "json",
        &[
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"a\"",
            "\"a\":",
            "1",
            "-",
            ".5",
            "e3",
            "true",
            "null",
            " ",
            "\"\\u00\"",
            "[1]",
            "{}",
        ],
    ),
    (
        "jsonpath",
        &[
            "$",
            "@",
            "$.",
            ".a",
            ".",
            "*",
            "**",
            "[",
            "]",
            "(",
            ")",
            "?(",
            ")",
            "1",
            "2.5",
            " + ",
            " - ",
            "-",
            " == ",
            " > ",
            " && ",
            " || ",
            "!",
            "last",
            " to ",
            ",",
            "\"s\"",
            "exists(",
            ".size()",
            ".abs()",
            " starts with ",
            " like_regex ",
            " flag ",
            "\"i\"",
            " is unknown",
            "$v",
            "{2}",
            "null",
            "true",
            "a",
            " ",
            "$.a",
            "@.b",
            "($.a)",
            "($ == 1)",
            "$[0]",
            ".decimal(1,2)",
            ".time(2)",
            "1_0",
            "0x1F",
            ".type()",
        ],
    ),
    (
        "tsvector",
        &[
            "a", "b", "cc", "'d e'", "'", ":1", ":2A", ",3", ":", " ", " ", "\\", "1", "B", "''",
            "é", "&", "(", "*",
        ],
    ),
    (
        "tsquery",
        &[
            "a", "b", "'c d'", " & ", " | ", "!", "(", ")", " <-> ", "<2>", ":A", ":*", ":bC", " ",
            "'", "\\", "<", "-", ">", ":", "é", "a & b",
        ],
    ),
    (
        "path",
        &[
            "(", ")", "[", "]", ",", ",", ",", "1", "2", "-3.5", "1e2", " ", "(1,2)", "(3,4)",
            "nan", "inf", "x",
        ],
    ),
    ("circle", &["<", ">", "(", ")", ",", ",", "1", "2", "-3", " ", "(1,2)", "((", "nan"]),
    (
        "line",
        &[
            "{", "}", "(", ")", "[", "]", ",", ",", "1", "2", "0", " ", "(1,2)", "(3,4)", "(1,5)",
            "{1,2,3}",
        ],
    ),
];

/// Texts of all these types, others for each version.
pub(crate) fn all(version: PgVersion) -> Vec<Case> {
    let mut random = Random(u64::from(version.major()));
    let mut texts = |pieces: &[&str]| {
        let mut text = || {
            let count = 1 + random.below(9);
            (0..count).map(|_| pieces[random.below(pieces.len())]).collect::<String>()
        };
        (0..TEXTS).map(|_| text()).collect()
    };
    let case = |(type_name, pieces): &(&'static str, &[&str])| Case {
        type_name,
        since: PgVersion::V14,
        texts: texts(pieces),
    };
    TYPES.iter().map(case).collect()
}
