//! The syntax of advanced regular expressions, read into a tree.
//!
//! Source: `src/backend/regex/regc_lex.c` and the chapter on pattern matching of the documentation, PostgreSQL 18.

use std::ffi::CStr;
use std::iter::Peekable;
use std::str::Chars;

use super::super::super::characters::Characters;
use super::super::cases::Letters;
use super::options::{Options, embedded_options};
use super::set::{Range, Set, others};

/// `DUPMAX`.
const MOST_REPEATS: u32 = 255;
const MAX_DEPTH: usize = 50;
/// Digits of a character's number: as many as say any, and one more.
const LONGEST_NUMBER: usize = 9;
/// Of a longer range the server looks at no more characters for their other case.
const MOST_CASES: usize = 100_000;

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Empty,
    /// Any character of a set.
    One(Set),
    /// A condition that takes no character, in the library's syntax.
    Condition(&'static str),
    /// With its number, if what it takes is remembered.
    Group(Option<usize>, Box<Node>),
    /// A condition on what follows or comes before.
    Look(Look, Box<Node>),
    /// What a group has taken, by its number.
    Same(usize),
    Row(Vec<Node>),
    Either(Vec<Node>),
    Repeat {
        of: Box<Node>,
        least: u32,
        most: Option<u32>,
        how_much: HowMuch,
    },
}

/// How much a quantifier asks for, of what it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HowMuch {
    Most,
    Least,
    /// As what it repeats: that of `{m}`, which takes what it takes.
    AsWithin,
}

/// Which way a condition looks, and whether nothing may be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) is_ahead: bool,
    pub(super) is_negated: bool,
}

/// A pattern that was read.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub(super) root: Node,
    /// The groups that are remembered.
    pub(super) groups: usize,
    /// Some quantifier asks for as little as possible.
    pub(super) is_lazy: bool,
    /// It speaks of letters or digits.
    pub(super) has_classes: bool,
    /// It speaks of where words begin or end.
    pub(super) has_words: bool,
    /// It speaks of spaces.
    pub(super) has_spaces: bool,
    pub(super) ignores_case: bool,
    /// It has parts that the library does not know.
    pub(super) is_walked: bool,
}

/// What letters are to a pattern.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'l> {
    pub(super) letters: Letters,
    /// Tells those beyond ASCII; without it only ASCII texts are searched for letters.
    pub(super) locale: Option<&'l Characters>,
}

/// Reads a pattern; nothing for one that is wrong, or whose meaning is not known here.
pub(super) fn read(pattern: &str, options: Options, known: Known<'_>) -> Option<Tree> {
    // What kind of expression follows.
    if pattern.starts_with("***") {
        return None;
    }
    let (pattern, options) = embedded_options(pattern, options)?;
    let tree = Tree {
        root: Node::Empty,
        groups: 0,
        is_lazy: false,
        has_classes: false,
        has_words: false,
        has_spaces: false,
        ignores_case: options.ignores_case,
        is_walked: false,
    };
    // Which characters beyond ASCII are spaces is the locale's matter.
    if options.is_expanded && !pattern.is_ascii() {
        return None;
    }
    let rest = pattern.chars().peekable();
    let mut reader = Reader { rest, tree, known, options, closed: Vec::new(), looks: 0 };
    let root = reader.branches(0)?;
    if reader.rest.next().is_some() {
        return None;
    }
    reader.tree.root = root;
    Some(reader.tree)
}

struct Reader<'p> {
    rest: Peekable<Chars<'p>>,
    tree: Tree,
    known: Known<'p>,
    options: Options,
    /// The groups that have ended.
    closed: Vec<usize>,
    /// How many conditions on what is around are open, in which nothing is remembered.
    looks: usize,
}

impl Reader<'_> {
    fn branches(&mut self, depth: usize) -> Option<Node> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut branches = Vec::new();
        loop {
            let mut row = Vec::new();
            self.skip();
            while self.rest.peek().is_some_and(|next| !matches!(next, '|' | ')')) {
                row.push(self.quantified(depth)?);
                self.skip();
            }
            branches.push(match row.len() {
                0 => Node::Empty,
                1 => row.swap_remove(0),
                _ => Node::Row(row),
            });
            if self.rest.next_if_eq(&'|').is_none() {
                break;
            }
        }
        Some(if branches.len() == 1 { branches.swap_remove(0) } else { Node::Either(branches) })
    }

    /// Spaces and comments, where they count for nothing.
    fn skip(&mut self) {
        if !self.options.is_expanded {
            return;
        }
        while let Some(next) = self.rest.next_if(|next| matches!(next, ' ' | '\t'..='\r' | '#')) {
            while next == '#' && self.rest.next_if(|within| *within != '\n').is_some() {}
        }
    }

    fn quantified(&mut self, depth: usize) -> Option<Node> {
        let atom = self.atom(depth)?;
        self.skip();
        let (least, most) = match self.rest.peek().copied() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') if self.is_bound() => (u32::MAX, None),
            _ => return Some(atom),
        };
        self.rest.next();
        let (least, most, is_fixed) = match least == u32::MAX {
            true => self.bound()?,
            false => (least, most, false),
        };
        if matches!(atom, Node::Condition(_) | Node::Look(..)) {
            return None;
        }
        let is_lazy = self.rest.next_if_eq(&'?').is_some();
        let how_much = match (is_fixed, is_lazy) {
            (true, _) => HowMuch::AsWithin,
            (false, true) => HowMuch::Least,
            (false, false) => HowMuch::Most,
        };
        self.tree.is_lazy |= how_much == HowMuch::Least;
        self.skip();
        if matches!(self.rest.peek(), Some('*' | '+' | '?')) || self.is_bound() {
            return None;
        }
        Some(Node::Repeat { of: Box::new(atom), least, most, how_much })
    }

    /// An opening brace is one only before a digit.
    fn is_bound(&self) -> bool {
        let mut rest = self.rest.clone();
        rest.next() == Some('{') && rest.next().is_some_and(|next| next.is_ascii_digit())
    }

    /// `m}`, `m,}` or `m,n}`; true for the first.
    fn bound(&mut self) -> Option<(u32, Option<u32>, bool)> {
        let least = self.number()?;
        let comma = self.rest.next_if_eq(&',');
        let most = match comma {
            None => Some(least),
            Some(_) if self.rest.peek() == Some(&'}') => None,
            Some(_) => Some(self.number().filter(|most| *most >= least)?),
        };
        self.rest.next_if_eq(&'}')?;
        Some((least, most, comma.is_none()))
    }

    fn number(&mut self) -> Option<u32> {
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        digits.parse().ok().filter(|number| *number <= MOST_REPEATS)
    }

    fn atom(&mut self, depth: usize) -> Option<Node> {
        Some(match self.rest.next()? {
            '^' if self.options.anchors_at_lines => Node::Condition("(?m:^)"),
            '$' if self.options.anchors_at_lines => Node::Condition("(?m:$)"),
            '^' => Node::Condition("\\A"),
            '$' => Node::Condition("\\z"),
            '.' if self.options.stops_at_lines => Node::One(Set::other_than(vec![('\n', '\n')])),
            '.' => Node::One(Set::other_than(Vec::new())),
            '[' => self.bracket()?,
            '(' => self.group(depth)?,
            '*' | '+' | '?' | ')' => return None,
            '\\' => self.escaped()?,
            // A brace before a digit would be a bound of nothing.
            '{' if self.rest.peek().is_some_and(char::is_ascii_digit) => return None,
            '{' if self.options.is_expanded => return None,
            literal => self.literal(literal)?,
        })
    }

    fn group(&mut self, depth: usize) -> Option<Node> {
        let is_special = self.rest.next_if_eq(&'?').is_some();
        let look = if is_special { self.look()? } else { None };
        let is_remembered = !is_special && self.looks == 0;
        self.tree.groups += usize::from(is_remembered);
        let number = self.tree.groups;
        self.looks += usize::from(look.is_some());
        let inner = Box::new(self.branches(depth + 1)?);
        self.rest.next_if_eq(&')')?;
        if let Some(look) = look {
            self.looks -= 1;
            self.tree.is_walked = true;
            return Some(Node::Look(look, inner));
        }
        if is_remembered {
            self.closed.push(number);
        }
        Some(Node::Group(is_remembered.then_some(number), inner))
    }

    /// `:`, which is nothing more, or a condition behind `(?`.
    fn look(&mut self) -> Option<Option<Look>> {
        let mut next = self.rest.next()?;
        if next == ':' {
            return Some(None);
        }
        let is_ahead = next != '<';
        if !is_ahead {
            next = self.rest.next()?;
        }
        let is_negated = next == '!';
        matches!(next, '=' | '!').then_some(Some(Look { is_ahead, is_negated }))
    }

    /// What a group has taken that has ended before; only for groups of one digit.
    fn same(&mut self, digit: char) -> Option<Node> {
        let number = usize::try_from(digit.to_digit(10)?).ok()?;
        let is_longer = self.rest.peek().is_some_and(char::is_ascii_digit);
        let is_known = self.closed.contains(&number) && !is_longer;
        if !is_known || self.looks > 0 || self.options.ignores_case {
            return None;
        }
        self.tree.is_walked = true;
        Some(Node::Same(number))
    }

    /// Behind a backslash, outside of brackets.
    fn escaped(&mut self) -> Option<Node> {
        let next = self.rest.next()?;
        Some(match next {
            'A' => Node::Condition("\\A"),
            'Z' => Node::Condition("\\z"),
            'm' => self.at_word(["(?-u:\\b{start})", "\\b{start}"]),
            'M' => self.at_word(["(?-u:\\b{end})", "\\b{end}"]),
            'y' => self.at_word(["(?-u:\\b)", "\\b"]),
            'Y' => {
                // The library's own one of ASCII may be between the bytes of a character.
                self.tree.is_walked |= self.known.locale.is_none();
                self.at_word(["(?-u:\\B)", "\\B"])
            }
            '1'..='9' => self.same(next)?,
            'd' | 's' | 'w' => Node::One(Set::of(self.class_escape(next)?)),
            'D' | 'S' | 'W' => {
                let ranges = self.class_escape(next.to_ascii_lowercase())?;
                Node::One(Set::other_than(ranges))
            }
            other => {
                let character = self.character_behind_backslash(other)?;
                self.literal(character)?
            }
        })
    }

    /// A condition on words of ASCII, and on those of a locale.
    fn at_word(&mut self, [of_ascii, of_locale]: [&'static str; 2]) -> Node {
        (self.tree.has_classes, self.tree.has_words) = (true, true);
        Node::Condition(if self.known.locale.is_some() { of_locale } else { of_ascii })
    }

    fn class_escape(&mut self, letter: char) -> Option<Vec<Range>> {
        self.class(match letter {
            'd' => "digit",
            's' => "space",
            _ => "word",
        })
    }

    /// The characters of a class.
    fn class(&mut self, name: &str) -> Option<Vec<Range>> {
        if let Some(ranges) = class_of_any_locale(name) {
            return Some(ranges);
        }
        self.tree.has_classes = true;
        self.tree.has_spaces |= name == "space";
        // Their case counts for nothing where that of others does.
        let name = match name {
            "upper" | "lower" if self.options.ignores_case => "alpha",
            other => other,
        };
        match self.known.locale {
            Some(locale) => class_of(locale, name),
            None => self.class_of_ascii(name),
        }
    }

    fn class_of_ascii(&self, name: &str) -> Option<Vec<Range>> {
        let is_icu = self.known.letters == Letters::More { is_icu: true };
        Some(match name {
            "digit" => vec![('0', '9')],
            "space" => vec![('\t', '\r'), (' ', ' ')],
            "word" => vec![('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
            "alpha" => vec![('A', 'Z'), ('a', 'z')],
            "alnum" => vec![('0', '9'), ('A', 'Z'), ('a', 'z')],
            "upper" => vec![('A', 'Z')],
            "lower" => vec![('a', 'z')],
            // ICU's own classes divide ASCII otherwise.
            "punct" if !is_icu => vec![('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
            "graph" if !is_icu => vec![('!', '~')],
            "print" if !is_icu => vec![(' ', '~')],
            _ => return None,
        })
    }

    fn literal(&self, letter: char) -> Option<Node> {
        Some(Node::One(Set::of(self.one_in_any_case(letter)?)))
    }

    /// One character, in whatever case where that counts for nothing.
    fn one_in_any_case(&self, letter: char) -> Option<Vec<Range>> {
        match self.known.locale.filter(|_| self.options.ignores_case) {
            // Not itself, of a letter that is neither small nor a capital.
            Some(locale) => {
                let both = [locale.lower(letter), locale.upper(letter)];
                Some(both.map(|letter| (letter, letter)).into())
            }
            None => self.in_any_case((letter, letter)),
        }
    }

    /// A range, with the other case of its letters where case counts for nothing.
    fn in_any_case(&self, range: Range) -> Option<Vec<Range>> {
        let mut ranges = vec![range];
        if !self.options.ignores_case {
            return Some(ranges);
        }
        match self.known.locale {
            Some(locale) => {
                for letter in (range.0..=range.1).take(MOST_CASES) {
                    let other = [locale.lower(letter), locale.upper(letter)];
                    ranges.extend(other.map(|letter| (letter, letter)));
                }
            }
            None if !range.1.is_ascii() && self.known.letters != Letters::Ascii => return None,
            None => push_other_case(&mut ranges, range),
        }
        Some(ranges)
    }

    /// Behind an opening bracket.
    fn bracket(&mut self) -> Option<Node> {
        let is_other = self.rest.next_if_eq(&'^').is_some();
        let (mut ranges, mut is_first) = (Vec::new(), true);
        loop {
            let next = self.rest.next()?;
            match next {
                ']' if !is_first => {
                    if is_other && self.options.stops_at_lines {
                        ranges.push(('\n', '\n'));
                    }
                    let set = if is_other { Set::other_than(ranges) } else { Set::of(ranges) };
                    return Some(Node::One(set));
                }
                '[' => {
                    let class = self.named_class()?;
                    ranges.extend(class);
                    self.no_range()?;
                }
                '\\' if matches!(self.rest.peek(), Some('d' | 's' | 'w')) => {
                    let letter = self.rest.next()?;
                    ranges.extend(self.class_escape(letter)?);
                    self.no_range()?;
                }
                '\\' if matches!(self.rest.peek(), Some('D' | 'S' | 'W')) => {
                    let letter = self.rest.next()?.to_ascii_lowercase();
                    ranges.extend(others(self.class_escape(letter)?));
                    self.no_range()?;
                }
                '-' if !is_first && self.rest.peek() != Some(&']') => return None,
                start => {
                    let start = self.bracket_character(start)?;
                    ranges.extend(match self.range_end(start)? {
                        end if end == start => self.one_in_any_case(start)?,
                        end => self.in_any_case((start, end))?,
                    });
                }
            }
            is_first = false;
        }
    }

    /// A class is no end of a range.
    fn no_range(&self) -> Option<()> {
        let mut rest = self.rest.clone();
        let is_range = rest.next() == Some('-') && rest.next() != Some(']');
        (!is_range).then_some(())
    }

    fn bracket_character(&mut self, character: char) -> Option<char> {
        match character {
            '\\' => {
                let next = self.rest.next()?;
                self.character_behind_backslash(next)
            }
            other => Some(other),
        }
    }

    /// What an escape stands for that may have a number: all digits that follow, or as many as its letter says.
    fn character_behind_backslash(&mut self, next: char) -> Option<char> {
        let (least, most) = match next {
            'x' => (1, LONGEST_NUMBER),
            'u' => (4, 4),
            'U' => (8, 8),
            other => return character_escape(other),
        };
        let mut digits = String::new();
        while digits.len() < most
            && let Some(digit) = self.rest.next_if(char::is_ascii_hexdigit)
        {
            digits.push(digit);
        }
        // The server takes more of them, too, and then it is no character.
        let is_whole = digits.len() >= least && (most < LONGEST_NUMBER || digits.len() < most);
        let number = u32::from_str_radix(&digits, 16).ok().filter(|_| is_whole)?;
        char::from_u32(number).filter(|character| *character != '\0')
    }

    fn range_end(&mut self, start: char) -> Option<char> {
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('-') || ahead.peek() == Some(&']') {
            return Some(start);
        }
        self.rest.next();
        let end = self.rest.next().filter(|end| !matches!(end, '[' | '-'))?;
        let end = self.bracket_character(end)?;
        // Too long a range is an error where case counts for nothing.
        (end >= start && start != '-').then_some(end)
    }

    /// `[:name:]` behind its first bracket.
    fn named_class(&mut self) -> Option<Vec<Range>> {
        self.rest.next_if_eq(&':')?;
        let mut name = String::new();
        while let Some(letter) = self.rest.next_if(char::is_ascii_alphabetic) {
            name.push(letter);
        }
        self.rest.next_if_eq(&':')?;
        self.rest.next_if_eq(&']')?;
        self.class(&name)
    }
}

/// What a letter behind a backslash stands for; anything that is no letter or digit for itself.
fn character_escape(next: char) -> Option<char> {
    Some(match next {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'B' => '\\',
        'e' => '\u{1B}',
        'f' => '\u{C}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{B}',
        letter if letter.is_ascii_alphanumeric() => return None,
        other => other,
    })
}

/// Letters of ASCII within a range, in their other case.
fn push_other_case(ranges: &mut Vec<Range>, (start, end): Range) {
    for (first, last, shift) in [('a', 'z', -32i32), ('A', 'Z', 32)] {
        let (from, to) = (start.max(first), end.min(last));
        let other = |letter: char| char::from_u32((letter as i32 + shift) as u32);
        if from <= to
            && let (Some(from), Some(to)) = (other(from), other(to))
        {
            ranges.push((from, to));
        }
    }
}

/// Classes that have the same characters everywhere.
fn class_of_any_locale(name: &str) -> Option<Vec<Range>> {
    Some(match name {
        "ascii" => vec![('\0', '\x7F')],
        "blank" => vec![('\t', '\t'), (' ', ' ')],
        "cntrl" => vec![('\0', '\x1F'), ('\x7F', '\u{9F}')],
        "xdigit" => vec![('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return None,
    })
}

fn class_of(locale: &Characters, name: &str) -> Option<Vec<Range>> {
    let known: &'static CStr = match name {
        "alnum" | "word" => c"alnum",
        "alpha" => c"alpha",
        "digit" => c"digit",
        "graph" => c"graph",
        "lower" => c"lower",
        "print" => c"print",
        "punct" => c"punct",
        "space" => c"space",
        "upper" => c"upper",
        _ => return None,
    };
    let mut ranges = locale.class(known).to_vec();
    if name == "word" {
        ranges.push(('_', '_'));
    }
    Some(ranges)
}
