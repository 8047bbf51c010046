//! PostgreSQL's advanced regular expressions, as far as another library's mean the same.
//!
//! A pattern is read into a tree here ([`syntax`]); what has no meaning that is known to be the same is refused.
//! Patterns that look around or refer to their groups are walked by an own search ([`walk`]). Whether there is a match does not depend on which is preferred.
//! Where the match is does: the leftmost one begins where any of the library's leftmost does, and where all quantifiers are
//! greedy it is the longest from there, which an automaton of all matches finds. What its groups have taken is told only for
//! patterns in which taking as much as possible from left to right comes to the same ([`groups`]).
//!
//! Letters, digits and spaces beyond ASCII are the collation's matter: where a pattern speaks of them, only ASCII texts are
//! searched, unless the collation knows none.
//!
//! Source: `src/backend/regex/regc_lex.c`, `regcomp.c`, `regexec.c`, PostgreSQL 14 to 18.

mod calls;
mod groups;
mod options;
mod search;
mod separated;
mod similar;
mod syntax;
mod walk;

pub(super) use calls::find;
pub(crate) use options::Options;
pub(crate) use search::Pattern;
