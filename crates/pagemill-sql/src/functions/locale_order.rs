//! Keys that sort as texts do under a locale of the C library: what `ORDER BY` of nearly every database means.
//!
//! A server compares two texts by `strcoll`, and by their bytes where that holds them for equal. glibc's `strxfrm` is meant to
//! give keys for it, and does but for one level: characters whose second weights (accents) count from behind are read by
//! `strcoll` in stretches, and of a stretch that other characters follow or precede it passes over some. So here the second level
//! is made anew, as `strcoll` reads it, of the weights that `strxfrm` tells of each character by itself; the others are
//! `strxfrm`'s.
//!
//! Invariant: a key is given only for a text whose second level, put together of its characters' in the plain way, is the one
//! that `strxfrm` made of the whole: else it is not known what it is made of, and the text is refused. The keys of a batch
//! are sorted, and neighbors held against `strcoll`, before any is handed out.
//!
//! Source: `varstr_cmp` in `src/backend/utils/adt/varlena.c`, PostgreSQL 14 to 18; glibc 2.28 to 2.41 as they behave.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ffi::CStr;

use pagemill_sys::LocaleCollation;

use super::characters::{LetterClasses, Ranges};
use super::rows::Outcome;
use crate::error::StatementError;

/// What `strxfrm` puts between the levels of a key. No weight of the first three levels has it.
const LEVEL_END: u8 = 1;
/// The level whose weights may count from behind: that of accents.
const ACCENTS: usize = 1;
/// A digit and an accent: of all characters that count from behind the best known.
const DIGIT: char = '0';
const ACCENT: char = '\u{301}';

/// What a locale does with one character.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unit {
    /// Its weights on the second level; empty where it has none.
    accents: Box<[u8]>,
    /// True if these count from behind.
    is_backward: bool,
    /// Of how many the C library takes it: as many as it has bytes, if the locale does not know it.
    count: usize,
}

/// The keys of one locale.
#[derive(Debug)]
pub(crate) struct LocaleOrder {
    collation: LocaleCollation,
    classes: LetterClasses,
    /// What comes first on the second level of a digit with an accent, if these count from behind.
    backward_mark: Option<u8>,
}

impl LocaleOrder {
    /// The order of a locale of the system.
    ///
    /// # Errors
    /// When it is not installed, or the C library has none.
    pub(crate) fn new(locale: &str) -> std::io::Result<Self> {
        let mut order = Self {
            collation: LocaleCollation::new(locale.as_bytes())?,
            classes: LetterClasses::default(),
            backward_mark: None,
        };
        let both = order.level(&format!("{DIGIT}{ACCENT}"));
        let (digit, accent) = (order.level(&DIGIT.to_string()), order.level(&ACCENT.to_string()));
        if !digit.is_empty() && digit != accent && both == [&accent[..], &digit].concat() {
            order.backward_mark =
                accent.first().copied().filter(|mark| Some(mark) != digit.first());
        }
        Ok(order)
    }

    /// The locale.
    pub(crate) fn collation(&self) -> &LocaleCollation {
        &self.collation
    }

    /// The characters of a class, by its name in POSIX.
    pub(crate) fn class(&self, name: &'static CStr) -> Ranges {
        self.classes.of_locale(&self.collation, name)
    }

    /// The order of two texts as the server has it.
    pub(crate) fn compare(&self, a: &str, b: &str) -> Ordering {
        self.collation.compare(a.as_bytes(), b.as_bytes()).then_with(|| a.cmp(b))
    }

    /// The keys of texts, which sort as [`compare`](Self::compare) has it.
    ///
    /// # Errors
    /// When it is not known how a text is read.
    pub(crate) fn keys(&self, texts: &[Option<&str>]) -> Outcome<Vec<Option<Vec<u8>>>> {
        let mut maker = KeyMaker::new(self);
        let keys = texts.iter().map(|text| text.map(|text| maker.key(text)).transpose());
        let keys = keys.collect::<Outcome<Vec<Option<Vec<u8>>>>>()?;
        self.check(texts, &keys)?;
        Ok(keys)
    }

    /// Holds the order of the keys against the library's of the texts.
    fn check(&self, texts: &[Option<&str>], keys: &[Option<Vec<u8>>]) -> Outcome<()> {
        let mut sorted: Vec<(&Vec<u8>, &str)> =
            keys.iter().zip(texts).filter_map(|(key, text)| key.as_ref().zip(*text)).collect();
        sorted.sort_unstable();
        for pair in sorted.windows(2) {
            if self.compare(pair[0].1, pair[1].1) == Ordering::Greater {
                return Err(unknown_text(pair[1].1));
            }
        }
        Ok(())
    }

    fn transformed(&self, text: &str) -> Vec<u8> {
        let mut key = Vec::new();
        self.collation.transform(text.as_bytes(), &mut key);
        key
    }

    /// The second level of a text's key.
    fn level(&self, text: &str) -> Vec<u8> {
        self.transformed(text)
            .split(|byte| *byte == LEVEL_END)
            .nth(ACCENTS)
            .unwrap_or_default()
            .to_vec()
    }

    fn unit(&self, character: char) -> Unit {
        let text = character.to_string();
        let mut unknown = Vec::new();
        // No text of UTF-8 has this byte, and no locale knows it.
        self.collation.transform(&vec![0xFF; text.len()], &mut unknown);
        let count = if self.transformed(&text) == unknown { text.len() } else { 1 };
        let is_backward = self.backward_mark.is_some_and(|mark| {
            self.level(&format!("{DIGIT}{character}{ACCENT}")).first() == Some(&mark)
        });
        Unit { accents: self.level(&text).into(), is_backward, count }
    }
}

#[cold]
fn unknown_text(text: &str) -> StatementError {
    let text: String = text.chars().take(40).collect();
    StatementError::unsupported(format!("the order in this locale of the text \"{text}\""))
        .with_hint("COLLATE \"C\" sorts by bytes.")
}

/// Characters below this have their numbers in a table: those of alphabets.
const TABLE_END: usize = 0x3000;
/// The number of a character that was not met yet.
const UNKNOWN: u32 = u32::MAX;

/// Makes keys, and remembers the characters.
struct KeyMaker<'o> {
    order: &'o LocaleOrder,
    units: Vec<Unit>,
    /// Numbers of units.
    table: Vec<u32>,
    others: HashMap<char, u32>,
    /// Those of the text at hand, and the level that is made of them.
    numbers: Vec<u32>,
    level: Vec<u8>,
}

impl<'o> KeyMaker<'o> {
    fn new(order: &'o LocaleOrder) -> Self {
        let table = match order.backward_mark {
            Some(_) => vec![UNKNOWN; TABLE_END],
            None => Vec::new(),
        };
        let (units, others) = (Vec::new(), HashMap::new());
        Self { order, units, table, others, numbers: Vec::new(), level: Vec::new() }
    }

    /// The bytes of the levels, a zero, which none of them has, and the text.
    fn key(&mut self, text: &str) -> Outcome<Vec<u8>> {
        let mut key = self.order.transformed(text);
        if self.order.backward_mark.is_some() && !text.is_empty() {
            self.mend(text, &mut key)?;
        }
        key.push(0);
        key.extend_from_slice(text.as_bytes());
        Ok(key)
    }

    /// Puts the second level as `strcoll` reads it in the place of that of `strxfrm`.
    fn mend(&mut self, text: &str, key: &mut Vec<u8>) -> Outcome<()> {
        if !self.read(text) {
            return Ok(());
        }
        let begin = key.iter().position(|byte| *byte == LEVEL_END).map(|at| at + 1);
        let begin = begin.ok_or_else(|| unknown_text(text))?;
        let length = key[begin..].iter().position(|byte| *byte == LEVEL_END);
        let end = length.map_or(key.len(), |length| begin + length);
        let units = Units { units: &self.units, numbers: &self.numbers };
        units.put_in_order(&mut self.level);
        if key[begin..end] != self.level {
            return Err(unknown_text(text));
        }
        units.put_as_compared(&mut self.level);
        match self.level.len() == end - begin {
            true => key[begin..end].copy_from_slice(&self.level),
            false => drop(key.splice(begin..end, self.level.iter().copied())),
        }
        Ok(())
    }

    /// Looks up the characters of a text. True if one of them counts from behind.
    fn read(&mut self, text: &str) -> bool {
        self.numbers.clear();
        let mut is_any_backward = false;
        for character in text.chars() {
            let number = self.number(character);
            let unit = &self.units[number as usize];
            is_any_backward |= unit.is_backward;
            self.numbers.extend(std::iter::repeat_n(number, unit.count));
        }
        is_any_backward
    }

    #[inline]
    fn number(&mut self, character: char) -> u32 {
        let known = match self.table.get(character as usize) {
            Some(number) => *number,
            None => self.others.get(&character).copied().unwrap_or(UNKNOWN),
        };
        if known == UNKNOWN { self.add(character) } else { known }
    }

    #[cold]
    fn add(&mut self, character: char) -> u32 {
        let number = self.units.len() as u32;
        self.units.push(self.order.unit(character));
        match self.table.get_mut(character as usize) {
            Some(place) => *place = number,
            None => drop(self.others.insert(character, number)),
        }
        number
    }
}

/// The characters of a text.
struct Units<'u> {
    units: &'u [Unit],
    numbers: &'u [u32],
}

impl Units<'_> {
    fn at(&self, place: usize) -> &Unit {
        &self.units[self.numbers[place] as usize]
    }

    /// Where the stretch ends that counts from behind and begins here; its beginning where there is none.
    fn stretch_end(&self, begin: usize) -> usize {
        let is_backward = |at: &usize| self.at(*at).is_backward;
        (begin..self.numbers.len()).find(|at| !is_backward(at)).unwrap_or(self.numbers.len())
    }

    /// The weights with every stretch that counts from behind turned around: as `strxfrm` has them.
    fn put_in_order(&self, level: &mut Vec<u8>) {
        level.clear();
        let mut at = 0;
        while at < self.numbers.len() {
            let end = self.stretch_end(at);
            (at..end).rev().for_each(|place| level.extend_from_slice(&self.at(place).accents));
            at = end;
            if at < self.numbers.len() {
                level.extend_from_slice(&self.at(at).accents);
                at += 1;
            }
        }
    }

    /// The weights that `strcoll` comes to compare.
    ///
    /// A stretch that counts from behind is found from its end: the last of it first, then those before it by their numbers,
    /// where one is left out if another character follows the stretch, and where numbers count from the place at which the
    /// search for a weight began, which is before the stretch if characters without a weight precede it.
    fn put_as_compared(&self, level: &mut Vec<u8>) {
        level.clear();
        let (mut at, mut search) = (0, 0);
        while at < self.numbers.len() {
            let end = self.stretch_end(at);
            if end == at {
                level.extend_from_slice(&self.at(at).accents);
                at += 1;
                if !self.at(at - 1).accents.is_empty() {
                    search = at;
                }
                continue;
            }
            let follower = (end < self.numbers.len()).then(|| self.at(end));
            level.extend_from_slice(&self.at(end - 1).accents);
            let left = (end - at).saturating_sub(1 + usize::from(follower.is_some()));
            for number in (0..left).rev() {
                level.extend_from_slice(&self.at(search + number).accents);
            }
            level.extend(follower.iter().flat_map(|unit| unit.accents.iter()));
            at = end + usize::from(follower.is_some());
            search = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a pattern, the same in every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: u32) -> u32 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as u32 % end
        }

        fn character(&mut self, kind: u32) -> char {
            const COMMON: &[char] = &[
                'a', 'A', 'ä', 'Ä', 'e', 'é', 'ê', ACCENT, '\u{308}', '-', ' ', '_', 'ß', 's', 'S',
                'c', 'h', 'C', '0', '1', '9', '.', 'あ', 'ア', '가', '\u{200d}', '\u{fe0f}', '…',
                '½', '😀',
            ];
            let any = match kind {
                0 => 1 + self.below(127),
                1 => 0xA0 + self.below(0x300),
                2 => 1 + self.below(0xFFFF),
                3 => 0x1F300 + self.below(0x800),
                4 => 0x4E00 + self.below(0x5000),
                5 => 1 + self.below(0x10_FFFE),
                _ => u32::from(COMMON[self.below(COMMON.len() as u32) as usize]),
            };
            char::from_u32(any).unwrap_or('x')
        }

        fn text(&mut self) -> String {
            let kind = self.below(10);
            (0..self.below(9))
                .map(|_| {
                    let kind = if kind == 9 { self.below(8) } else { kind };
                    self.character(kind)
                })
                .collect()
        }

        /// Two texts that often differ in little.
        fn pair(&mut self) -> (String, String) {
            let (a, b, c) = (self.text(), self.text(), self.text());
            match self.below(5) {
                0 => (format!("{a}{b}"), a),
                1 => (format!("{a}{b}"), format!("{a}-{b}")),
                2 => (format!("{a}{c}{b}"), format!("{a}{b}")),
                3 => (a.to_lowercase(), a),
                _ => (a, b),
            }
        }
    }

    fn order_of(locale: &str) -> Option<LocaleOrder> {
        let order = LocaleOrder::new(locale);
        if order.is_err() {
            eprintln!("SKIPPED: the locale {locale} is not installed");
        }
        order.ok()
    }

    #[test]
    fn keys_sort_as_the_library_compares() {
        for locale in ["en_US.UTF-8", "de_DE.UTF-8", "C.UTF-8"] {
            let Some(order) = order_of(locale) else { continue };
            let mut numbers = Numbers(88_172_645_463_325_252);
            let mut maker = KeyMaker::new(&order);
            let (mut refused, rounds) = (0, 200_000);
            for _ in 0..rounds {
                let (a, b) = numbers.pair();
                let (Ok(x), Ok(y)) = (maker.key(&a), maker.key(&b)) else {
                    refused += 1;
                    continue;
                };
                assert_eq!(order.compare(&a, &b), x.cmp(&y), "{locale}: {a:?} {b:?}");
            }
            assert!(refused * 50 < rounds, "{locale}: {refused} refused");
        }
    }

    #[test]
    fn texts_of_digits_and_signs_are_where_the_library_has_them() {
        let Some(order) = order_of("en_US.UTF-8") else { return };
        // `strxfrm` has them the other way around.
        assert_eq!(order.compare("9-b", "9--b"), Ordering::Less);
        let keys = order.keys(&[Some("9-b"), None, Some("9--b")]).unwrap();
        assert!(keys[0] < keys[2] && keys[1].is_none());
    }

    #[test]
    fn a_stretch_from_behind_is_read_as_the_library_reads_it() {
        let unit =
            |accents: &[u8], is_backward| Unit { accents: accents.into(), is_backward, count: 1 };
        let units = [
            unit(&[2], true),
            unit(&[3], true),
            unit(&[4], true),
            unit(&[9], false),
            unit(&[], false),
        ];
        let levels = |numbers: &[u32]| {
            let (units, mut level) = (Units { units: &units, numbers }, Vec::new());
            units.put_in_order(&mut level);
            let in_order = level.clone();
            units.put_as_compared(&mut level);
            (in_order, level)
        };
        assert_eq!(levels(&[0, 1, 2]), (vec![4, 3, 2], vec![4, 3, 2]));
        assert_eq!(levels(&[0, 1, 2, 3]), (vec![4, 3, 2, 9], vec![4, 2, 9]));
        assert_eq!(levels(&[4, 0, 1]), (vec![3, 2], vec![3]));
        assert_eq!(levels(&[3, 0, 3]), (vec![9, 2, 9], vec![9, 2, 9]));
    }
}
