//! The letters of Double Metaphone but C, G and those that always sound the same.
//!
//! Rules are tried in their order; the first that fits gives the sounds.
//!
//! Invariant: every rule takes at least a byte. Source: `contrib/fuzzystrmatch/dmetaphone.c`, PostgreSQL 14 to 18.

use super::{Sound, Word};

impl Word {
    pub(super) fn d(&self) -> Sound {
        match (self.letter(1), self.letter(2)) {
            (b'G', b'I' | b'E' | b'Y') => ("J", "J", 3),
            (b'G', _) => ("TK", "TK", 2),
            (b'T' | b'D', _) => ("T", "T", 2),
            _ => ("T", "T", 1),
        }
    }

    pub(super) fn h(&self) -> Sound {
        match (self.is_first() || self.is_vowel(-1)) && self.is_vowel(1) {
            true => ("H", "H", 2),
            false => ("", "", 1),
        }
    }

    pub(super) fn j(&self) -> Sound {
        let is_jose = self.is_near(0, &["JOSE"]);
        if self.starts(&["SAN "]) || is_jose && self.is_first() && self.letter(4) == b' ' {
            return ("H", "H", 1);
        }
        if is_jose {
            return ("J", "H", 1);
        }
        let (first, second) = self.sounds_of_j();
        (first, second, self.doubled("").2)
    }

    fn sounds_of_j(&self) -> (&'static str, &'static str) {
        let is_spanish = self.is_vowel(-1) && matches!(self.letter(1), b'A' | b'O');
        if self.is_first() {
            return ("J", "A");
        }
        if is_spanish && !self.is_slavic_or_germanic() {
            return ("J", "H");
        }
        if self.is_last() {
            return ("J", "");
        }
        let is_silent = self.is_near(1, &["L", "T", "K", "S", "N", "M", "B", "Z"])
            || self.is_near(-1, &["S", "K", "L"]);
        if is_silent { ("", "") } else { ("J", "J") }
    }

    pub(super) fn l(&self) -> Sound {
        let word = self.bytes.get(..self.length).unwrap_or_default();
        let ends = |endings: &[&str]| endings.iter().any(|end| word.ends_with(end.as_bytes()));
        let is_at_end = self.at + 3 == self.length && self.is_near(-1, &["ILLO", "ILLA", "ALLE"]);
        let is_inside = self.is_near(-1, &["ALLE"]) && ends(&["AS", "OS", "A", "O"]);
        match self.letter(1) == b'L' && (is_at_end || is_inside) {
            true => ("L", "", 2),
            false => self.doubled("L"),
        }
    }

    pub(super) fn m(&self) -> Sound {
        let is_at_end = self.at + 2 == self.length || self.is_near(2, &["ER"]);
        match self.is_near(-1, &["UMB"]) && is_at_end {
            true => ("M", "M", 2),
            false => self.doubled("M"),
        }
    }

    pub(super) fn p(&self) -> Sound {
        match self.letter(1) {
            b'H' => ("F", "F", 2),
            b'P' | b'B' => ("P", "P", 2),
            _ => ("P", "P", 1),
        }
    }

    pub(super) fn r(&self) -> Sound {
        let is_french = self.is_last()
            && !self.is_slavic_or_germanic()
            && self.is_near(-2, &["IE"])
            && !self.is_near(-4, &["ME", "MA"]);
        let (_, second, taken) = self.doubled("R");
        (if is_french { "" } else { "R" }, second, taken)
    }

    pub(super) fn s(&self) -> Sound {
        if self.is_near(-1, &["ISL", "YSL"]) {
            return ("", "", 1);
        }
        if self.is_first() && self.is_near(0, &["SUGAR"]) {
            return ("X", "S", 1);
        }
        match (self.letter(1), self.letter(2)) {
            (b'H', _) if self.is_near(1, &["HEIM", "HOEK", "HOLM", "HOLZ"]) => ("S", "S", 2),
            (b'H', _) => ("X", "X", 2),
            (b'I', b'O' | b'A') if self.is_slavic_or_germanic() => ("S", "S", 3),
            (b'I', b'O' | b'A') => ("S", "X", 3),
            (b'M' | b'N' | b'L' | b'W', _) if self.is_first() => ("S", "X", 1),
            (b'Z', _) => ("S", "X", 2),
            (b'C', b'H') => self.sch(),
            (b'C', b'I' | b'E' | b'Y') => ("S", "S", 3),
            (b'C', _) => ("SK", "SK", 3),
            _ => self.plain_s(),
        }
    }

    fn sch(&self) -> Sound {
        if self.is_near(3, &["ER", "EN"]) {
            return ("X", "SK", 3);
        }
        if self.is_near(3, &["OO", "UY", "ED", "EM"]) {
            return ("SK", "SK", 3);
        }
        match self.is_first() && !self.is_vowel(3) && self.letter(3) != b'W' {
            true => ("X", "S", 3),
            false => ("X", "X", 3),
        }
    }

    fn plain_s(&self) -> Sound {
        let is_silent = self.is_last() && self.is_near(-2, &["AI", "OI"]);
        (if is_silent { "" } else { "S" }, "S", if self.letter(1) == b'S' { 2 } else { 1 })
    }

    pub(super) fn t(&self) -> Sound {
        if self.is_near(0, &["TION", "TIA", "TCH"]) {
            return ("X", "X", 3);
        }
        if self.is_near(0, &["TH", "TTH"]) {
            let is_hard = self.is_near(2, &["OM", "AM"]) || self.is_germanic();
            return (if is_hard { "T" } else { "0" }, "T", 2);
        }
        ("T", "T", if self.is_near(1, &["T", "D"]) { 2 } else { 1 })
    }

    pub(super) fn w(&self) -> Sound {
        let is_polish = self.is_near(0, &["WICZ", "WITZ"]);
        match self.letter(1) {
            b'R' => return ("R", "R", 2),
            b'H' if self.is_first() => return ("A", "A", 1),
            _ if self.is_first() && is_polish => return ("ATS", "FFX", 4),
            _ if self.is_first() && self.is_vowel(1) => return ("A", "F", 1),
            _ => {}
        }
        let is_soft = self.is_last() && self.is_vowel(-1)
            || self.is_near(-1, &["EWSKI", "EWSKY", "OWSKI", "OWSKY"])
            || self.starts(&["SCH"]);
        match (is_soft, is_polish) {
            (true, _) => ("", "F", 1),
            (false, true) => ("TS", "FX", 4),
            (false, false) => ("", "", 1),
        }
    }

    pub(super) fn x(&self) -> Sound {
        let is_silent = self.is_last() && self.is_near(-3, &["IAU", "EAU"])
            || self.is_last() && self.is_near(-2, &["AU", "OU"]);
        let sound = if is_silent { "" } else { "KS" };
        (sound, sound, if matches!(self.letter(1), b'C' | b'X') { 2 } else { 1 })
    }

    pub(super) fn z(&self) -> Sound {
        if self.letter(1) == b'H' {
            return ("J", "J", 2);
        }
        let is_slavic = self.is_slavic_or_germanic() && !self.is_first() && self.letter(-1) != b'T';
        let is_hard = is_slavic || self.is_near(1, &["ZO", "ZI", "ZA"]);
        ("S", if is_hard { "TS" } else { "S" }, self.doubled("").2)
    }
}
