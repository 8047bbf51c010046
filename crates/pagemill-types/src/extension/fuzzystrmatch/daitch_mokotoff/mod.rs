//! Daitch and Mokotoff's Soundex, of PostgreSQL 16 and later: codes of six digits for names from Eastern Europe, all that a name may have
//! where a sequence of letters (`chart.rs`) can be said in two ways.
//!
//! Codes grow digit by digit in a tree, whose leaves are the codes so far. A digit is not repeated for letters that follow each
//! other with the same one; where only one of two ways repeats it, both the code with it and the one without stay leaves.
//!
//! Invariant: codes come in the order in which the server finds them: those that are full as they get so, then the leaves. Source:
//! `contrib/fuzzystrmatch/daitch_mokotoff.c`, PostgreSQL 16 to 18.

mod chart;

use chart::{CHART, Digits};

const LENGTH: usize = 6;
/// What follows the last letter.
const END: &[Digits] = &[["X", "X", "X"]];
const NO_DIGIT: u8 = b'X';

/// The codes of a text; `None` where it has no letter.
pub(super) fn codes(text: &str) -> Option<Vec<Vec<u8>>> {
    let sounds = sounds(text);
    if sounds.is_empty() {
        return None;
    }
    let mut tree = Tree { nodes: vec![Node::root()], leaves: vec![0], full: Vec::new() };
    for (number, ways) in sounds.iter().enumerate() {
        let next = sounds.get(number + 1).copied().unwrap_or(END);
        tree.add_sound(number, ways, next);
    }
    let Tree { nodes, leaves, mut full } = tree;
    full.extend(leaves.iter().filter_map(|leaf| nodes.get(*leaf)).map(|node| node.code.to_vec()));
    Some(full)
}

/// The ways to say the sequences of letters in a text, each as long as it can be.
fn sounds(text: &str) -> Vec<&'static [Digits]> {
    let letters: String = text.chars().filter_map(letter).collect();
    let (mut rest, mut sounds) = (&letters[..], Vec::new());
    while !rest.is_empty() {
        let entries = CHART.iter().flat_map(|(all, ways)| all.iter().map(move |one| (one, ways)));
        let known = entries.filter(|(one, _)| rest.starts_with(**one));
        let longest = known.max_by_key(|(one, _)| one.len());
        let length = longest.map_or(1, |(one, _)| one.len());
        sounds.extend(longest.map(|(_, ways)| *ways));
        rest = rest.get(length..).unwrap_or_default();
    }
    sounds
}

/// The letter that a character counts as.
fn letter(character: char) -> Option<char> {
    Some(match character.to_ascii_uppercase() {
        plain @ 'A'..='Z' => plain,
        'À'..='Å' | 'à'..='å' => 'A',
        'Æ' | 'æ' | 'È'..='Ë' | 'è'..='ë' => 'E',
        'Ç' | 'ç' => 'C',
        'Ì'..='Ï' | 'ì'..='ï' => 'I',
        'Ð' | 'ð' | 'Þ' | 'þ' => 'D',
        'Ñ' | 'ñ' => 'N',
        'Ò'..='Ö' | 'Ø' | 'ò'..='ö' | 'ø' => 'O',
        'Ù'..='Ü' | 'ù'..='ü' => 'U',
        'Ý' | 'ý' | 'ÿ' => 'Y',
        'ß' => 'S',
        'Ą' | 'ą' => 'a',
        'Ę' | 'ę' => 'e',
        'Ţ' | 'ţ' | 'Ț' | 'ț' => 't',
        _ => return None,
    })
}

/// A code so far.
#[derive(Debug, Clone)]
struct Node {
    code: [u8; LENGTH],
    length: usize,
    is_leaf: bool,
    /// The sound that last changed this node.
    sound: usize,
    /// The digits that the sound before led here by, `None` before all; and those of this sound.
    before: [Option<u8>; 2],
    now: [Option<u8>; 2],
    /// Bits of the columns of the chart that the sound before was taken from, and this one.
    columns_before: usize,
    columns_now: usize,
    children: [Option<usize>; 10],
}

impl Node {
    fn root() -> Self {
        Self {
            code: [b'0'; LENGTH],
            length: 0,
            is_leaf: false,
            sound: 0,
            before: [None; 2],
            now: [None; 2],
            columns_before: 0,
            columns_now: 0,
            children: [None; 10],
        }
    }

    fn begin(&mut self, sound: usize) {
        if self.sound < sound {
            self.before = std::mem::take(&mut self.now);
            self.columns_before = std::mem::take(&mut self.columns_now);
            self.is_leaf = false;
            self.sound = sound;
        }
    }

    fn add(&mut self, column: usize, digit: u8) {
        self.columns_now |= column;
        match self.now {
            [None, _] => self.now[0] = Some(digit),
            [Some(first), _] if first != digit => self.now[1] = Some(digit),
            _ => {}
        }
    }
}

/// A way to say a sound at its place.
#[derive(Clone, Copy)]
struct Way {
    sound: usize,
    /// Bit of the column that the sound before must have been taken from.
    column_before: usize,
    column: usize,
    digits: &'static [u8],
}

struct Tree {
    nodes: Vec<Node>,
    leaves: Vec<usize>,
    /// Codes with all digits.
    full: Vec<Vec<u8>>,
}

impl Tree {
    fn add_sound(&mut self, sound: usize, ways: &[Digits], next: &[Digits]) {
        for leaf in std::mem::take(&mut self.leaves) {
            for [start, before_vowel, elsewhere] in ways {
                let column_before = if is_vowel(start) { 1 } else { 2 };
                for [next, ..] in next {
                    let (column, digits) = match sound {
                        0 => (0, start),
                        _ if is_vowel(next) => (1, before_vowel),
                        _ => (2, elsewhere),
                    };
                    let digits = digits.as_bytes();
                    self.add_way(leaf, Way { sound, column_before, column, digits });
                }
            }
        }
    }

    fn add_way(&mut self, at: usize, way: Way) {
        let (digit, rest) = match way.digits {
            [digit, rest @ ..] => (*digit, rest),
            [] => return,
        };
        let Some(node) = self.nodes.get_mut(at) else { return };
        node.begin(way.sound);
        if node.columns_before != 0 && node.columns_before & way.column_before == 0 {
            return;
        }
        let is_known = node.before.contains(&Some(digit));
        let is_only = node.before[0] == Some(digit) && node.before[1].is_none();
        let stays = (digit == NO_DIGIT || is_known).then_some(at);
        let grown = match digit == NO_DIGIT || is_only {
            true => None,
            false => self.child(at, digit, way.sound),
        };
        // A second digit goes to the first of both alone.
        let mut rest = Some(rest).filter(|rest| !rest.is_empty());
        for one in [stays, grown].into_iter().flatten() {
            if let Some(node) = self.nodes.get_mut(one) {
                node.add(way.column, digit);
            }
            match rest.take() {
                Some([second, ..]) => self.add_second(one, *second, way),
                _ => self.set_leaf(one),
            }
        }
    }

    /// A second digit is added even where it was there before.
    fn add_second(&mut self, at: usize, digit: u8, way: Way) {
        let Some(node) = self.nodes.get(at) else { return };
        if node.columns_before != 0 && node.columns_before & way.column_before == 0 {
            return;
        }
        let Some(grown) = self.child(at, digit, way.sound) else { return };
        if let Some(node) = self.nodes.get_mut(grown) {
            node.add(way.column, digit);
        }
        self.set_leaf(grown);
    }

    /// The code with a digit more, unless that makes it full.
    fn child(&mut self, at: usize, digit: u8, sound: usize) -> Option<usize> {
        let parent = self.nodes.get(at)?;
        let place = usize::from(digit.checked_sub(b'0')?);
        if let Some(child) = *parent.children.get(place)? {
            self.nodes.get_mut(child)?.begin(sound);
            return Some(child)
                .filter(|child| self.nodes.get(*child).is_some_and(|n| n.length < LENGTH));
        }
        let mut child = Node { code: parent.code, length: parent.length + 1, ..Node::root() };
        *child.code.get_mut(parent.length)? = digit;
        child.begin(sound);
        if child.length == LENGTH {
            self.full.push(child.code.to_vec());
        }
        let number = self.nodes.len();
        *self.nodes.get_mut(at)?.children.get_mut(place)? = Some(number);
        let is_full = child.length == LENGTH;
        self.nodes.push(child);
        (!is_full).then_some(number)
    }

    fn set_leaf(&mut self, at: usize) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        if !node.is_leaf {
            node.is_leaf = true;
            self.leaves.push(at);
        }
    }
}

/// True for the digits of a vowel.
fn is_vowel(at_start: &str) -> bool {
    at_start.starts_with(['0', '1'])
}
