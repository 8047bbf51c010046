//! The texts: telling ones, and random mixtures of what means something to a type.
//!
//! Random ones come from a generator with a fixed seed, so that a failure is the same every time.

use pagemill_format::ids::{Oid, PgVersion};

/// A type with its modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Its name in `pg_type`.
    pub(crate) name: &'static str,
    /// Its OID.
    pub(crate) oid: Oid,
    /// The type modifier, -1 for none.
    pub(crate) typmod: i32,
}

/// A text for a type.
#[derive(Debug)]
pub(crate) struct Case {
    /// The type.
    pub(crate) kind: Kind,
    /// The text.
    pub(crate) text: Vec<u8>,
}

/// What a type is asked about.
struct Questions {
    names: &'static [(&'static str, u32)],
    typmods: &'static [i32],
    /// Telling texts.
    texts: &'static [&'static str],
    /// What random texts are put together from.
    tokens: &'static [&'static str],
}

const NO_TYPMOD: &[i32] = &[-1];

const fn numeric(precision: i32, scale: i32) -> i32 {
    (precision << 16 | scale & 0x7FF) + 4
}

#[rustfmt::skip]
const INTEGERS: Questions = Questions {
    names: &[("int2", 21), ("int4", 23), ("int8", 20)],
    typmods: NO_TYPMOD,
    texts: &[
        "0", "-0", "+5", "32767", "32768", "-32768", "-32769", "32769x", "327690", "2147483647",
        "2147483648", "-2147483648", "-2147483649", "2147483650 x", "9223372036854775807",
        "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
        "99999999999999999999", "99999999999999999999x", "000000000000000000000000012", "1e3",
        "1.0", "0x7fff", "-0x8000", "0x8000", "0xffffffffffffffff1", "0o17", "0b11", "0B_1",
        "1_2_3", "0x_f", "-_1", "\u{b}7\u{c}", "7\u{a0}", "１", "- 1", "--1", "0xg", "0b12",
    ],
    tokens: &[
        "0", "1", "3", "7", "9", "32", "276", "2147483", "922337203685", " ", "-", "+", "_", "x",
        "0x", "0b", "0o", "f", "\t", ".",
    ],
};

#[rustfmt::skip]
const BOOLS: Questions = Questions {
    names: &[("bool", 16)],
    typmods: NO_TYPMOD,
    texts: &[
        "t", "f", "TRUE", "fals", "y", "n", "on", "of", "o", "1", "0", "01", "truely", " no ",
    ],
    tokens: &[
        "t", "r", "u", "e", "true", "FALSE", "f", "o", "n", "y", "es", "1", "0", " ", "\n",
    ],
};

#[rustfmt::skip]
const FLOATS: Questions = Questions {
    names: &[("float4", 700), ("float8", 701)],
    typmods: NO_TYPMOD,
    texts: &[
        "0", "-0", "1", "1.", ".5", ".", "1e", "1e+", "1e5", "1E-5", "1e400", "1e400x", "-1e400",
        "1e-400", "0e-400", "1e-46", "1e39", "3.4028235e38", "3.4028236e38", "1.4e-45", "0.7e-45",
        "0.5e-45", "4.9e-324", "2.5e-324", "2.4e-324", "1.7976931348623157e308",
        "1.7976931348623159e308", "2.2250738585072011e-308", "123456789012345678901234567890",
        "9007199254740993", "9007199254740992.5", "16777217", "33554431", "0.1", "1e22", "1e23",
        "8.41e21", "9.5367431640625e-07", "nan", "NaN", "-nan", "+NAN", "nan(7)", "nan(0x1ff)",
        "nan(x)", "nan()", "nan(", "nan(1 )", "nan(99999999999999999999999)", "nan(_)", "nanx",
        "inf", "-inf", "+Infinity", "infinity", "infinite", "0x1p4", "0x.8p1", "0x1.8", "0x", "0x.",
        "0x1p", "0x1p1024", "0x1p-1074", "0x1p-1075", "0x1.fffffep127", "0x1.ffffffp127",
        "0x1p-149", "0x1p-150", "0x1.8p-150", "0x1.000001p0", "0x1.0000010p0", "-0x10", " 1 ",
        "\u{b}1\u{b}", "1 1", "1,5", "1_0", "1d", "1f", "0e99999999999999999999", "", " ",
        "1e99999999999999999999", "1e-99999999999999999999", "0x1p99999999999999999999",
    ],
    tokens: &[
        "0", "1", "5", "9", "123456789", "000", ".", ".", "e", "e-", "e+", "-", "+", "38", "30",
        "300", "45", " ", "0x", "p", "p-", "a", "f", "inf", "nan", "(", ")", "x",
    ],
};

#[rustfmt::skip]
const NUMERICS: Questions = Questions {
    names: &[("numeric", 1700)],
    typmods: &[-1, numeric(5, 2), numeric(20, 0), numeric(1000, 500), numeric(12, 10)],
    texts: &[
        "0", "-0", "0.00", "00", ".", ".5", "5.", "-.5", "1..2", "1.2.3", "1e", "1e+", "1e5",
        "1e-5", "1.5E+2", "1e 5", "1e +5", "e5", "12345.67", "99.995", "999.994", "999.995",
        "-999.995", "9999", "10000", "99999999", "100000000", "0.0001", "0.00001", "0.99999",
        "1234567890123456", "12345678901234567", "0.1234567890123456", "0.12345678901234567",
        "9999999999999999", "9999999999999.999", "99999999999999999999", "99999999999999999999.5",
        "123456789012345678901234567890.123456789012345678901234567890", "NaN", "nan ", "+nan",
        "inf", "-inf", "+infinity", "Infinity x", "infin", "1e131071", "1e131072", "1e-16383",
        "1e-16384", "0e131072", "0e-16384", "1e1073741822", "1e1073741823", "1e-1073741823",
        "1e99999999999999999999", "1e99999999999999999999x", "1_000", "1__0", "_1", "1_", "1_.5",
        "1._5", "1.5_5", "1e1_0", "1e_1", "1e1_", "0x1F", "-0xff", "0xffffffffffffffffffffffffffff",
        "0o777", "0b1010101", "0x", "0x_1", "0x1_", "0x1.5", "0xg", "0b2", "0o8", "1 2", " 1 ", "",
        " ", "-", "+-1", "１", "0000000000000000000000000000000000000001.10000000000000000000000000",
    ],
    tokens: &[
        "0", "1", "4", "5", "9", "99", "0000", "9999", "49999", "50000", "123456789", ".", ".", "e",
        "e-", "-", "+", "3", "20", "_", " ", "0x", "f", "nan", "inf",
    ],
};

/// Scales that PostgreSQL 14 does not know.
#[rustfmt::skip]
const ODD_SCALES: Questions = Questions {
    typmods: &[numeric(2, -3), numeric(3, 5), numeric(3, -4), numeric(1, 1000), numeric(4, -1000)],
    ..NUMERICS
};

#[rustfmt::skip]
const MONEY: Questions = Questions {
    names: &[("money", 790)],
    typmods: NO_TYPMOD,
    texts: &[
        "0", "1234.56", "$1,234.56", "-$1.5", "$-1.5", "(1.5)", "(1.5", "1.5-", "1.5 +", "1.5$",
        "1.005", "1.0049", "92233720368547758.07", "92233720368547758.08", "-92233720368547758.08",
        "-92233720368547758.09", "92233720368547758.075", "9999999999999999999", "", "-", "$", "()",
        "1.2.3", "1x", "1,2,3", "1.,5", "--1", "$ $1", "- $ 1", "1 2", "1)-$+ ", "€1",
    ],
    tokens: &[
        "$", "-", "+", "(", ")", "1", "5", "9", "2233", "720368", ".", ",", " ", "x",
    ],
};

#[rustfmt::skip]
const IDENTIFIERS: Questions = Questions {
    names: &[("oid", 26), ("xid", 28), ("cid", 29), ("xid8", 5069)],
    typmods: NO_TYPMOD,
    texts: &[
        "0", "1", "-1", "+1", "4294967295", "4294967296", "-2147483648", "-2147483649",
        "-4294967295", "18446744073709551615", "18446744073709551616", "-18446744073709551615",
        "0x10", "0xffffffff", "010", "08", "0x", "", " ", " 5 ", "5 x", "5x", "-", "1_0",
        "99999999999999999999999x",
    ],
    tokens: &[
        "0", "1", "7", "8", "4294967", "29", "x", "0x", "f", " ", "-", "+", "18446744073709",
    ],
};

#[rustfmt::skip]
const VECTORS: Questions = Questions {
    names: &[("int2vector", 22), ("oidvector", 30)],
    typmods: NO_TYPMOD,
    texts: &[
        "", " ", "1", "1 2 3", " 1  2 ", "1\t2", "1\t 2", "1,2", "-1 2", "1-2", "32768", "65536 x",
        "1 x", "x", "99999999999999999999", "4294967296", "0x1 2", "010 1", "1 ", "+1 -1",
    ],
    tokens: &["0", "1", "9", "327", "67", " ", " ", "\t", "-", "+", "x", ","],
};

#[rustfmt::skip]
const TIDS: Questions = Questions {
    names: &[("tid", 27)],
    typmods: NO_TYPMOD,
    texts: &[
        "(0,0)", "(65538,7)", "(4294967295,65535)", "(-1,0)", "(4294967296,1)", "(1,65536)",
        "(1,-1)", "( 1, 2)", "(1 ,2)", "(1,2 )", "x(1,2)y", ",1,2)", "(1,2", "(1)", "1,2", "(,)",
        "(1,2,3)", "((1,2)", "", ")", "(1,2))", "(99999999999999999999,1)",
    ],
    tokens: &["(", ")", ",", "1", "65535", "0", "9", " ", "-", "x"],
};

#[rustfmt::skip]
const LSNS: Questions = Questions {
    names: &[("pg_lsn", 3220)],
    typmods: NO_TYPMOD,
    texts: &[
        "0/0", "16/B374D848", "FFFFFFFF/ffffffff", "123456789/0", "0/123456789", "/", "1/", "/1",
        " 1/1", "1/1 ", "1/1/1", "0x1/1", "g/1", "",
    ],
    tokens: &["0", "1", "a", "F", "/", "1234", "x", " "],
};

#[rustfmt::skip]
const SNAPSHOTS: Questions = Questions {
    names: &[("pg_snapshot", 5038), ("txid_snapshot", 2970)],
    typmods: NO_TYPMOD,
    texts: &[
        "1:1:", "10:20:10,14", "10:20:10,14,14,", "10:20:14,10", "10:20:20", "0:1:", "2:1:",
        "1:2:x", "1:2", "", " 1: 2: 1", "1:5:1, 2,+3", "1:2:1 ", "-1:-1:",
        "1:99999999999999999999:7", "1:18446744073709551615:18446744073709551614",
    ],
    tokens: &["1", "2", "9", "0", ":", ":", ",", " ", "10", "-", "x"],
};

#[rustfmt::skip]
const TEXTS: Questions = Questions {
    names: &[("text", 25), ("refcursor", 1790), ("name", 19)],
    typmods: NO_TYPMOD,
    texts: &[
        "", "a", " a ", "ä€😀", "0123456789012345678901234567890123456789012345678901234567890123",
        "012345678901234567890123456789012345678901234567890123456789012",
        "01234567890123456789012345678901234567890123456789012345678901ä",
        "0123456789012345678901234567890123456789012345678901234567890😀",
    ],
    tokens: &["a", "ä", "€", "😀", " ", "0123456789", "\\", "\n"],
};

#[rustfmt::skip]
const CHARS: Questions = Questions {
    names: &[("char", 18)],
    typmods: NO_TYPMOD,
    texts: &[
        "", "a", "ab", "ä", "\\", "\\101", "\\377", "\\400", "\\777", "\\1011", "\\08", " ",
    ],
    tokens: &["\\", "0", "1", "3", "7", "8", "a"],
};

#[rustfmt::skip]
const LENGTHS: Questions = Questions {
    names: &[("bpchar", 1042), ("varchar", 1043)],
    typmods: &[-1, 5, 7],
    texts: &[
        "", "a", "abc", "abcd", "abc ", "abc  ", "ab d", "äöü", "äöü ", "äöüä", "€ ", "  ", "     ",
    ],
    tokens: &["a", "ä", "€", " ", " "],
};

#[rustfmt::skip]
const BITS: Questions = Questions {
    names: &[("bit", 1560), ("varbit", 1562)],
    typmods: &[-1, 4, 12],
    texts: &[
        "", "1", "1010", "b1010", "B101", "xA", "Xa5F", "x", "b", "12", "xg", "1€", "x€1", " 1",
        "1 ", "101010101010", "1010101010102",
    ],
    tokens: &["0", "1", "01", "x", "b", "a", "F", "2", " "],
};

#[rustfmt::skip]
const BYTEAS: Questions = Questions {
    names: &[("bytea", 17)],
    typmods: NO_TYPMOD,
    texts: &[
        "", "\\x", "\\x00ff", "\\x 0 0", "\\x00 fF\n", "\\x0", "\\x0g", "\\xg0", "\\x0€", "\\x€",
        "\\X00", "a\\\\b", "a\\000\\377", "\\400", "\\08", "\\", "a\\", "é€",
        "\\x00112233445566778899aabb\
        ccddeeff00112233445566778899aabbccddeeff",
        "\\x00112233445566778899aabbccddeeff0",
        "\\x00112233445566778899aabbccddeeff0z112233445566778899aabbccddeeff",
        "\\x00112233445566778899aabbccddeeff 00112233445566778899aabbccddeeff\u{c}",
    ],
    tokens: &[
        "\\x", "\\", "\\\\", "0", "00", "1f", "aB", "37", "377", "7", " ", "\n", "g", "ä",
    ],
};

#[rustfmt::skip]
const UUIDS: Questions = Questions {
    names: &[("uuid", 2950)],
    typmods: NO_TYPMOD,
    texts: &[
        "00112233-4455-6677-8899-aabbccddeeff", "00112233445566778899AABBCCDDEEFF",
        "{00112233-4455-6677-8899-aabbccddeeff}", "{0011-2233-4455-6677-8899-aabb-ccdd-eeff}",
        "{00112233-4455-6677-8899-aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff}",
        "00112233-4455-6677-8899-aabbccddeeff ", "00112233-4455-6677-8899-aabbccddeeff-",
        "00-112233-4455-6677-8899-aabbccddeeff", "0011--2233-4455-6677-8899-aabbccddeeff", "", "{}",
        "00112233-4455-6677-8899-aabbccddeefg", "00112233-4455-6677-8899-aabbccddeef",
        "-0011223344556677-8899-aabbccddeeff",
    ],
    tokens: &[
        "00112233", "4455", "-", "-", "6677", "8899", "aabbccddeeff", "{", "}", "g",
    ],
};

#[rustfmt::skip]
const HARDWARE: Questions = Questions {
    names: &[("macaddr", 829), ("macaddr8", 774)],
    typmods: NO_TYPMOD,
    texts: &[
        "08:00:2b:01:02:03", "8:0:2B:1:2:3", "08-00-2b-01-02-03", "08002b:010203", "08002b-010203",
        "0800.2b01.0203", "0800-2b01-0203", "08002b010203", " 08: 0x0:+2b:1:2:3 ", "08:00:2b:01:02",
        "08:00:2b:01:02:03:04", "08:00:2b:01:02:03:04:05", "08002b0102030405", "08002b01020",
        "08002b0102", "08:00:2b:01:02:100", "-1:00:2b:01:02:03", "8:0:0:0:0:fffffffffffffffff",
        "0x8:0:0:0:0:0", "0x:0:0:0:0:0", "08:00:2b:01:02:03 x", "08:00-2b:01:02:03",
        "08-002bfffe-010203", "08:00:2b:01:02:03:", "08:00:2b:01:02:03:04:05 ",
        "08:00:2b:01:02:03x", "", "g", "8:0:0:0:0:1_", "08 00 2b 01 02 03", "+8002b010203",
    ],
    tokens: &[
        "08", "00", "2b", "f", "01", ":", ":", "-", ".", " ", "0x", "+", "0800", "2b01", "0203",
    ],
};

#[rustfmt::skip]
const NETWORKS: Questions = Questions {
    names: &[("inet", 869), ("cidr", 650)],
    typmods: NO_TYPMOD,
    texts: &[
        "10.0.0.255", "10.0.0.255/8", "10.0.0.0/8", "10.1/12", "10/8", "10", "10.", "10./8",
        "1.2.3.4.", "1.2.3.4./8", "1.2.3.4/32", "1.2.3.4/033", "1.2.3.4/33", "1.2.3.4/",
        "1.2.3.4/ 8", "1.2.3.4.5", "1.2.3.256", "01.002.3.4", "1..2", ".1", "128", "128.1",
        "192.168.1", "224", "224.0", "240", "255", "300", "0x0a", "0xA", "0x0a01", "0x0A000001",
        "0x0A00000102", "0xa/4", "0x", "0x/8", "::", "::1", "1::", ":", ":::", ":1", "1:", "::/0",
        "::1/128", "::1/129", "::1/064", "::1/", "2001:db8::1/64", "2001:db8::/32",
        "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8:/9", "1:2:3:4:5:6:7::",
        "1:2:3:4:5:6:7::8", "1:2:3:4:5:6::7:8", "1::2::3", "12345::", "::FFFF:1.2.3.4", "::1.2",
        "::1.2.3.", "::1.2.3./96", "::.1.2", "::1..2", "::01.2.3.4", "::1.2.3.4.5", "::1.2.3.256",
        "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "::ffff.1", "::1.2.3.4:5", "ff00::/8",
        "ff01::/8", "::1 ", " ::1", "", "/8", "abc", "1.2.3.4x", "1:2:/3", "/:", "::/",
        "1.2.3.4/8:",
    ],
    tokens: &[
        "1", "10", "0", "255", "256", ".", ".", "/", "8", "24", "32", ":", "::", "ffff", "a", "0x",
        "x", "128", "192", "168",
    ],
};

const ALL: &[Questions] = &[
    INTEGERS,
    BOOLS,
    FLOATS,
    NUMERICS,
    MONEY,
    IDENTIFIERS,
    VECTORS,
    TIDS,
    LSNS,
    SNAPSHOTS,
    TEXTS,
    CHARS,
    LENGTHS,
    BITS,
    BYTEAS,
    UUIDS,
    HARDWARE,
    NETWORKS,
];

/// Random texts of a kind.
const RANDOM: usize = 150;

/// Texts for every type of this version.
pub(crate) fn of_every_type(version: PgVersion) -> Vec<Case> {
    let mut random = Random(0x5EED);
    let mut cases = Vec::new();
    let odd = if version >= PgVersion::V15 { &[ODD_SCALES][..] } else { &[] };
    for questions in ALL.iter().chain(odd) {
        for kind in questions.kinds() {
            let texts = questions.texts.iter().map(|text| text.as_bytes().to_vec());
            let mixed = (0..RANDOM).map(|_| random.mixture(questions.texts, questions.tokens));
            cases.extend(texts.chain(mixed).map(|text| Case { kind, text }));
        }
    }
    // More than a function can have arguments, which once was a limit.
    for kind in VECTORS.kinds() {
        cases.extend([100, 101].map(|count| Case { kind, text: b"7 ".repeat(count) }));
    }
    cases
}

/// Texts of these characters and of blanks, for the types that count characters or show one.
pub(crate) fn of_text_types(characters: &[&[u8]]) -> Vec<Case> {
    let mut random = Random(0xC4A2);
    let mut tokens: Vec<&[u8]> = characters.to_vec();
    tokens.extend([b"a".as_slice(), b" ", b" "]);
    let mut cases = Vec::new();
    for questions in [TEXTS, LENGTHS] {
        for kind in questions.kinds() {
            let count = if kind.name == "name" { 80 } else { 6 };
            let mixed = (0..60).map(|_| random.row(&tokens, count));
            cases.extend(mixed.map(|text| Case { kind, text }));
        }
    }
    for questions in [BITS, BYTEAS] {
        for kind in questions.kinds() {
            let shown = characters.iter().map(|c| [b"\\x", *c].concat());
            cases.extend(shown.map(|text| Case { kind, text }));
        }
    }
    cases
}

impl Questions {
    fn kinds(&self) -> impl Iterator<Item = Kind> + use<> {
        let typmods = self.typmods;
        self.names.iter().flat_map(move |&(name, oid)| {
            typmods.iter().map(move |&typmod| Kind { name, oid: Oid(oid), typmod })
        })
    }
}

/// A generator of numbers without a pattern (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }

    fn row(&mut self, tokens: &[&[u8]], most: usize) -> Vec<u8> {
        let count = self.below(most) + 1;
        (0..count).flat_map(|_| tokens[self.below(tokens.len())].iter().copied()).collect()
    }

    /// Tokens in a row, or a telling text with one of them put in or in place of something.
    fn mixture(&mut self, texts: &[&str], tokens: &[&str]) -> Vec<u8> {
        if self.below(2) == 0 {
            let tokens: Vec<&[u8]> = tokens.iter().map(|token| token.as_bytes()).collect();
            return self.row(&tokens, 8);
        }
        let mut text: Vec<char> = texts[self.below(texts.len())].chars().collect();
        let at = self.below(text.len() + 1);
        let dropped = self.below(2).min(text.len() - at);
        let token = tokens[self.below(tokens.len())].chars();
        text.splice(at..at + dropped, token);
        text.into_iter().collect::<String>().into_bytes()
    }
}
