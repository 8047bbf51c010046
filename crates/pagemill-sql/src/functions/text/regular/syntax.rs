//! The syntax of advanced regular expressions, read into a tree.
//!
//! Source: `src/backend/regex/regc_lex.c` and the chapter on pattern matching of the documentation, PostgreSQL 18.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use super::super::cases::Letters;
use super::options::{Options, embedded_options};

/// `DUPMAX`.
const MOST_REPEATS: u32 = 255;
const MAX_DEPTH: usize = 50;

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Empty,
    /// Any character of a set, in the library's syntax.
    One(String),
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
    },
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
    /// It speaks of spaces.
    pub(super) has_spaces: bool,
    pub(super) ignores_case: bool,
    /// It has parts that the library does not know.
    pub(super) is_walked: bool,
}

/// Reads a pattern; nothing for one that is wrong, or whose meaning is not known here.
pub(super) fn read(pattern: &str, options: Options, letters: Letters) -> Option<Tree> {
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
        has_spaces: false,
        ignores_case: options.ignores_case,
        is_walked: false,
    };
    // Which characters beyond ASCII are spaces is the locale's matter.
    if options.is_expanded && !pattern.is_ascii() {
        return None;
    }
    let rest = pattern.chars().peekable();
    let mut reader = Reader { rest, tree, letters, options, closed: Vec::new(), looks: 0 };
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
    letters: Letters,
    options: Options,
    /// The groups that have ended.
    closed: Vec<usize>,
    /// How many conditions on what is around are open, in which nothing is remembered.
    looks: usize,
}

/// Characters from one to another.
type Range = (char, char);

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
        let (least, most) = if least == u32::MAX { self.bound()? } else { (least, most) };
        if matches!(atom, Node::Condition(_) | Node::Look(..)) {
            return None;
        }
        if self.rest.next_if_eq(&'?').is_some() {
            self.tree.is_lazy = true;
        }
        self.skip();
        if matches!(self.rest.peek(), Some('*' | '+' | '?')) || self.is_bound() {
            return None;
        }
        Some(Node::Repeat { of: Box::new(atom), least, most })
    }

    /// An opening brace is one only before a digit.
    fn is_bound(&self) -> bool {
        let mut rest = self.rest.clone();
        rest.next() == Some('{') && rest.next().is_some_and(|next| next.is_ascii_digit())
    }

    /// `m}`, `m,}` or `m,n}`.
    fn bound(&mut self) -> Option<(u32, Option<u32>)> {
        let least = self.number()?;
        let most = match self.rest.next_if_eq(&',') {
            None => Some(least),
            Some(_) if self.rest.peek() == Some(&'}') => None,
            Some(_) => Some(self.number().filter(|most| *most >= least)?),
        };
        self.rest.next_if_eq(&'}')?;
        Some((least, most))
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
            '.' if self.options.stops_at_lines => Node::One("[^\\n]".to_owned()),
            '.' => Node::One("(?s:.)".to_owned()),
            '[' => self.bracket()?,
            '(' => self.group(depth)?,
            '*' | '+' | '?' | ')' => return None,
            '\\' => self.escaped()?,
            // A brace before a digit would be a bound of nothing.
            '{' if self.rest.peek().is_some_and(char::is_ascii_digit) => return None,
            '{' if self.options.is_expanded => return None,
            literal => self.one(&[(literal, literal)], false)?,
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
            'm' => self.at_word("(?-u:\\b{start})"),
            'M' => self.at_word("(?-u:\\b{end})"),
            'y' => self.at_word("(?-u:\\b)"),
            'Y' => {
                self.tree.is_walked = true;
                self.at_word("(?-u:\\B)")
            }
            '1'..='9' => self.same(next)?,
            'd' | 's' | 'w' => {
                let ranges = self.class_escape(next)?;
                self.one(&ranges, false)?
            }
            'D' | 'S' | 'W' => {
                let ranges = self.class_escape(next.to_ascii_lowercase())?;
                self.one(&ranges, true)?
            }
            other => {
                let character = character_escape(other)?;
                self.one(&[(character, character)], false)?
            }
        })
    }

    fn at_word(&mut self, condition: &'static str) -> Node {
        self.tree.has_classes = true;
        Node::Condition(condition)
    }

    fn class_escape(&mut self, letter: char) -> Option<Vec<Range>> {
        self.class(match letter {
            'd' => "digit",
            's' => "space",
            _ => "word",
        })
    }

    /// The characters of ASCII of a class.
    fn class(&mut self, name: &str) -> Option<Vec<Range>> {
        let is_icu = self.letters == Letters::More { is_icu: true };
        self.tree.has_classes = true;
        self.tree.has_spaces |= name == "space";
        Some(match name {
            "digit" => vec![('0', '9')],
            "space" => vec![('\t', '\r'), (' ', ' ')],
            "word" => vec![('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
            "upper" | "lower" if self.tree.ignores_case => vec![('A', 'Z'), ('a', 'z')],
            "alpha" => vec![('A', 'Z'), ('a', 'z')],
            "alnum" => vec![('0', '9'), ('A', 'Z'), ('a', 'z')],
            "upper" => vec![('A', 'Z')],
            "lower" => vec![('a', 'z')],
            "xdigit" => vec![('0', '9'), ('A', 'F'), ('a', 'f')],
            // ICU's own classes divide ASCII otherwise.
            "blank" if !is_icu => vec![('\t', '\t'), (' ', ' ')],
            "punct" if !is_icu => vec![('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
            _ => return None,
        })
    }

    /// One character of a set, or one that is not in it.
    fn one(&self, ranges: &[Range], is_other: bool) -> Option<Node> {
        let mut set = String::from(if is_other { "[^" } else { "[" });
        for range in ranges {
            push_range(&mut set, *range);
            if self.tree.ignores_case {
                push_other_case(&mut set, *range);
                let is_beyond = !range.1.is_ascii();
                if is_beyond && self.letters != Letters::Ascii {
                    return None;
                }
            }
        }
        set.push(']');
        Some(Node::One(set))
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
                    return self.one(&ranges, is_other);
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
                '-' if !is_first && self.rest.peek() != Some(&']') => return None,
                start => {
                    let start = self.bracket_character(start)?;
                    ranges.push((start, self.range_end(start)?));
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
                character_escape(next)
            }
            other => Some(other),
        }
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

fn push_range(set: &mut String, (start, end): Range) {
    // Writing to a string does not fail.
    let _ = write!(set, "\\x{{{:X}}}", u32::from(start));
    if end != start {
        let _ = write!(set, "-\\x{{{:X}}}", u32::from(end));
    }
}

/// Letters of ASCII within a range, in their other case.
fn push_other_case(set: &mut String, (start, end): Range) {
    for (first, last, shift) in [('a', 'z', -32i32), ('A', 'Z', 32)] {
        let (from, to) = (start.max(first), end.min(last));
        let other = |letter: char| char::from_u32((letter as i32 + shift) as u32);
        if from <= to
            && let (Some(from), Some(to)) = (other(from), other(to))
        {
            push_range(set, (from, to));
        }
    }
}
