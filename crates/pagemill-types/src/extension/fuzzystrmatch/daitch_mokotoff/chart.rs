//! What sequences of letters sound like in the system of Daitch and Mokotoff: their code digits.
//!
//! The letters `a`, `e` and `t` stand for Ą, Ę and Ţ. Every sequence has one or two ways to be said, each with its digits at the start of
//! a name, before a vowel, and elsewhere; X is no digit. A vowel has 0 or 1 at the start of a name.
//!
//! Invariant: every letter has an entry of its own. Source: the chart that `contrib/fuzzystrmatch/daitch_mokotoff_header.pl` names,
//! <https://www.jewishgen.org/InfoFiles/Soundex.html>, with its digits for UE; PostgreSQL 16 to 18.

/// The digits of one way to say a sequence: at the start of a name, before a vowel, elsewhere.
pub(super) type Digits = [&'static str; 3];

/// Sequences of letters, and the ways to say them.
pub(super) const CHART: &[(&[&str], &[Digits])] = &[
    (
        &["AI", "AJ", "AY", "EI", "EJ", "EY", "OI", "OJ", "OY", "UE", "UI", "UJ", "UY"],
        &[["0", "1", "X"]],
    ),
    (&["AU"], &[["0", "7", "X"]]),
    (&["a", "e"], &[["X", "X", "6"], ["X", "X", "X"]]),
    (&["A", "E", "I", "O", "U"], &[["0", "X", "X"]]),
    (&["B", "F", "FB", "P", "PF", "PH", "V", "W"], &[["7", "7", "7"]]),
    (&["CHS", "KS", "X"], &[["5", "54", "54"]]),
    (&["C", "CH"], &[["5", "5", "5"], ["4", "4", "4"]]),
    (&["CK"], &[["5", "5", "5"], ["45", "45", "45"]]),
    (
        &[
            "CS", "CSZ", "CZ", "CZS", "DRS", "DRZ", "DS", "DSH", "DSZ", "DZ", "DZH", "DZS", "S",
            "SCH", "SH", "SZ", "TC", "TCH", "TRS", "TRZ", "TS", "TSCH", "TSH", "TSZ", "TTCH",
            "TTS", "TTSCH", "TTSZ", "TTZ", "TZ", "TZS", "Z", "ZH", "ZS", "ZSCH", "ZSH",
        ],
        &[["4", "4", "4"]],
    ),
    (&["D", "DT", "T", "TH"], &[["3", "3", "3"]]),
    (&["EU"], &[["1", "1", "X"]]),
    (&["G", "K", "KH", "Q"], &[["5", "5", "5"]]),
    (&["H"], &[["5", "5", "X"]]),
    (&["IA", "IE", "IO", "IU", "Y"], &[["1", "X", "X"]]),
    (&["J"], &[["1", "X", "X"], ["4", "4", "4"]]),
    (&["L"], &[["8", "8", "8"]]),
    (&["MN", "NM"], &[["66", "66", "66"]]),
    (&["M", "N"], &[["6", "6", "6"]]),
    (&["RS", "RZ"], &[["94", "94", "94"], ["4", "4", "4"]]),
    (&["R"], &[["9", "9", "9"]]),
    (
        &[
            "SC", "SCHTCH", "SCHTSCH", "SCHTSH", "SHCH", "SHTCH", "SHTSH", "STCH", "STRS", "STRZ",
            "STSCH", "STSH", "SZCS", "SZCZ", "ZDZ", "ZDZH", "ZHDZH",
        ],
        &[["2", "4", "4"]],
    ),
    (&["SCHD", "SCHT", "SD", "SHD", "SHT", "ST", "SZD", "SZT", "ZD", "ZHD"], &[["2", "43", "43"]]),
    (&["t"], &[["3", "3", "3"], ["4", "4", "4"]]),
];
