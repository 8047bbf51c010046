//! The letters C and G of Double Metaphone, which sound otherwise in names from Italy, Germany, Poland and Greece.
//!
//! Rules are tried in their order; the first that fits gives the sounds.
//!
//! Invariant: every rule takes at least a byte. Source: `contrib/fuzzystrmatch/dmetaphone.c`, PostgreSQL 14 to 18.

use super::{Sound, VAN_AND_VON, Word};

impl Word {
    pub(super) fn c(&self) -> Sound {
        if self.is_germanic_ach() {
            return ("K", "K", 2);
        }
        if self.is_first() && self.is_near(0, &["CAESAR"]) {
            return ("S", "S", 2);
        }
        if self.is_near(0, &["CHIA"]) {
            return ("K", "K", 2);
        }
        if self.letter(1) == b'H' {
            return self.ch();
        }
        if self.letter(1) == b'Z' && !self.is_near(-2, &["WICZ"]) {
            return ("S", "X", 2);
        }
        if self.is_near(1, &["CIA"]) {
            return ("X", "X", 3);
        }
        if self.letter(1) == b'C' && !(self.at == 1 && self.starts(&["M"])) {
            return self.cc();
        }
        self.single_c()
    }

    fn is_germanic_ach(&self) -> bool {
        let is_hard = match self.letter(2) {
            b'I' => false,
            b'E' => self.is_near(-2, &["BACHER", "MACHER"]),
            _ => true,
        };
        self.at > 1 && !self.is_vowel(-2) && self.is_near(-1, &["ACH"]) && is_hard
    }

    fn ch(&self) -> Sound {
        if !self.is_first() && self.is_near(0, &["CHAE"]) {
            return ("K", "X", 2);
        }
        let greek = ["HARAC", "HARIS", "HOR", "HYM", "HIA", "HEM"];
        if self.is_first() && self.is_near(1, &greek) && !self.starts(&["CHORE"]) {
            return ("K", "K", 2);
        }
        match self.is_hard_ch() {
            true => ("K", "K", 2),
            false if self.is_first() => ("X", "X", 2),
            false if self.starts(&["MC"]) => ("K", "K", 2),
            false => ("X", "K", 2),
        }
    }

    fn is_hard_ch(&self) -> bool {
        let consonants = ["L", "R", "N", "M", "B", "H", "F", "V", "W", " "];
        self.is_germanic()
            || self.is_near(-2, &["ORCHES", "ARCHIT", "ORCHID"])
            || self.is_near(2, &["T", "S"])
            || (self.is_first() || self.is_near(-1, &["A", "O", "U", "E"]))
                && self.is_near(2, &consonants)
    }

    /// True for a name that begins as those from German and Dutch do.
    pub(super) fn is_germanic(&self) -> bool {
        self.starts(VAN_AND_VON) || self.starts(&["SCH"])
    }

    fn cc(&self) -> Sound {
        if !self.is_near(2, &["I", "E", "H"]) || self.is_near(2, &["HU"]) {
            return ("K", "K", 2);
        }
        let is_accent = self.at == 1 && self.letter(-1) == b'A';
        match is_accent || self.is_near(-1, &["UCCEE", "UCCES"]) {
            true => ("KS", "KS", 3),
            false => ("X", "X", 3),
        }
    }

    fn single_c(&self) -> Sound {
        match (self.letter(1), self.letter(2)) {
            (b'K' | b'G' | b'Q', _) => ("K", "K", 2),
            (b'I', b'O' | b'E' | b'A') => ("S", "X", 2),
            (b'I' | b'E' | b'Y', _) => ("S", "S", 2),
            (b' ', b'C' | b'Q' | b'G') => ("K", "K", 3),
            (b'C', b'E' | b'I') => ("K", "K", 1),
            (b'C', _) => ("K", "K", 2),
            _ => ("K", "K", 1),
        }
    }

    pub(super) fn g(&self) -> Sound {
        match self.letter(1) {
            b'H' => return self.gh(),
            b'N' => return self.gn(),
            _ => {}
        }
        if self.is_near(1, &["LI"]) && !self.is_slavic_or_germanic() {
            return ("KL", "L", 2);
        }
        if self.is_first() && self.is_before_germanic_ending() || self.is_ger() {
            return ("K", "J", 2);
        }
        if self.is_near(1, &["E", "I", "Y"]) || self.is_near(-1, &["AGGI", "OGGI"]) {
            return self.soft_g();
        }
        self.doubled("K")
    }

    fn is_before_germanic_ending(&self) -> bool {
        let endings = ["Y", "ES", "EP", "EB", "EL", "EY", "IB", "IL", "IN", "IE", "EI", "ER"];
        self.is_near(1, &endings)
    }

    fn is_ger(&self) -> bool {
        self.is_near(1, &["ER", "Y"])
            && !self.starts(&["DANGER", "RANGER", "MANGER"])
            && !self.is_near(-1, &["E", "I", "RGY", "OGY"])
    }

    fn soft_g(&self) -> Sound {
        if self.is_germanic() || self.is_near(1, &["ET"]) {
            return ("K", "K", 2);
        }
        // The ending of French words.
        if self.is_near(1, &["IER "]) { ("J", "J", 2) } else { ("J", "K", 2) }
    }

    fn gh(&self) -> Sound {
        if self.is_first() {
            return if self.letter(2) == b'I' { ("J", "J", 2) } else { ("K", "K", 2) };
        }
        if !self.is_vowel(-1) {
            return ("K", "K", 2);
        }
        let is_silent = self.is_near(-2, &["B", "H", "D"])
            || self.is_near(-3, &["B", "H", "D"])
            || self.is_near(-4, &["B", "H"]);
        match self.letter(-1) {
            _ if is_silent => ("", "", 2),
            b'U' if self.is_near(-3, &["C", "G", "L", "R", "T"]) => ("F", "F", 2),
            b'I' => ("", "", 2),
            _ => ("K", "K", 2),
        }
    }

    fn gn(&self) -> Sound {
        if self.is_slavic_or_germanic() {
            return ("KN", "KN", 2);
        }
        if self.at == 1 && self.is_vowel(-1) {
            return ("KN", "N", 2);
        }
        if self.is_near(2, &["EY"]) { ("KN", "KN", 2) } else { ("N", "KN", 2) }
    }
}
